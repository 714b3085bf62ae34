// What differs between two moments beside files: messages as they were and are, and values of the state.

import { SIGNS, count, h } from "./dom.js";
import { message } from "./message.js";
import { paired } from "./patch.js";
import { go, href } from "./router.js";

/** Messages of both sides in the order in which they are read: what has gone before what has come. Pure. */
export function sides(changes) {
  return changes.flatMap(({ old, new: now }) => [
    ...(old ? [{ kind: "removed", one: old }] : []),
    ...(now ? [{ kind: "added", one: now }] : []),
  ]);
}

/** A function for each row, which makes it. `ends` are the two checkpoints. */
export function messageRows({ messages, counts }, ends, { split }) {
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
export function valueLines({ values, is_cut: isCut }) {
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
