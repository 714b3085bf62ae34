// One file at a checkpoint: its content, what has changed in it, and its own history.

import { address, get, readPart } from "./api.js";
import { bytes, fill, h, line, shown, when } from "./dom.js";
import { failed } from "./notices.js";
import { ROW, numbered, parse, rowElement, rowsOf } from "./patch.js";
import { amend } from "./router.js";
import "./virtual.js";

const PART = 200_000; // bytes that are read at a time
const VIEWS = { content: "Content", changes: "Changes", history: "History" };

export class Viewer {
  constructor({ choose, close }) {
    this.choose = choose;
    this.reading = new AbortController();
    this.name = h("h3", { class: "mono" });
    this.tabs = Object.entries(VIEWS).map(([view, label]) =>
      h("button", { class: "small", onclick: () => amend({ view: view === "content" ? "" : view }), dataset: { view } }, label),
    );
    this.download = h("a", { class: "button small" }, "Download");
    this.place = h("div", { class: "fills" });
    this.element = h(
      "div",
      { class: "viewer fills" },
      h("div", { class: "top" }, h("button", { class: "plain", "aria-label": "Back to all files", title: "Back to all files", onclick: close }, "←"), this.name),
      h("div", { class: "tabs" }, this.tabs, h("span", { class: "gap" }), this.download),
      this.place,
    );
  }

  end() {
    this.reading.abort();
  }

  show(checkpoint, path, view) {
    const wanted = `${checkpoint.id} ${view} ${path}`;
    if (wanted === this.shown) return;
    const isOtherFile = path !== this.path || view !== this.view;
    Object.assign(this, { shown: wanted, checkpoint, path, view: VIEWS[view] ? view : "content" });
    this.name.textContent = shown(path);
    this.name.title = shown(path);
    this.download.href = address("file", { ref: checkpoint.id, path });
    this.download.setAttribute("download", path.split("/").at(-1));
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.dataset.view === this.view));
    this.reading.abort();
    this.reading = new AbortController();
    if (isOtherFile) fill(this.place, h("p", { class: "quiet loading" }, "Loading…"));
    this.read();
  }

  async read() {
    const { reading } = this;
    const { signal } = reading;
    try {
      await { content: () => this.content(signal), changes: () => this.changes(signal), history: () => this.history(signal) }[this.view]();
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.code === "not_found") fill(this.place, h("p", { class: "nothing quiet" }, shown(problem.message)));
      else failed(this.place, problem, () => this.read());
    }
  }

  // Content

  async content(signal) {
    const found = await this.part(0, signal);
    if (found.total === 0) return this.say("This file is empty.");
    if (found.bytes.subarray(0, 8000).includes(0))
      return this.say(`This is no text: ${bytes(found.total)} that only a program reads. Download it to look at it.`);
    this.decoder = new TextDecoder("utf-8");
    this.text = "";
    this.take(found);
  }

  async part(first, signal) {
    try {
      return await readPart({ ref: this.checkpoint.id, path: this.path }, [first, first + PART], { signal });
    } catch (problem) {
      if (problem.status === 416) return { bytes: new Uint8Array(), total: first };
      throw problem;
    }
  }

  take({ bytes: read, total }) {
    this.read_ = (this.text ? this.read_ : 0) + read.length;
    const isAll = this.read_ >= total;
    this.text += this.decoder.decode(read, { stream: !isAll });
    this.lines(numbered(isAll ? this.text.replace(/\n$/, "") : this.text));
    if (isAll) return;
    const more = h("button", { class: "small", onclick: () => this.more(more) }, `Show ${bytes(Math.min(PART, total - this.read_))} more`);
    this.place.append(h("p", { class: "rest" }, h("span", { class: "quiet" }, `The first ${bytes(this.read_)} of ${bytes(total)} `), more));
  }

  async more(button) {
    button.disabled = true;
    const { signal } = this.reading;
    const top = this.list.scrollTop;
    try {
      const found = await this.part(this.read_, signal);
      this.take(found);
      this.list.scrollTop = top;
    } catch (problem) {
      if (!signal.aborted) failed(this.place, problem, () => this.read());
    }
  }

  say(text) {
    fill(this.place, h("p", { class: "nothing quiet" }, text));
  }

  lines(lines, { split = false } = {}) {
    const rows = rowsOf(lines, { split });
    this.list = h("virtual-list", { class: "code", "aria-label": `Lines of ${line(this.path, 100)}` });
    fill(this.place, this.list);
    this.list.show({ length: rows.length, guess: ROW, row: (number) => rowElement(rows[number], { split }) });
  }

  // Changes and history

  async changes(signal) {
    const { id, parent } = this.checkpoint;
    if (parent === null) return this.say("This is the first checkpoint: there is none before it to compare with.");
    const { unified, is_cut } = await get("diff/file", { from: parent, to: id, path: this.path }, { signal });
    const lines = parse(unified);
    if (!lines.length) return this.say("It is the same as in the step before. Its history says where it was changed.");
    this.lines(lines);
    if (is_cut) this.place.append(h("p", { class: "rest quiet" }, "Only the first million characters are shown."));
  }

  async history(signal, cursor = null) {
    const { items, next } = await get("file/history", { ref: this.checkpoint.id, path: this.path, limit: 100, cursor }, { signal });
    const rows = items.map((each) => this.version(each));
    const more = next && h("button", { class: "small", onclick: () => (more.remove(), this.history(this.reading.signal, next)) }, "Show older ones");
    if (cursor) return this.versions.append(...rows, ...(more ? [more] : []));
    this.versions = h("div", { class: "versions", tabindex: 0, role: "group", "aria-label": "History of this file" }, rows, more);
    fill(this.place, this.versions);
  }

  version({ checkpoint, change, size }) {
    const isHere = checkpoint.id === this.checkpoint.id;
    return h(
      "button",
      { class: "version plain", "aria-current": isHere ? "true" : null, onclick: () => this.choose(checkpoint, { view: "changes" }) },
      h("span", { class: `change ${change}` }, change),
      h("span", { class: "mono" }, `:${checkpoint.seq}`),
      h("span", { class: "said" }, line(checkpoint.summary?.call || checkpoint.summary?.said || checkpoint.description, 80)),
      h("span", { class: "quiet small" }, change === "removed" ? "" : bytes(size)),
      when(checkpoint.created_at),
    );
  }
}
