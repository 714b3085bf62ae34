// A list of any length that holds no more elements than fit on the screen. Rows are as high as what
// is in them; a row that is measured moves none that a person looks at.

import { BY_HAND, framed } from "./dom.js";

const BEYOND = 8; // rows above and below what is seen
const MOST = 90; // rows at once, however low they are

/** Sums of heights: any row's top, and the row at any height, in log steps. */
export class Heights {
  constructor(length, guess) {
    this.guess = guess;
    this.resize(length);
  }

  resize(length) {
    const old = this.heights ?? [];
    this.length = length;
    this.heights = new Float64Array(length);
    this.sums = new Float64Array(length + 1);
    for (let at = 0; at < length; at += 1) this.heights[at] = at < old.length ? old[at] : this.guess;
    for (let at = 1; at <= length; at += 1) {
      this.sums[at] += this.heights[at - 1];
      const next = at + (at & -at);
      if (next <= length) this.sums[next] += this.sums[at];
    }
  }

  set(row, height) {
    const change = height - this.heights[row];
    if (!change) return 0;
    this.heights[row] = height;
    for (let at = row + 1; at <= this.length; at += at & -at) this.sums[at] += change;
    return change;
  }

  /** How far from the beginning a row begins. */
  top(row) {
    let sum = 0;
    for (let at = Math.min(row, this.length); at > 0; at -= at & -at) sum += this.sums[at];
    return sum;
  }

  /** The row at so many pixels from the beginning. */
  at(pixels) {
    let row = 0;
    let left = pixels;
    for (let step = 1 << Math.floor(Math.log2(this.length || 1)); step; step >>= 1)
      if (row + step <= this.length && this.sums[row + step] <= left) {
        row += step;
        left -= this.sums[row];
      }
    return Math.min(row, Math.max(0, this.length - 1));
  }

  get total() {
    return this.top(this.length);
  }
}

/** <virtual-list>: `list.show({ length, row, key, guess })`. `row(number)` gives an element for a row,
 * `key(number)` what makes it another one: a row with the same key keeps its element. */
export class VirtualList extends HTMLElement {
  constructor() {
    super();
    this.rows = new Map(); // by number: { key, element }
    this.heights = new Heights(0, 40);
    this.source = null;
    this.space = document.createElement("div");
    this.space.className = "space";
    this.space.setAttribute("role", "presentation");
    this.draw = framed(() => this.drawNow());
    this.measure = new ResizeObserver((entries) => this.measured(entries));
    this.held = null; // what stays where it is, until a person scrolls: { row, offset } or { end }
    this.letGo = () => {
      this.held = null;
    };
    this.resized = framed(() => {
      this.settle();
      this.drawNow();
    });
    this.scrolled = () => {
      if (this.held && Math.abs(this.scrollTop - this.put) > 2) this.held = null; // by the browser
      this.draw();
    };
  }

  connectedCallback() {
    if (!this.space.isConnected) this.append(this.space);
    if (!this.hasAttribute("tabindex")) this.tabIndex = 0;
    this.addEventListener("scroll", this.scrolled, { passive: true });
    for (const kind of BY_HAND) this.addEventListener(kind, this.letGo, { passive: true });
    this.size = new ResizeObserver(this.resized);
    this.size.observe(this);
    this.draw();
  }

  disconnectedCallback() {
    this.removeEventListener("scroll", this.scrolled);
    for (const kind of BY_HAND) this.removeEventListener(kind, this.letGo);
    this.size?.disconnect();
  }

  /** Shows these rows; `fresh` if none of the heights that were measured hold any more, `above` if
   * so many rows were put before those that are known: these stay where a person sees them. */
  show({ length, row, key = (number) => number, guess = 40, fresh = false, above = 0 }) {
    this.source = { length, row, key };
    if (above && !fresh) this.push(above);
    if (fresh || guess !== this.heights.guess) {
      this.heights = new Heights(length, guess);
      this.clear();
    } else if (length !== this.heights.length) {
      this.heights.resize(length);
    }
    this.space.style.height = `${this.heights.total}px`;
    this.settle();
    this.drawNow();
  }

  push(above) {
    const { heights, guess } = this.heights;
    this.heights.heights = Float64Array.from([...new Array(above).fill(guess), ...heights]);
    this.heights.resize(heights.length + above);
    const rows = [...this.rows];
    this.rows.clear();
    for (const [number, known] of rows) {
      known.element.dataset.row = number + above;
      this.rows.set(number + above, known);
    }
    if (this.held && !this.held.end) this.held.row += above;
    else if (!this.held && this.scrollTop > 0) {
      this.space.style.height = `${this.heights.total}px`;
      this.scrollTop += above * guess;
    }
  }

  clear() {
    for (const { element } of this.rows.values()) this.forget(element);
    this.rows.clear();
  }

  forget(element) {
    this.measure.unobserve(element);
    element.remove();
  }

  /** Scrolls so that a row begins at the top, or so far below it, and keeps it there while others
   * are measured. */
  jump(row, offset = 0) {
    if (!this.source?.length) return;
    this.held = { row: Math.max(0, Math.min(row, this.source.length - 1)), offset };
    this.settle();
    this.drawNow();
  }

  /** Scrolls to the end, and stays there while rows are measured and added. */
  end() {
    this.held = { end: true };
    this.settle();
    this.drawNow();
  }

  get isAtEnd() {
    return this.held?.end || this.scrollTop + this.clientHeight >= this.heights.total - 4;
  }

  /** Puts what is held where it belongs. */
  settle() {
    if (!this.held || !this.isConnected) return;
    const { row, offset, end } = this.held;
    const wanted = end ? this.heights.total - this.clientHeight : this.heights.top(row) - offset;
    if (Math.abs(wanted - this.scrollTop) > 0.5) this.scrollTop = wanted;
    this.put = this.scrollTop;
  }

  /** Scrolls as little as is needed for a row to be seen; one that is far away comes to the middle. */
  reveal(row) {
    const high = this.heights.heights[row] ?? 0;
    const above = this.scrollTop - this.heights.top(row);
    const below = high - above - this.clientHeight;
    if (Math.max(above, below) > this.clientHeight) this.jump(row, (this.clientHeight - high) / 2);
    else if (above > 0) this.jump(row, 8);
    else if (below > 0) this.jump(row, Math.max(0, this.clientHeight - high - 8));
  }

  /** The first row that is seen, and how far it is below the top: for `jump`. */
  get anchor() {
    const { first } = this;
    return { row: first, offset: this.heights.top(first) - this.scrollTop };
  }

  get first() {
    return this.heights.at(this.scrollTop);
  }

  drawNow() {
    if (!this.source || !this.isConnected) return;
    const { length, row, key } = this.source;
    this.space.style.height = `${this.heights.total}px`;
    if (!length) return this.clear();
    const from = Math.max(0, this.heights.at(this.scrollTop) - BEYOND);
    const seen = this.heights.at(this.scrollTop + this.clientHeight);
    const to = Math.min(length - 1, seen + BEYOND, from + MOST - 1);
    for (const [number, { element }] of this.rows)
      if (number < from || number > to || number >= length) {
        if (element.contains(document.activeElement)) this.focus({ preventScroll: true });
        this.forget(element);
        this.rows.delete(number);
      }
    let next = this.space.firstElementChild; // in the order of rows, for those who hear or tab them
    for (let number = from; number <= to; number += 1) {
      const after = next?.nextElementSibling ?? null;
      const element = this.place(number, row, key);
      if (next && !next.isConnected) next = after; // it was made anew
      if (element === next) next = next.nextElementSibling;
      else this.space.insertBefore(element, next);
    }
    this.dispatchEvent(new CustomEvent("drawn", { detail: { from, to } }));
  }

  place(number, row, key) {
    const wanted = key(number);
    let known = this.rows.get(number);
    if (known && known.key !== wanted) {
      this.forget(known.element);
      known = null;
    }
    if (!known) {
      known = { key: wanted, element: row(number) };
      known.element.dataset.row = number;
      known.element.classList.add("row");
      this.rows.set(number, known);
      this.measure.observe(known.element);
    }
    known.element.style.transform = `translateY(${this.heights.top(number)}px)`;
    return known.element;
  }

  measured(entries) {
    const { first } = this;
    const offset = this.heights.top(first) - this.scrollTop; // of the row that is seen first
    let changed = false;
    for (const { target, borderBoxSize } of entries) {
      if (!target.isConnected) continue;
      const height = borderBoxSize[0].blockSize;
      if (height && this.heights.set(Number(target.dataset.row), height)) changed = true;
    }
    if (!changed) return;
    this.space.style.height = `${this.heights.total}px`;
    const wanted = this.heights.top(first) - offset;
    if (this.held) this.settle();
    else if (Math.abs(wanted - this.scrollTop) > 0.5) this.scrollTop = wanted;
    this.drawNow();
  }
}

customElements.define("virtual-list", VirtualList);

/** Arrow keys in a list whose rows come and go: the list keeps the focus, and one row is the active one.
 * `at()` is the row that is chosen, `open(row)` what Enter does, `moved(row)` what an arrow does to
 * where it leads, `fold(row, isOpen)` what the arrows to the side do; it says whether there was
 * something to do. */
export function arrows(list, { length, at, open, moved = () => {}, fold = () => false }) {
  let active = -1;
  list.active = (row) => {
    active = row;
    if (row < 0) list.removeAttribute("aria-activedescendant");
    else list.setAttribute("aria-activedescendant", `${list.classList[0]}-${row}`);
    mark();
  };
  const mark = () => {
    for (const [number, { element }] of list.rows) element.classList.toggle("active", number === active);
  };
  const move = (row) => {
    const to = Math.max(0, Math.min(length() - 1, row));
    list.reveal(to);
    list.active(to);
    moved(to);
  };
  list.addEventListener("drawn", mark);
  list.addEventListener("keydown", (event) => {
    if (event.target !== list || event.ctrlKey || event.metaKey || event.altKey || !length()) return;
    const from = active >= 0 ? active : at();
    const page = Math.max(1, Math.floor(list.clientHeight / 46) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) move(from + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") open(from);
    else if (!(event.key === "ArrowRight" || event.key === "ArrowLeft") || !fold(from, event.key === "ArrowRight")) return;
    event.preventDefault();
  });
}
