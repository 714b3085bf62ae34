// The checkpoints of one timeline: read by the page, and kept up to date by what happens. Time goes
// along the links to parents: on a timeline that was taken back, numbers that are neighbours are not.

import { get } from "./api.js";

const FIRST = 200; // checkpoints that are read first, to be seen at once
const PAGE = 5000;
const MOST = 20_000; // checkpoints that are read without being asked for
const LATEST = 200; // looked at again after a connection was lost

export class History {
  constructor(timeline) {
    this.timeline = timeline;
    this.clear();
    this.line = []; // ids, the oldest first: what led to the chosen one, and what came of it
    this.places = new Map(); // in that line, by id
  }

  clear() {
    this.order = []; // nodes, the newest first
    this.nodes = new Map();
    this.children = new Map();
    this.head = null;
    this.next = null;
    this.isRead = false; // all of it, or as much as is read without being asked for
  }

  // Reading

  /** Reads all checkpoints; `told` is called after each page. What is known stays until then. */
  async read({ signal, told = () => {} }) {
    const found = this.order.length ? new History(this.timeline) : this;
    found.clear();
    do {
      await found.more({ signal });
      if (found === this) told();
    } while (found.next && found.order.length < MOST);
    found.isRead = true;
    if (found === this) return;
    const { order, nodes, children, head, next } = found;
    Object.assign(this, { order, nodes, children, head, next, isRead: true });
    this.forget();
    told();
  }

  async more({ signal }) {
    const limit = this.order.length ? PAGE : FIRST;
    const page = await get("graph", { timeline: this.timeline, limit, cursor: this.next, brief: true }, { signal });
    for (const node of page.items) this.take(node);
    this.next = page.next;
    this.forget();
  }

  take(node) {
    const { id, parent } = node.checkpoint;
    if (this.nodes.has(id)) return;
    this.nodes.set(id, node);
    this.order.push(node);
    this.link(id, parent);
    if (node.is_head) this.head = id;
  }

  link(id, parent) {
    const known = this.children.get(parent);
    if (known) known.push(id);
    else this.children.set(parent, [id]);
  }

  /** Takes the latest that the server has; false if they do not join what is known. */
  async catchUp({ signal }) {
    const { items } = await get("graph", { timeline: this.timeline, limit: LATEST, brief: true }, { signal });
    const fresh = items.map((node) => node.checkpoint).filter(({ id }) => !this.nodes.has(id));
    return fresh.length < LATEST && this.add(fresh.reverse());
  }

  /** Takes checkpoints that were saved just now; whether all else is as it was. */
  add(checkpoints) {
    let isSame = true;
    for (const checkpoint of checkpoints) {
      const { id, parent, seq } = checkpoint;
      if (this.nodes.has(id)) continue;
      if (parent !== this.head || (this.order[0]?.checkpoint.seq ?? 0) >= seq) isSame = false;
      if (this.head) this.nodes.get(this.head).is_head = false;
      const node = { checkpoint, branches: [], is_head: true, is_current: true };
      this.nodes.set(id, node);
      this.order.unshift(node);
      this.link(id, parent);
      this.grow(id, parent);
      this.head = id;
    }
    return isSame;
  }

  // Time

  checkpoint(id) {
    return this.nodes.get(id)?.checkpoint ?? null;
  }

  forget() {
    this.places = new Map();
  }

  /** The line that a checkpoint is on: the same as before, if that has it. */
  through(id) {
    if (!this.places.has(id)) {
      const past = [];
      for (let at = id; this.nodes.has(at); at = this.nodes.get(at).checkpoint.parent) past.push(at);
      const line = past.reverse();
      const known = new Set(this.line);
      for (let at = this.after(id, known); at; at = this.after(at, known)) line.push(at);
      this.line = line;
      this.places = new Map(line.map((each, place) => [each, place]));
    }
    return this.line;
  }

  /** What was saved on top of one: of several, that of the line so far, then what the head stands
   * on, then the newest. */
  after(id, known) {
    const all = this.children.get(id) ?? [];
    if (all.length < 2) return all[0] ?? null;
    const newest = (one, other) => (this.checkpoint(one).seq > this.checkpoint(other).seq ? one : other);
    return (
      all.find((each) => known.has(each)) ?? all.find((each) => this.nodes.get(each).is_current) ?? all.reduce(newest)
    );
  }

  grow(id, parent) {
    if (this.line.at(-1) !== parent || !this.places.size) return this.forget();
    this.places.set(id, this.line.push(id) - 1);
  }

  /** What led to a checkpoint, the oldest first, and itself. */
  past(checkpoint) {
    const place = this.places.get(checkpoint.id);
    if (place === undefined) return [checkpoint];
    return this.line.slice(0, place + 1).map((id) => this.checkpoint(id));
  }

  step(id, by) {
    const line = this.through(id);
    return line[Math.max(0, Math.min(line.length - 1, (this.places.get(id) ?? 0) + by))] ?? null;
  }

  numbered(seq) {
    return this.order.find((node) => node.checkpoint.seq === seq)?.checkpoint.id ?? null;
  }

  /** What the head has that a checkpoint has not: what a rewind to it leaves behind; `isAll` if none of
   * that is still to be read. */
  left(id) {
    const kept = new Set();
    for (let at = id; this.nodes.has(at); at = this.nodes.get(at).checkpoint.parent) kept.add(at);
    const found = [];
    let at = this.head;
    for (; this.nodes.has(at) && !kept.has(at); at = this.nodes.get(at).checkpoint.parent) found.push(this.nodes.get(at).checkpoint);
    return { found, isAll: kept.has(at) || !this.next };
  }
}

/** Where to draw the checkpoints of `order`, the newest first: those that the head stands on in
 * column 0, each branch that was left beside them. Pure. */
export function lanes(nodes, order, isRead) {
  const awaited = []; // by column: the id that its line leads to
  return order.map(({ checkpoint: { id, parent }, is_current }) => {
    const joins = columns(awaited, (each) => each === id);
    const passes = columns(awaited, (each) => each && each !== id);
    const column = is_current ? 0 : (joins.find((each) => each > 0) ?? free(awaited));
    for (const each of joins) awaited[each] = null;
    const goesOn = parent !== null && (nodes.has(parent) || !isRead);
    awaited[column] = goesOn ? parent : null;
    return { column, joins, passes, goesOn };
  });
}

function columns(awaited, matches) {
  return awaited.flatMap((each, column) => (matches(each) ? [column] : []));
}

function free(awaited) {
  let column = 1;
  while (awaited[column]) column += 1;
  return column;
}

/** What a checkpoint tells in a line: [what kind of thing, its text]. */
export function told(checkpoint) {
  const { prompt, call, said, phase, paths = [] } = checkpoint.summary ?? {};
  if (prompt) return ["prompt", prompt];
  if (phase === "safety") return ["safety", checkpoint.description || "saved before files were touched"];
  if (call) return ["call", call];
  if (said) return ["said", said];
  const named = checkpoint.description || checkpoint.name;
  if (!named && paths.length) return ["files", paths.join(", ")];
  return ["said", named || checkpoint.kind];
}
