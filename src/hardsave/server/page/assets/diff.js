// What differs between two moments of a session, or between one and the disk: messages, state, files.
// Each is an entry that opens; lines of a file are read then.

import { get } from "./api.js";
import { SIGNS, count, fill, h, heading, line, pathText, settled, shown, tally, withoutFolders } from "./dom.js";
import { told } from "./history.js";
import { keys } from "./keys.js";
import { message } from "./message.js";
import { failed, loading } from "./notices.js";
import { paired, parse, rowElement, rowsOf } from "./patch.js";
import { amend, go, href, keep, kept } from "./router.js";
import { arrows } from "./virtual.js";

const MOST = 20_000; // paths of each kind
const FEW = 5; // files, messages or values that are opened at once
const KEPT = 150; // milliseconds without scrolling, after which a place is kept
const MODES = { "": "Unified", split: "Side by side" };
const MOST_KEPT = 50; // opened files that are kept for a reload

export function show(place, params) {
  return new Comparison(place, params);
}

class Comparison {
  constructor(place, params) {
    this.title = "Compare";
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
    this.list = h("virtual-list", { class: "changes", role: "tree", "aria-label": "What differs" });
    const turn = ({ entry, isOpen }, wanted = !isOpen) => {
      if (!entry || isOpen === wanted) return false;
      this.turn(entry);
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
    const top = heading(
      "Compare",
      this.from,
      h("span", { "aria-hidden": "true" }, "→"),
      this.to,
      button("Swap", () => this.swap()),
      button("With the disk", () => amend({ to: "now" })),
      this.back,
      h("span", { class: "gap" }),
      h("div", { class: "tabs" }, this.modes),
    );
    fill(this.place, h("div", { class: "at-session at-diff fills" }, top, this.about, this.body));
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
    this.opened = new Map(); // by the id of an entry: { lines }, { rows(how) } or { note }
    loading(this.body, "Comparing…");
    try {
      const [found, state, ...ends] = await Promise.all([
        get("diff", { from, to, timeline, limit: MOST }, { signal }),
        to === "now" ? null : get("diff/state", { from, to, timeline }, { signal }),
        ...[from, to].map((ref) => (ref === "now" ? null : get("checkpoint", { ref, timeline }, { signal }))),
      ]);
      Object.assign(this, { found, state, ends });
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
    const files = this.files();
    this.entries = [...(this.state ? this.parts(this.state) : []), ...files];
    fill(this.sum, this.sums(files));
    fill(this.body, this.sum, this.entries.length ? this.list : h("p", { class: "empty" }, "Nothing differs."));
    this.draw({ fresh: true });
    this.open();
  }

  /** What differs beside files: entries, each with what `read` gives once it is opened. */
  parts(state) {
    const { counts, messages, values } = state;
    const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
    const rows = (how) => messageRows(state, this.ends, how);
    const shownValues = `${values.length}${state.is_cut ? " or more" : ""}`;
    return [
      messages.length > 0 && { id: "messages", name: ["Messages", tally(counts)], isFew: all <= FEW, read: () => ({ rows }) },
      values.length > 0 && { id: "state", name: `State: ${shownValues} ${values.length === 1 ? "value" : "values"}`, isFew: values.length <= FEW, read: () => ({ lines: valueLines(state) }) },
    ].filter(Boolean);
  }

  files() {
    const { files } = this.found;
    const found = Object.keys(SIGNS).flatMap((change) => withoutFolders(files[change]).map((path) => ({ path, change, name: pathText(path) })));
    const isFew = found.length <= FEW;
    found.sort((a, b) => (a.name < b.name ? -1 : 1));
    return found.map((each) => ({ ...each, id: `file ${JSON.stringify(each.path)}`, isFew, read: () => this.lines(each.path) }));
  }

  /** Opens what was open before a reload, and goes back to where a person has looked; or opens the file
   * of the address, or what is short. */
  async open() {
    const { file, from, to } = this.params;
    const { compared } = kept();
    const isBack = compared?.from === from && compared.to === to;
    const isFirst = ({ id, path, isFew }) => (isBack ? compared.opened.includes(id) : file ? path === file : isFew);
    await Promise.all(this.entries.filter(isFirst).map((each) => this.turn(each)));
    if (isBack && compared.anchor) this.list.jump(compared.anchor.row, compared.anchor.offset);
  }

  keep() {
    if (!this.list.isConnected || !this.found) return;
    const { from, to } = this.params;
    const opened = [...this.opened.keys()].slice(0, MOST_KEPT);
    keep({ compared: { from, to, opened, anchor: this.list.anchor } });
  }

  async turn({ id, read }) {
    if (this.opened.delete(id)) return this.draw();
    const { found } = this;
    const put = (what) => {
      if (found !== this.found || !this.opened.has(id)) return;
      this.opened.set(id, what);
      this.draw();
    };
    this.opened.set(id, { note: "Loading…" });
    this.draw();
    try {
      put(await read());
    } catch (problem) {
      if (problem.name !== "AbortError") put({ note: problem.message });
    }
  }

  async lines(path) {
    if (typeof path !== "string") return { note: "Its name is no UTF-8: the command line shows it." };
    const { from, to } = this.found;
    const { signal } = this.asked;
    const { unified, is_cut } = await get("diff/file", { from, to: to ?? "now", path }, { signal });
    const lines = parse(unified);
    if (is_cut) lines.push({ kind: "note", text: "Only the first million characters are shown." });
    return lines.length ? { lines } : { note: "No line of it differs." };
  }

  // Showing

  sums(differing) {
    const { status, files, messages } = this.found;
    const counts = Object.fromEntries(Object.keys(SIGNS).map((kind) => [kind, differing.filter((each) => each.change === kind).length]));
    const differ = differing.length ? [`${count(differing.length, "file differs", "files differ")}: `, tally(counts)] : "Files are the same";
    const said = [
      this.state && messages.to !== null && h("li", {}, `Messages: ${messages.from} → ${messages.to}`, tally(this.state.counts)),
      status.to !== null &&
        status.from !== status.to &&
        h("li", {}, `Status: ${shown(status.from)} → ${shown(status.to)}`),
      h("li", {}, differ, files.is_cut && " (not all are listed)"),
    ];
    return h("ul", { class: "said-first" }, said);
  }

  draw({ fresh = false } = {}) {
    this.keepSoon();
    this.rows = [];
    const how = { split: this.isSplit };
    for (const entry of this.entries) {
      const open = this.opened.get(entry.id);
      this.rows.push({ entry, isOpen: Boolean(open) });
      if (open?.note) this.rows.push({ note: open.note, of: entry.id });
      const made = open?.rows?.(how) ?? rowsOf(open?.lines ?? [], how).map((items) => () => rowElement(items, how));
      made.forEach((make, part) => this.rows.push({ make, part, of: entry.id }));
    }
    this.list.show({
      length: this.rows.length,
      guess: 34,
      fresh,
      row: (number) => this.element(this.rows[number], number),
      key: (number) => {
        const { entry, isOpen, of, part, note } = this.rows[number];
        return JSON.stringify([entry?.id, isOpen, of, part, note, this.isSplit]);
      },
    });
  }

  element(row, number) {
    const about = { id: `changes-${number}`, role: "treeitem" };
    if (row.note) return h("div", { ...about, "aria-level": 2, class: "noted quiet" }, shown(row.note));
    if (row.make) {
      const made = row.make();
      for (const [name, value] of Object.entries({ ...about, "aria-level": 2 })) made.setAttribute(name, value);
      return made;
    }
    const { change, name } = row.entry;
    return h(
      "div",
      {
        ...about,
        class: `entry ${change ? "file" : "part-of-it"}`,
        "aria-level": 1,
        "aria-expanded": String(row.isOpen),
        onclick: () => this.turn(row.entry),
      },
      h("span", { class: "arrow" }, row.isOpen ? "▾" : "▸"),
      change && h("span", { class: `mark ${change}`, title: change }, SIGNS[change]),
      h("span", { class: change ? "name path" : "name" }, name),
    );
  }
}

// What differs beside files: messages as they were and are, and values of the state.

/** Messages of both sides in the order in which they are read: what has gone before what has come. Pure. */
function sides(changes) {
  return changes.flatMap(({ old, new: now }) => [
    ...(old ? [{ kind: "removed", one: old }] : []),
    ...(now ? [{ kind: "added", one: now }] : []),
  ]);
}

/** A function for each row, which makes it. `ends` are the two checkpoints. */
function messageRows({ messages, counts }, ends, { split }) {
  const opened = new Set();
  const one = (side) => said(side, ends, opened);
  const items = sides(messages);
  const rows = split
    ? paired(items).map(([old, now]) => () => h("div", { class: "pair" }, old ? one(old) : none(), now ? one(now) : none()))
    : items.map((each) => () => one(each));
  const more = Object.values(counts).reduce((sum, each) => sum + each, 0) - messages.length;
  if (more > 0) rows.push(() => h("div", { class: "noted quiet" }, `${count(more, "further message differs", "further messages differ")}: the session shows them.`));
  return rows;
}

function said({ kind, one }, ends, opened) {
  const { id: at, timeline } = ends[kind === "removed" ? 0 : 1];
  const where = { timeline, at, message: one.number };
  const link = h("a", { class: "quiet small", href: href("session", where) }, `${SIGNS[kind]} #${one.number}`);
  const more = () => go("session", where);
  return h("div", { class: `message side ${kind}` }, message(one, { opened, more, number: link, name: `${kind} ` }));
}

function none() {
  return h("div", { class: "message side none" });
}

/** The values of a state as lines, each below its place. Pure. */
function valueLines({ values, is_cut: isCut }) {
  const lines = [];
  const put = (kind, text) => text !== null && lines.push(...text.split("\n").map((each) => ({ kind, text: each })));
  for (const { path, old, new: now, is_cut: isLong } of values) {
    lines.push({ kind: "hunk", text: path });
    put("removed", old);
    put("added", now);
    if (isLong) lines.push({ kind: "note", text: "Only the first ten thousand characters are shown." });
  }
  if (isCut) lines.push({ kind: "note", text: "Further values differ: hardsave diff --state shows all." });
  return lines;
}
