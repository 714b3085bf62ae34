// Keys: the page's own, and those of the screen that is shown. `?` lists them.

import { h } from "./dom.js";
import { dialog } from "./notices.js";

const sets = [];

/** Adds keys: [{ key, about, act }]; what comes back removes them. A key is as browsers call it, with
 * `Shift+` before it where that matters. */
export function keys(title, list) {
  const set = { title, list };
  sets.push(set);
  return () => sets.splice(sets.indexOf(set), 1);
}

export function press(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.target.matches?.("input:not([type=checkbox]):not([type=range]), textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  for (const { list } of [...sets].reverse())
    for (const { key, act } of list)
      if (key.split(" ").includes(event.key)) {
        event.preventDefault();
        act(event);
        return;
      }
}

export function help() {
  dialog("Keys", () =>
    reached().map(({ title, list }) => [
      h("h3", {}, title),
      h(
        "dl",
        { class: "keys" },
        list.map(({ key, about }) =>
          h("div", {}, h("dt", {}, key.split(" ").map((each) => h("kbd", {}, NAMES[each] ?? each))), h("dd", {}, about)),
        ),
      ),
    ]),
  );
}

/** The sets whose keys do something now: one of the screen hides the page's own of the same name. */
function reached() {
  const taken = new Set();
  return [...sets].reverse().map(({ title, list }) => {
    const open = list.filter(({ key }) => key.split(" ").some((each) => !taken.has(each)));
    for (const { key } of list) for (const each of key.split(" ")) taken.add(each);
    return { title, list: open };
  });
}

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "space" };

/** Moves the focus so many entries on, and has that one in view. */
export function step(list, by, links = "a.name") {
  const every = [...list.querySelectorAll(links)];
  if (!every.length) return;
  const at = every.indexOf(document.activeElement);
  const next = every[at < 0 ? (by > 0 ? 0 : every.length - 1) : Math.max(0, Math.min(every.length - 1, at + by))];
  next.focus({ preventScroll: true });
  next.closest("li, article")?.scrollIntoView({ block: "nearest" });
}
