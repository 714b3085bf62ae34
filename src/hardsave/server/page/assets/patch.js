// Lines of a file, and how they differ from those of another: unified, or side by side. Lines are put
// into rows of some dozens each, for a list that shows those that are seen.

import { SIGNS, h, shown } from "./dom.js";

const LINES = 40; // of a row
const LONGEST = 2000; // characters of a line that are shown

/** The lines of a unified diff: [{ kind, text, old?, new? }], with kind same, added, removed, hunk
 * or note. What stands inside of a hunk is told by its counts, not by what it looks like. Pure. */
export function parse(unified) {
  const lines = [];
  let old = 0;
  let now = 0;
  let oldLeft = 0;
  let newLeft = 0;
  for (const text of unified.replace(/\n$/, "").split("\n")) {
    const sign = text[0];
    if (oldLeft > 0 || newLeft > 0) {
      const kind = { "+": "added", "-": "removed", "\\": "note" }[sign] ?? "same";
      const line = { kind, text: text.slice(kind === "note" ? 2 : 1) };
      if (kind === "same" || kind === "removed") [line.old, old, oldLeft] = [old, old + 1, oldLeft - 1];
      if (kind === "same" || kind === "added") [line.new, now, newLeft] = [now, now + 1, newLeft - 1];
      lines.push(line);
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(text);
    if (hunk) {
      [old, oldLeft, now, newLeft] = [hunk[1], hunk[2] ?? 1, hunk[3], hunk[4] ?? 1].map(Number);
      lines.push({ kind: "hunk", text });
    } else if (sign === "\\") lines.push({ kind: "note", text: text.slice(2) });
    else if (text && !/^(---|\+\+\+|diff --git) /.test(text)) lines.push({ kind: "note", text });
  }
  return lines;
}

/** Lines beside each other: [[left, right]], or [line] where it goes across. Pure. */
export function paired(lines) {
  const pairs = [];
  let gone = [];
  let come = [];
  const settle = () => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1) pairs.push([gone[at] ?? null, come[at] ?? null]);
    gone = [];
    come = [];
  };
  for (const line of lines) {
    if (line.kind === "removed") gone.push(line);
    else if (line.kind === "added") come.push(line);
    else {
      settle();
      pairs.push(line.kind === "same" ? [line, line] : [line]);
    }
  }
  settle();
  return pairs;
}

/** The rows of a list: each has some lines. */
export function rowsOf(lines, { split = false } = {}) {
  const items = split ? paired(lines) : lines;
  const rows = [];
  for (let at = 0; at < items.length; at += LINES) rows.push(items.slice(at, at + LINES));
  return rows;
}

/** How high a row is, about. */
export const ROW = LINES * 20;

export function rowElement(items, { split = false } = {}) {
  return h("div", { class: split ? "lines split" : "lines" }, items.map(split ? pairElement : lineElement));
}

/** The lines of a text: [{ kind, text, new }]. */
export function numbered(text, first = 1) {
  return text.split("\n").map((each, at) => ({ kind: "line", text: each.replace(/\r$/, ""), new: first + at }));
}

function lineElement({ kind, text, old, new: now }) {
  if (kind === "hunk" || kind === "note") return h("div", { class: `l ${kind}` }, h("code", {}, cut(text)));
  return h(
    "div",
    { class: `l ${kind}` },
    kind !== "line" && h("span", { class: "n" }, old ?? ""),
    h("span", { class: "n" }, now ?? ""),
    kind !== "line" && h("span", { class: "sign" }, SIGNS[kind] ?? " "),
    h("code", {}, cut(text)),
  );
}

function pairElement([left, right]) {
  if (right === undefined) return lineElement(left);
  return h("div", { class: "pair" }, half(left, "old"), half(right, "new"));
}

function half(line, side) {
  if (!line) return h("div", { class: "l none" });
  return h(
    "div",
    { class: `l ${line.kind}` },
    h("span", { class: "n" }, line[side]),
    h("span", { class: "sign" }, SIGNS[line.kind] ?? " "),
    h("code", {}, cut(line.text)),
  );
}

function cut(text) {
  if (text.length <= LONGEST) return shown(text);
  const left = (text.length - LONGEST).toLocaleString("en");
  return [shown(text.slice(0, LONGEST)), h("span", { class: "quiet" }, ` … ${left} more characters`)];
}
