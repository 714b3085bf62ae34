// The rail: all checkpoints of a timeline, the newest first, with the lines that join them.

import { count, h, line, svg, tally, when } from "./dom.js";
import { lanes, told } from "./history.js";
import { href } from "./router.js";
import { arrows } from "./virtual.js";

const STEP = 12; // pixels between columns
const MOST_COLUMNS = 6; // further branches are drawn into the last
const HIGH = 46; // pixels of a row, about

export class Rail {
  /** `choose(id)` is called for a checkpoint, `compare(id)` for one that is clicked with Shift, `more()`
   * for the row that reads older ones. */
  constructor({ choose, compare, more }) {
    this.choose = choose;
    this.compare = compare;
    this.more = more;
    this.rows = [];
    this.chosen = null;
    const label = "Checkpoints, the newest first";
    this.list = h("virtual-list", { class: "rail", role: "listbox", "aria-label": label });
    arrows(this.list, {
      length: () => this.rows.length,
      at: () => this.place(this.chosen),
      open: (row) => this.open(row),
      moved: (row) => this.rows[row].node && !this.rows[row].branch && this.open(row),
    });
  }

  /** Shows a history; rows that are put above others move none of them. */
  show(history) {
    this.history = history;
    const before = this.rows;
    this.rows = this.laid(history);
    this.list.style.setProperty("--lanes", this.columns);
    this.places = new Map(this.rows.map((row, place) => [row.key, place]));
    const first = before.length ? (this.places.get(before[0].key) ?? 0) : 0;
    this.list.show({
      length: this.rows.length,
      guess: HIGH,
      row: (number) => this.element(this.rows[number], number),
      key: (number) => this.look(this.rows[number]),
      above: first,
    });
  }

  laid({ nodes, order, isRead, next, timeline }) {
    const drawn = lanes(nodes, order, isRead && !next);
    this.columns = Math.min(MOST_COLUMNS, drawn.reduce((most, { column }) => Math.max(most, column + 1), 1));
    const rows = [];
    order.forEach((node, place) => {
      const lane = drawn[place];
      for (const branch of node.branches)
        if (branch.timeline !== timeline) rows.push({ key: `fork ${branch.id}`, branch, node, lane });
      rows.push({ key: node.checkpoint.id, node, lane });
    });
    const last = order.at(-1)?.checkpoint;
    if (next) rows.push({ key: "more", about: isRead ? "Show older checkpoints" : "Reading older checkpoints…" });
    else if (isRead && last?.parent) rows.push({ key: "origin", origin: last.parent });
    return rows;
  }

  /** What a row is made anew for. */
  look({ key, node, lane, about }) {
    if (!node || !lane) return `${key} ${about}`;
    const { is_head, is_current, checkpoint } = node;
    const drawn = Object.values(lane).join(";");
    return [key, key === this.chosen, is_head, is_current, this.columns, checkpoint.name, drawn].join(" ");
  }

  place(id) {
    return this.places?.get(id) ?? -1;
  }

  /** Marks the chosen checkpoint, and has it in view, once that is known where it is. */
  mark(id) {
    this.chosen = id;
    const row = this.place(id);
    this.isMarked = row >= 0;
    this.list.drawNow();
    if (row >= 0) this.list.reveal(row);
    this.list.active(row);
  }

  open(number) {
    const { key, node, branch } = this.rows[number] ?? {};
    if (key === "more") this.more();
    else if (branch) location.hash = href("session", { timeline: branch.timeline });
    else if (key) this.choose(node?.checkpoint.id ?? this.rows[number].origin);
  }

  // Rows

  element(row, number) {
    const { key, node, lane, branch } = row;
    const isChosen = key === this.chosen;
    const isLeft = node && !branch && !node.is_current;
    return h(
      "div",
      {
        id: `rail-${number}`,
        role: "option",
        "aria-selected": String(isChosen),
        "aria-label": line(labelled(row), 300),
        "aria-posinset": number + 1,
        "aria-setsize": this.rows.length,
        class: `moment${isChosen ? " chosen" : ""}${isLeft ? " left" : ""}`,
        onclick: (event) => (event.shiftKey && node && !branch ? this.compare(key) : this.open(number)),
      },
      this.drawn(lane, node, branch),
      node && !branch ? this.about(node) : h("div", { class: "about branch" }, line(labelled(row), 80)),
    );
  }

  about({ checkpoint, is_head }) {
    const { seq, name, created_at, status, summary } = checkpoint;
    const [kind, text] = told(checkpoint);
    const { files, new_messages, outside = [], lost, phase } = summary ?? {};
    return h(
      "div",
      { class: "about" },
      h(
        "div",
        { class: `told is-${kind}` },
        is_head && h("span", { class: "tag head" }, "head"),
        name && h("span", { class: "tag" }, line(name, 40)),
        phase === "before" && h("span", { class: "quiet" }, "before "),
        text !== name && h("span", {}, line(text, 160)),
      ),
      h(
        "div",
        { class: "facts quiet small" },
        h("span", { class: "mono" }, `:${seq}`),
        when(created_at),
        files && files.added + files.changed + files.removed > 0 && h("span", { class: "tally" }, tally(files)),
        new_messages > 0 && h("span", { class: "msg", title: count(new_messages, "new message") }, `+${new_messages} msg`),
        status !== "running" && h("span", { class: `word is-${line(status, 20)}` }, line(status, 20)),
        outside.length > 0 && h("span", { class: "warning", title: line(outside.join("; ")) }, "↗ outside"),
        lost && h("span", { class: "warning", title: line(lost) }, "files left out"),
      ),
    );
  }

  /** The lines that lead through a row, and the checkpoint's dot. */
  drawn(lane, node, branch) {
    const wide = this.columns * STEP + 6;
    const x = (column) => 9 + Math.min(column, MOST_COLUMNS - 1) * STEP;
    const about = { width: wide, viewBox: `0 0 ${wide} 100`, preserveAspectRatio: "none", "aria-hidden": "true" };
    const box = svg("svg", about);
    if (!lane) return h("div", { class: "lanes" });
    const { column, joins, passes, goesOn } = lane;
    const draw = (d, isLeft) => box.append(svg("path", { d, class: isLeft ? "lane left" : "lane" }));
    for (const each of passes) draw(`M${x(each)} 0V100`, each > 0);
    for (const each of joins)
      if (branch || each === column) draw(`M${x(each)} 0V${branch ? 100 : 50}`, each > 0);
      else draw(`M${x(each)} 0C${x(each)} 40 ${x(column)} 30 ${x(column)} 50`, each > 0);
    if (branch) return h("div", { class: "lanes" }, box);
    if (goesOn) draw(`M${x(column)} 50V100`, column > 0);
    const kind = node.is_head ? "head" : column > 0 ? "left" : "";
    const phase = node.checkpoint.summary?.phase === "before" ? "is-before" : "";
    const dot = h("span", { class: `knot is-${told(node.checkpoint)[0]} ${kind} ${phase}` });
    dot.style.left = `${x(column)}px`;
    return h("div", { class: "lanes" }, box, dot);
  }
}

/** What a row is called. */
function labelled({ node, branch, about }) {
  if (branch) return `↳ forked: ${branch.timeline}`;
  return node ? described(node) : (about ?? "↳ where this timeline was forked");
}

/** A checkpoint in words, for those who hear it. */
export function described({ checkpoint, is_head, is_current }) {
  const { seq, name, summary } = checkpoint;
  const [kind, text] = told(checkpoint);
  const { added = 0, changed = 0, removed = 0 } = summary?.files ?? {};
  const files = added + changed + removed;
  return [
    `${seq}${is_head ? ", the head" : ""}${is_current ? "" : ", left behind"}`,
    name && `named ${name}`,
    `${summary?.phase === "before" ? "before " : ""}${kind === "said" ? "" : `${kind}: `}${text}`,
    files && count(files, "file"),
    summary?.outside?.length && `reached outside: ${summary.outside.join(", ")}`,
  ]
    .filter(Boolean)
    .join("; ");
}
