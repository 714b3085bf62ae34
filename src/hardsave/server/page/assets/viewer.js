// One file at a checkpoint: its content, what has changed in it, and its own history.

import { address, get, readPart } from "./api.js";
import { bytes, fill, h, line, shown, when } from "./dom.js";
import { told } from "./history.js";
import { fail, failed, loading } from "./notices.js";
import { ROW, numbered, parse, rowElement, rowsOf } from "./patch.js";
import { amend } from "./router.js";
import { keepPlace } from "./scrolled.js";
import "./virtual.js";

const PART = 200_000; // bytes that are read at a time
const VIEWS = { content: "Content", changes: "Changes", history: "History" };

export class Viewer {
  constructor({ choose, close }) {
    this.choose = choose;
    this.reading = new AbortController();
    this.name = h("h3", { class: "mono" });
    this.tabs = Object.entries(VIEWS).map(([view, label]) => {
      const onclick = () => amend({ view: view === "content" ? "" : view });
      return h("button", { class: "small", dataset: { view }, onclick }, label);
    });
    this.download = h("a", { class: "button small" }, "Download");
    this.place = h("div", { class: "fills" });
    const back = h("button", { class: "plain", "aria-label": "Back to all files", onclick: close }, "←");
    this.element = h(
      "div",
      { class: "viewer fills" },
      h("div", { class: "top" }, back, this.name),
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
    if (isOtherFile) loading(this.place);
    this.read();
  }

  async read() {
    const { signal } = this.reading;
    try {
      await this[this.view](signal);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.code === "not_found") this.say(shown(problem.message));
      else failed(this.place, problem, () => this.read());
    }
  }

  // Content

  async content(signal) {
    const found = await this.part(0, signal);
    if (found.total === 0) return this.say("This file is empty.");
    if (found.bytes.subarray(0, 8000).includes(0)) return this.say(`This is no text: ${bytes(found.total)}.`);
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
    const next = bytes(Math.min(PART, total - this.read_));
    const more = h("button", { class: "small", onclick: () => this.more(more) }, `Show ${next} more`);
    const so = h("span", { class: "quiet" }, `The first ${bytes(this.read_)} of ${bytes(total)} `);
    this.place.append(h("p", { class: "rest" }, so, more));
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
    fill(this.place, h("p", { class: "nothing" }, text));
  }

  lines(lines, { split = false } = {}) {
    const rows = rowsOf(lines, { split });
    this.list = h("virtual-list", { class: "code", "aria-label": `Lines of ${line(this.path, 100)}` });
    fill(this.place, this.list);
    this.list.show({ length: rows.length, guess: ROW, row: (number) => rowElement(rows[number], { split }) });
    const { view, path, checkpoint } = this;
    keepPlace(this.list, "lines", () => `${view} ${view === "changes" ? checkpoint.id : ""} ${path}`)();
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
    const query = { ref: this.checkpoint.id, path: this.path, limit: 100, cursor };
    const { items, next } = await get("file/history", query, { signal });
    const rows = items.map((each) => this.version(each));
    if (!cursor) fill(this.place, (this.versions = h("div", { class: "versions" })));
    this.versions.append(...rows);
    if (!next) return;
    const older = () => (more.remove(), this.history(signal, next).catch(fail));
    const more = h("button", { class: "small", onclick: older }, "Show older ones");
    this.versions.append(more);
  }

  version({ checkpoint, change, size }) {
    const isHere = checkpoint.id === this.checkpoint.id;
    const onclick = () => this.choose(checkpoint, { view: "changes" });
    return h(
      "button",
      { class: "version plain", "aria-current": isHere ? "true" : null, onclick },
      h("span", { class: `change ${change}` }, change),
      h("span", { class: "mono" }, `:${checkpoint.seq}`),
      h("span", { class: "said" }, line(told(checkpoint)[1], 80)),
      h("span", { class: "quiet small" }, change === "removed" ? "" : bytes(size)),
      when(checkpoint.created_at),
    );
  }
}
