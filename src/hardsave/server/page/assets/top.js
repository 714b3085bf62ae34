// The top of a session: what it is called, how it is, what can be done with it, and on a narrow
// screen which part of it is shown.

import { count, fill, h, line, shown, state } from "./dom.js";
import { amend, href } from "./router.js";
import { short } from "./sessions.js";

const TABS = { conversation: "Conversation", history: "History", files: "Files" };
const MADE = /^(.+)-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{8}-[0-9]{6}-[0-9a-f]{6})$/;

export class Top {
  /** `acts` are rewind, fork, compare(with what) and copy; `undo` the buttons of operations. */
  constructor(timeline, acts, undo) {
    this.timeline = timeline;
    this.heading = h("h1", {}, line(timeline, 80));
    this.facts = h("div", { class: "facts quiet" });
    this.element = h(
      "div",
      { class: "session-top" },
      h("div", { class: "named" }, this.heading, this.facts),
      h(
        "div",
        { class: "bar-of-acts" },
        h(
          "div",
          { class: "acts" },
          h("button", { class: "primary", title: "Rewind to here: r", onclick: acts.rewind }, "Rewind to here"),
          h("button", { title: "Fork from here: f", onclick: acts.fork }, "Fork…"),
          undo,
        ),
        menu("Compare", [
          ["with the step before", () => acts.compare("before")],
          ["with the head", () => acts.compare("head")],
          ["with the disk", () => acts.compare("disk")],
          ["with another moment…", () => acts.compare("another")],
        ]),
        h("button", { title: "The command that goes on from here", onclick: acts.copy }, "Copy command"),
      ),
    );
    this.buttons = Object.entries(TABS).map(([name, label]) => {
      const onclick = () => amend({ tab: name });
      return h("button", { role: "tab", "aria-controls": `pane-${name}`, dataset: { name }, onclick }, label);
    });
    const about = { class: "tabs panes-tabs", role: "tablist", "aria-label": "Parts of the session" };
    this.tabs = h("div", about, this.buttons);
  }

  /** The name of a part that is shown alone, where there is no room for all. */
  choose({ tab, file }) {
    const chosen = TABS[tab] ? tab : file ? "files" : "conversation";
    for (const button of this.buttons) button.setAttribute("aria-selected", String(button.dataset.name === chosen));
    return chosen;
  }

  /** `info` is the session as the server tells it, `head` and `steps` as they are by now. */
  show(info, head, steps, isLive) {
    const agent = head?.metadata?.agent ?? info.head?.metadata?.agent ?? MADE.exec(this.timeline)?.[1];
    const status = head?.status ?? info.status;
    const messages = head?.summary?.messages ?? info.messages;
    const about = isLive ? "What is saved appears here at once" : "Not connected: this may be out of date";
    this.heading.textContent = line(info.title || this.timeline, 160);
    fill(
      this.facts,
      status && state(status),
      isLive !== null && h("span", { class: isLive ? "live" : "live off", title: about }, isLive ? "live" : "not live"),
      info.title &&
        h("span", { class: "mono", title: shown(this.timeline) }, line(short(this.timeline), 60)),
      typeof agent === "string" && h("span", {}, line(agent, 40)),
      h("span", {}, count(steps, "step")),
      messages !== null && h("span", {}, count(messages, "message")),
      info.cost !== null && h("span", {}, `$${info.cost.toFixed(2)}`),
      info.origin && h("a", { href: href("session", { timeline: this.timeline, at: info.origin }) }, "forked"),
    );
  }
}

/** A button that opens a list of others: [label, what it does]. */
function menu(label, items) {
  const close = () => made.removeAttribute("open");
  const elsewhere = ({ target }) => made.contains(target) || close();
  const made = h(
    "details",
    {
      class: "menu",
      ontoggle: () => made.open && document.addEventListener("click", elsewhere, { once: true, capture: true }),
      onkeydown: (event) => {
        if (event.key !== "Escape") return;
        close();
        made.firstElementChild.focus();
      },
    },
    h("summary", { class: "button" }, label),
    h(
      "div",
      { class: "items" },
      items.map(([text, act]) => h("button", { class: "plain", onclick: () => (close(), act()) }, text)),
    ),
  );
  return made;
}
