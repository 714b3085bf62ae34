// What differs between two moments of a session, or between one and the disk: messages, state, files.
// Lines of a file are read when it is opened.

import { get } from "./api.js";
import { count, fill, h, line, pathText, settled, shown } from "./dom.js";
import { told } from "./history.js";
import { keys } from "./keys.js";
import { failed } from "./notices.js";
import { parse, rowElement, rowsOf } from "./patch.js";
import { amend, href, keep, kept } from "./router.js";
import { arrows } from "./rows.js";
import "./virtual.js";

const MOST = 20_000; // paths of each kind
const FEW = 5; // files that are opened at once
const KEPT = 150; // milliseconds without scrolling, after which a place is kept
const SIGNS = { added: "+", changed: "~", removed: "−" };
const MODES = { "": "Unified", split: "Side by side" };
const MOST_KEPT = 50; // opened files that are kept for a reload
const MOST_STATE = 300; // places of the state that are listed
const STATE = { added: "new", removed: "gone", changed: "changed" };

export function show(place, params) {
  const one = new Comparison(place, params);
  return { title: "Compare", amend: (given) => one.amend(given), end: () => one.end() };
}

class Comparison {
  constructor(place, params) {
    this.place = place;
    this.params = params;
    this.asked = new AbortController();
    this.build();
    this.stop = keys("Compare", [
      { key: "u", about: "Unified or side by side", act: () => amend({ mode: this.isSplit ? "" : "split" }) },
      { key: "s", about: "Swap the two moments", act: () => this.swap() },
      { key: "d", about: "Compare with the disk", act: () => amend({ to: "now" }) },
      { key: "Escape", about: "Back to the session", act: () => this.back.hidden || this.back.click() },
    ]);
    this.load();
  }

  end() {
    this.asked.abort();
    this.stop();
  }

  get isSplit() {
    return this.params.mode === "split";
  }

  build() {
    const end = (name, label, placeholder) => {
      const onchange = (event) => amend({ [name]: event.target.value.trim() }, { replace: false });
      return h("input", { "aria-label": label, class: "mono end", placeholder, onchange });
    };
    const button = (label, onclick, more = {}) => h("button", { class: "small", onclick, ...more }, label);
    this.from = end("from", "From", "chk_…, :3, @~2");
    this.to = end("to", "To", "chk_…, :3, now");
    this.modes = Object.entries(MODES).map(([value, label]) =>
      button(label, () => amend({ mode: value }), { dataset: { value } }),
    );
    this.about = h("div", { class: "ends quiet" });
    this.sum = h("div", { class: "sums" });
    this.list = h("virtual-list", { class: "changes", role: "tree", "aria-label": "Files that differ" });
    const turn = ({ path, isOpen }, wanted = !isOpen) => {
      if (path === undefined || isOpen === wanted) return false;
      this.turn({ path });
      return true;
    };
    arrows(this.list, {
      length: () => this.rows.length,
      at: () => 0,
      open: (row) => turn(this.rows[row]),
      fold: (row, isOpen) => turn(this.rows[row], isOpen),
    });
    this.keepSoon = settled(() => this.keep(), KEPT);
    this.list.addEventListener("scroll", this.keepSoon, { passive: true });
    this.body = h("div", { class: "fills" });
    this.back = h("a", { class: "button small" }, "Session");
    const heading = h(
      "div",
      { class: "heading" },
      h("h1", {}, "Compare"),
      this.from,
      h("span", { "aria-hidden": "true" }, "→"),
      this.to,
      button("Swap", () => this.swap()),
      button("With the disk", () => amend({ to: "now" })),
      this.back,
      h("span", { class: "gap" }),
      h("div", { class: "tabs" }, this.modes),
    );
    fill(this.place, h("div", { class: "at-session at-diff fills" }, heading, this.about, this.body));
  }

  amend(params) {
    const before = this.params;
    this.params = params;
    const isOther = ["from", "to", "timeline"].some((name) => params[name] !== before[name]);
    if (isOther) this.load();
    else if (this.found) this.draw({ fresh: true });
    this.marked();
  }

  swap() {
    if (this.params.to === "now") return;
    amend({ from: this.params.to, to: this.params.from });
  }

  marked() {
    const { timeline, from, to, mode = "" } = this.params;
    for (const button of this.modes) button.setAttribute("aria-pressed", String(button.dataset.value === mode));
    this.back.href = href("session", { timeline, at: to === "now" ? from : to });
    this.back.hidden = !timeline;
  }

  // Reading

  async load() {
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    const { from, to, timeline } = this.params;
    this.from.value = from ?? "";
    this.to.value = to ?? "";
    this.marked();
    this.found = null;
    this.opened = new Map(); // by path: rows of lines, or what is said instead
    fill(this.body, h("p", { class: "quiet loading" }, "Comparing…"));
    try {
      const [found, ...ends] = await Promise.all([
        get("diff", { from, to, timeline, limit: MOST }, { signal }),
        ...[from, to].map((ref) => (ref === "now" ? null : get("checkpoint", { ref, timeline }, { signal }))),
      ]);
      this.found = found;
      this.tellEnds(ends);
      this.start();
    } catch (problem) {
      if (!signal.aborted) failed(this.body, problem, () => this.load());
    }
  }

  tellEnds(ends) {
    const name = (end) => (end.timeline === this.params.timeline ? `:${end.seq}` : end.id);
    const tell = (end) => {
      if (!end) return [h("b", {}, "the disk"), " as it is now"];
      return [h("b", { class: "mono" }, name(end)), " ", line(told(end)[1], 100)];
    };
    fill(this.about, h("span", {}, tell(ends[0])), h("span", {}, "→ ", tell(ends[1])));
    this.from.value = name(ends[0]);
    this.to.value = ends[1] ? name(ends[1]) : "now";
  }

  start() {
    const { files } = this.found;
    this.paths = ["added", "changed", "removed"].flatMap((change) => files[change].map((path) => ({ path, change })));
    this.paths.sort((a, b) => (pathText(a.path) < pathText(b.path) ? -1 : 1));
    fill(this.sum, this.sums());
    fill(this.body, this.sum, this.paths.length ? this.list : h("p", { class: "empty" }, "No file differs."));
    this.draw({ fresh: true });
    this.open();
  }

  /** Opens the files that were open before a reload, and goes back to where a person has looked; or
   * opens the file of the address, or all of a few. */
  async open() {
    const { file, from, to } = this.params;
    const { compared } = kept();
    const isBack = compared?.from === from && compared.to === to;
    const isFirst = ({ path }) => (isBack ? compared.opened.includes(path) : file ? path === file : this.paths.length <= FEW);
    await Promise.all(this.paths.filter(isFirst).map((each) => this.turn(each)));
    if (isBack && compared.anchor) this.list.jump(compared.anchor.row, compared.anchor.offset);
  }

  keep() {
    if (!this.list.isConnected || !this.found) return;
    const { from, to } = this.params;
    const opened = [...this.opened.keys()].filter((path) => typeof path === "string").slice(0, MOST_KEPT);
    keep({ compared: { from, to, opened, anchor: this.list.anchor } });
  }

  async turn({ path }) {
    if (this.opened.delete(path)) return this.draw();
    if (typeof path !== "string") return this.say(path, "Its name is no UTF-8: the command line shows it.");
    this.opened.set(path, { note: "Loading…" });
    this.draw();
    const { found } = this;
    try {
      const { from, to } = found;
      const { signal } = this.asked;
      const { unified, is_cut } = await get("diff/file", { from, to: to ?? "now", path }, { signal });
      if (found !== this.found || !this.opened.has(path)) return;
      const lines = parse(unified);
      if (is_cut) lines.push({ kind: "note", text: "Only the first million characters are shown." });
      if (lines.length) this.opened.set(path, { lines });
      else this.opened.set(path, { note: "No line of it differs." });
      this.draw();
    } catch (problem) {
      if (problem.name !== "AbortError") this.say(path, problem.message);
    }
  }

  say(path, note) {
    this.opened.set(path, { note });
    this.draw();
  }

  // Showing

  sums() {
    const { status, state, files } = this.found;
    const counts = Object.keys(SIGNS).map(
      (kind) => files[kind].length > 0 && h("span", { class: kind }, ` ${SIGNS[kind]}${files[kind].length}`),
    );
    const differ = this.paths.length ? [`${count(this.paths.length, "file")} differ: `, counts] : "Files are the same";
    const said = [
      this.messages(),
      status.to !== null &&
        status.from !== status.to &&
        h("li", {}, `Status: ${shown(status.from)} → ${shown(status.to)}`),
      h("li", {}, differ, files.is_cut && " (not all are listed)"),
    ];
    return [h("ul", { class: "said-first" }, said), state && this.stateSum(state)];
  }

  messages() {
    const { to, messages } = this.found;
    if (messages.to === null || messages.from === null) return null;
    if (messages.from === messages.to) return h("li", {}, `${count(messages.to, "message")} in both`);
    const link = href("session", { timeline: this.params.timeline, at: to, message: messages.from });
    const fresh = messages.to > messages.from && h("a", { href: link }, "show the new ones");
    return h("li", {}, `Messages: ${messages.from} → ${messages.to} `, fresh);
  }

  stateSum(state) {
    const paths = Object.keys(STATE).flatMap((kind) => state[kind].map((path) => [kind, path]));
    if (!paths.length) return null;
    const rows = paths
      .slice(0, MOST_STATE)
      .map(([kind, path]) => h("li", {}, h("span", { class: kind }, STATE[kind]), " ", h("code", {}, line(path, 300))));
    const more = paths.length > MOST_STATE && h("li", {}, `and ${paths.length - MOST_STATE} more`);
    const sum = `State: ${count(paths.length, "place")}${state.is_cut ? " or more" : ""} differ`;
    return h("details", {}, h("summary", {}, sum), h("ul", { class: "state-paths" }, rows, more));
  }

  draw({ fresh = false } = {}) {
    this.keepSoon();
    this.rows = [];
    for (const each of this.paths) {
      const open = this.opened.get(each.path);
      this.rows.push({ ...each, isOpen: Boolean(open) });
      if (open?.note) this.rows.push({ note: open.note, of: each.path });
      rowsOf(open?.lines ?? [], { split: this.isSplit }).forEach((items, part) =>
        this.rows.push({ items, part, of: each.path }),
      );
    }
    this.list.show({
      length: this.rows.length,
      guess: 34,
      fresh,
      row: (number) => this.element(this.rows[number], number),
      key: (number) => {
        const { path, isOpen, of, part, note } = this.rows[number];
        return JSON.stringify([path, isOpen, of, part, note, this.isSplit]);
      },
    });
  }

  element(row, number) {
    const about = { id: `changes-${number}`, role: "treeitem" };
    if (row.note) return h("div", { ...about, "aria-level": 2, class: "noted quiet" }, shown(row.note));
    if (row.items) {
      const lines = rowElement(row.items, { split: this.isSplit });
      for (const [name, value] of Object.entries({ ...about, "aria-level": 2 })) lines.setAttribute(name, value);
      return lines;
    }
    return h(
      "div",
      {
        ...about,
        class: "entry file",
        "aria-level": 1,
        "aria-expanded": String(row.isOpen),
        onclick: () => this.turn(row),
      },
      h("span", { class: "arrow" }, row.isOpen ? "▾" : "▸"),
      h("span", { class: `mark ${row.change}`, title: row.change }, SIGNS[row.change]),
      h("span", { class: "name path" }, pathText(row.path)),
    );
  }
}
