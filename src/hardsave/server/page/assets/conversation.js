// The conversation as it was at a checkpoint: read by the page, wherever a person looks.

import { address, get, readSome } from "./api.js";
import { count, fill, h, settled, shown } from "./dom.js";
import { REACH, longest, message } from "./message.js";
import { fail, failed } from "./notices.js";
import { amend, here, href, keep, kept } from "./router.js";
import { Folded, sections } from "./sections.js";
import "./virtual.js";

const BLOCK = 50; // messages that are read at once
const MOST_KEPT = 3000; // that are kept at hand
const WHOLE = 1_000_000; // characters of a text that are read at most
const PAUSE = 60; // milliseconds for a person who moves through time to stop
const GUESS = 90; // pixels of a message
const KEPT = 150; // milliseconds without scrolling, after which a place is kept

export class Conversation {
  constructor() {
    this.checkpoint = null;
    this.total = 0;
    this.messages = new Map(); // of this checkpoint, by number
    this.stale = new Map(); // of the one before: shown until these are read
    this.asked = new Set();
    this.reading = new AbortController();
    this.opened = new Set();
    this.except = new Set(); // sections that are not as all others are
    this.onlyPrompts = false;
    this.made = 0;
    this.folded = new Folded([], 0, () => false);
    this.build();
  }

  build() {
    this.list = h("virtual-list", { class: "conversation", role: "feed", "aria-label": "Messages" });
    this.list.addEventListener("drawn", ({ detail }) => this.need(detail));
    this.list.addEventListener("scroll", () => this.tellNew(), { passive: true });
    this.list.addEventListener("scroll", settled(() => this.keep(), KEPT), { passive: true });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.number = h("span", { class: "quiet", role: "status" });
    const fold = () => amend({ fold: this.onlyPrompts ? "" : "prompts" });
    this.toggle = h("button", { class: "small", "aria-pressed": "false", onclick: fold }, "Prompts only");
    this.goTo = h("input", {
      class: "small number",
      type: "number",
      min: 0,
      placeholder: "#",
      "aria-label": "Go to message number",
      onchange: () => this.goTo.value !== "" && amend({ message: this.goTo.value }),
    });
    this.fresh = h("button", { class: "fresh primary small", hidden: true, onclick: () => this.toEnd() });
    this.body = h("div", { class: "fills body" }, this.list, this.fresh);
    this.element = h(
      "section",
      { class: "pane talk", "aria-label": "Conversation", id: "pane-conversation" },
      h("header", {}, h("h2", {}, "Conversation"), this.number, h("span", { class: "gap" }), this.toggle, this.goTo),
      this.body,
    );
  }

  end() {
    clearTimeout(this.timer);
    this.reading.abort();
  }

  // What is shown

  /** Shows the conversation at a checkpoint. `past` are those that led to it, the oldest first. What
   * is only added to stays where a person has scrolled to. */
  show(checkpoint, past, { isGrown = false } = {}) {
    if (checkpoint.id !== this.checkpoint?.id) {
      const [wasAtEnd, before] = [this.list.isAtEnd, this.total];
      this.turn(checkpoint);
      this.past = past;
      this.lay(checkpoint.summary?.messages ?? this.total);
      if (!isGrown || wasAtEnd || this.total < before) this.toEnd();
      else this.tellNew(Math.max(0, this.total - before));
    } else if (past.length !== this.past.length) {
      this.past = past; // more of what led to it was read
      this.lay(this.total);
    }
  }

  turn(checkpoint) {
    this.reading.abort();
    this.reading = new AbortController();
    this.stale = new Map([...this.stale, ...this.messages]);
    this.messages = new Map();
    this.asked = new Set();
    this.isRead = false;
    this.checkpoint = checkpoint;
    const isBusy = performance.now() - (this.turned ?? -PAUSE) < PAUSE * 3;
    this.turned = performance.now();
    clearTimeout(this.timer);
    this.isPaused = isBusy;
    if (!isBusy) return;
    this.timer = setTimeout(() => {
      this.isPaused = false;
      this.list.drawNow();
    }, PAUSE);
  }

  /** Lays the rows out: so many messages, folded by prompts. */
  lay(total, { fresh = false } = {}) {
    this.total = total;
    this.folded = new Folded(sections(this.past, total), total, (start) => this.onlyPrompts !== this.except.has(start));
    this.toggle.hidden = this.folded.isPlain;
    this.goTo.max = Math.max(0, total - 1);
    this.number.textContent = count(total, "message");
    this.list.show({
      length: this.folded.length,
      guess: GUESS,
      row: (row) => this.row(this.folded.at(row)),
      key: (row) => this.key_(this.folded.at(row)),
      fresh,
    });
    if (!total && !this.isRead && !this.isPaused) this.read(0);
  }

  toEnd() {
    this.list.end();
    this.tellNew();
  }

  /** A button leads to messages that came while a person looked at others. */
  tellNew(more = 0) {
    this.unseen = this.list.isAtEnd ? 0 : (this.unseen ?? 0) + more;
    this.fresh.hidden = !this.unseen;
    if (this.unseen) this.fresh.textContent = `${count(this.unseen, "new message")} ↓`;
  }

  /** Has a message at the top, and keeps it there. */
  jump(number, offset = 0) {
    const to = Math.max(0, Math.min(Number(number) || 0, this.total - 1));
    if (!this.total) return;
    const section = this.folded.sectionOf(to);
    if (this.folded.isShut(section)) this.fold(section);
    this.isPaused = false;
    this.list.jump(this.folded.row(to), offset);
    this.tellNew();
  }

  /** Keeps where a person looks; nothing at the end, so that what comes later is seen. */
  keep() {
    if (!this.list.isConnected || !this.total) return;
    const { row, offset } = this.list.anchor;
    keep({ talk: this.list.isAtEnd ? null : { number: this.folded.at(row).number, offset } });
  }

  /** Goes where a person has looked before a reload; whether there was such a place. */
  restore() {
    const { talk } = kept();
    if (!talk || talk.number >= this.total) return false;
    this.jump(talk.number, talk.offset);
    return true;
  }

  fold(section) {
    if (this.except.has(section.start)) this.except.delete(section.start);
    else this.except.add(section.start);
    const row = this.folded.row(section.start);
    const offset = this.list.heights.top(row) - this.list.scrollTop;
    this.lay(this.total, { fresh: true });
    this.list.jump(this.folded.row(section.start), Math.max(0, offset));
  }

  foldAll(onlyPrompts) {
    if (onlyPrompts === this.onlyPrompts) return;
    const { number } = this.folded.length ? this.folded.at(this.list.first) : { number: 0 };
    this.onlyPrompts = onlyPrompts;
    this.except.clear();
    this.toggle.setAttribute("aria-pressed", String(onlyPrompts));
    if (!this.past) return;
    this.lay(this.total, { fresh: true });
    this.list.jump(this.folded.row(number));
  }

  key(event) {
    if (event.target !== this.list || !this.total) return;
    if (event.key === "Home") this.list.jump(0);
    else if (event.key === "End") this.toEnd();
    else return;
    event.preventDefault();
  }

  // Rows

  message(number) {
    return this.messages.get(number) ?? this.stale.get(number) ?? null;
  }

  key_({ number, section, isShut }) {
    const one = isShut ? null : this.message(number);
    const about = section ? `${section.count} ${isShut}` : "";
    return `${number} ${one?.key ?? ""} ${one?.reach ?? ""} ${this.isNew(number)} ${about}`;
  }

  isNew(number) {
    return number >= this.total - (this.checkpoint?.summary?.new_messages ?? 0);
  }

  row({ number, section, isShut }) {
    const one = isShut ? null : this.message(number);
    const link = h("a", { class: "quiet small", href: this.linkTo(number) }, `#${number}`);
    const body = isShut
      ? h("p", { class: "text prompt" }, shown(section.prompt))
      : one
        ? message(one, { opened: this.opened, more: (each) => this.more(each), number: link })
        : [h("header", {}, h("span", { class: "role" }, "…"), link), h("div", { class: "blank" })];
    const kind = one?.role === "user" && one.text ? "user" : one && !one.text && !isShut ? "work" : "";
    return h(
      "article",
      {
        class: `message ${isShut ? "shut" : kind}${this.isNew(number) ? " new" : ""}`,
        "aria-posinset": number + 1,
        "aria-setsize": this.total,
        "aria-label": `Message ${number}`,
        dataset: { number },
      },
      section && this.bar(section, isShut),
      body,
    );
  }

  bar(section, isShut) {
    return h(
      "button",
      { class: "bar plain", "aria-expanded": String(!isShut), onclick: () => this.fold(section) },
      h("span", { class: "arrow" }, isShut ? "▸" : "▾"),
      section.prompt ? `Prompt ${section.number}` : "Before the first prompt",
      h("span", { class: "quiet small" }, count(section.count, "message")),
    );
  }

  linkTo(number) {
    return href("session", { ...here().params, message: number });
  }

  // Reading

  /** Reads what is seen and not known. */
  need({ from, to }) {
    if (this.isPaused || !this.checkpoint) return;
    for (let row = from; row <= Math.min(to, this.folded.length - 1); row += 1) {
      const { number, isShut } = this.folded.at(row);
      if (!isShut && !this.messages.has(number)) this.read(number - (number % BLOCK));
    }
  }

  async read(start) {
    if (this.asked.has(start)) return;
    this.asked.add(start);
    const { reading, checkpoint } = this;
    try {
      const found = await get("messages", { ref: checkpoint.id, start, limit: BLOCK }, { signal: reading.signal });
      if (checkpoint === this.checkpoint) this.take(found);
    } catch (problem) {
      if (reading.signal.aborted) return;
      this.asked.delete(start);
      if (this.messages.size) fail(problem);
      else failed(this.body, problem, () => (fill(this.body, this.list, this.fresh), this.read(start)));
    }
  }

  take({ items, total, key }) {
    this.isRead = true;
    for (const item of items) {
      const known = this.stale.get(item.number);
      const isSame = known && JSON.stringify(known.read) === JSON.stringify(item);
      this.messages.set(item.number, isSame ? known : { ...item, read: item, key: (this.made += 1) });
    }
    this.drop();
    if (total !== this.total) this.lay(total);
    else this.list.drawNow();
    if (!total) this.empty(key);
    else if (this.none) this.none = this.none.remove();
  }

  /** What is far from where a person looks is read again when they come back. */
  drop() {
    if (this.stale.size > MOST_KEPT) this.stale.clear();
    if (this.messages.size <= MOST_KEPT) return;
    this.messages.clear();
    this.asked.clear();
  }

  /** Shows all of a message, or more of it. */
  async more(one) {
    let now = { ...one, reach: (one.reach ?? 0) + REACH };
    try {
      if (!one.isWhole && one.is_cut) {
        const { items } = await get("messages", { ref: this.checkpoint.id, start: one.number, limit: 1, most: WHOLE });
        now = { ...items[0], read: one.read, key: one.key, isWhole: true, reach: REACH };
      }
    } catch (problem) {
      return fail(problem);
    }
    now.isAll = now.reach >= longest(now);
    if (now.isAll && now.is_cut) now.link = this.download(one.number);
    this.messages.set(one.number, now);
    this.list.drawNow();
  }

  download(number) {
    const whole = address("messages", { ref: this.checkpoint.id, start: number, limit: 1, full: true });
    return h("a", { href: whole, download: `message-${number}.json` }, "download the message");
  }

  /** A state without messages is shown as what it is. */
  empty(key) {
    this.none?.remove();
    const state = h("pre", { class: "text", hidden: true });
    const show = h("button", { onclick: () => this.showState(state, show) }, "Show its state");
    this.none = h(
      "div",
      { class: "nothing" },
      h("p", {}, key ? "Nothing was said by then." : "The state of this checkpoint has no list of messages."),
      show,
      state,
    );
    this.body.append(this.none);
  }

  async showState(place, button) {
    try {
      const { text, isCut } = await readSome("state", { ref: this.checkpoint.id }, REACH);
      place.textContent = shown(text) + (isCut ? "…" : "");
      place.hidden = false;
      button.remove();
    } catch (problem) {
      fail(problem);
    }
  }
}
