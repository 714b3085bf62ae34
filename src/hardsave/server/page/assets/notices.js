// What the page says by itself: in a corner, and to screen readers.

import { fill, form, h, shown } from "./dom.js";

const SECONDS = 12;
const SECONDS_TO_ACT = 60;

/** Says something; `act` is a button beside it: { label, run }. That of another act goes: what it would
 * undo is not the last one any more. */
export function say(text, { act = null, isProblem = false } = {}) {
  const place = document.getElementById("notices");
  const close = h("button", { class: "plain", "aria-label": "Close this notice", onclick: () => note.remove() }, "×");
  const note = h(
    "div",
    { class: `notice${isProblem ? " problem" : ""}${act ? " acting" : ""}`, role: isProblem ? "alert" : "status" },
    h("p", {}, shown(text)),
    act && h("button", { onclick: () => (note.remove(), act.run()) }, act.label),
    close,
  );
  if (act) for (const each of place.querySelectorAll(".acting")) each.remove();
  place.append(note);
  if (!isProblem) setTimeout(() => note.remove(), (act ? SECONDS_TO_ACT : SECONDS) * 1000);
  return note;
}

/** Says what went wrong, with the server's next step. */
export function fail(problem) {
  if (problem?.name === "AbortError") return;
  const id = problem?.requestId ? ` (request ${problem.requestId})` : "";
  say(`${problem?.message ?? problem}${problem?.status >= 500 ? id : ""}`, { isProblem: true });
}

/** In the place of what could not be read: why, and the next step. */
export function failed(place, problem, act, label = "Try again") {
  if (problem?.name === "AbortError") return;
  fill(
    place,
    h(
      "div",
      { class: "empty", role: "alert" },
      h("p", {}, shown(problem.message)),
      h("button", { onclick: act }, label),
    ),
  );
}

/** A dialog: `content(close)` gives its elements. Resolves when it is closed; focus goes back to
 * where it was. */
export function dialog(title, content, { wide = false } = {}) {
  const opener = document.activeElement;
  return new Promise((resolve) => {
    const box = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": "dialog-title" });
    const close = (value) => {
      box.returned = value;
      box.close();
    };
    fill(
      box,
      h(
        "header",
        {},
        h("h2", { id: "dialog-title" }, title),
        h("button", { class: "plain", "aria-label": "Close", onclick: () => close() }, "×"),
      ),
      content(close),
    );
    box.addEventListener("close", () => {
      box.remove();
      if (!opener?.isConnected) successor(opener).focus();
      resolve(box.returned);
    });
    document.body.append(box);
    box.showModal();
  });
}

/** A dialog with a form: what `value()` gives once it is sent, nothing if it was left. What is
 * dangerous is never what Enter does at once. */
export function ask(title, content, label, { value = () => true, kind = "primary", leave = "Not now" } = {}) {
  return dialog(title, (close) =>
    form(
      {},
      () => close(value()),
      content,
      h("div", { class: "acts" }, h("button", { class: kind, autofocus: kind === "primary" }, label), h("button", { type: "button", autofocus: kind === "danger", onclick: () => close() }, leave)),
    ),
  );
}

/** In the place of what is not read yet. */
export function loading(place, text = "Loading…") {
  fill(place, h("p", { class: "quiet loading" }, text));
}

/** What stands where a button was that was drawn anew meanwhile: the one for the same act. */
function successor({ dataset = {} }) {
  const every = [...document.querySelectorAll(`#main [data-act="${CSS.escape(dataset.act ?? "")}"]`)];
  return every.find((each) => each.dataset.of === dataset.of) ?? document.getElementById("main");
}
