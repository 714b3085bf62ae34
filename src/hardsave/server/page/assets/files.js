// The files as they were at a checkpoint: what has changed since its parent, and all of them as a
// tree that is read by the directory.

import { get } from "./api.js";
import { SIGNS, bytes, count, fill, h, line, pathText, withoutFolders } from "./dom.js";
import { fail, failed } from "./notices.js";
import { amend, href, keep, kept } from "./router.js";
import { keepPlace } from "./scrolled.js";
import { Viewer } from "./viewer.js";
import { arrows } from "./virtual.js";

const PAGE = 1000;
const PAUSE = 120; // milliseconds for a person who moves through time to stop
const MOST_CHANGED = 200; // that are listed here; all are in the comparison

export class Files {
  constructor({ choose }) {
    this.checkpoint = null;
    this.levels = new Map(); // by directory: { items, next }
    this.open = new Set(kept().folders ?? [""]);
    this.shut = new Set(); // "changed" or "all"
    this.changes = new Map(); // paths that differ from the parent
    this.reading = new AbortController();
    this.rows = [];
    this.file = null;
    this.isFirst = true; // time that it is read
    this.viewer = new Viewer({ choose, close: () => amend({ file: "", view: "" }) });
    this.list = h("virtual-list", { class: "files", role: "tree", "aria-label": "Files" });
    arrows(this.list, {
      length: () => this.rows.length,
      at: () => Math.max(0, this.rows.findIndex((row) => row.path === this.file)),
      open: (row) => this.act(this.rows[row]),
      fold: (row, isOpen) => this.unfold(this.rows[row], isOpen),
    });
    this.goBack = keepPlace(this.list, "tree");
    this.number = h("span", { class: "quiet", role: "status" });
    this.body = h("div", { class: "fills body" }, this.list);
    this.element = h(
      "section",
      { class: "pane tree", "aria-label": "Files", id: "pane-files" },
      h("header", {}, h("h2", {}, "Files"), this.number),
      this.body,
    );
  }

  end() {
    clearTimeout(this.timer);
    this.reading.abort();
    this.viewer.end();
  }

  /** Shows the files at a checkpoint; `view` is a file that is looked at. */
  show(checkpoint, { file = null, view = null } = {}) {
    const isOther = checkpoint.id !== this.checkpoint?.id;
    const wasOpen = this.file !== null;
    this.file = file || null;
    this.element.classList.toggle("reads", this.file !== null);
    if (isOther) this.turn(checkpoint);
    if (this.file) {
      this.viewer.show(checkpoint, this.file, view ?? "content");
      if (this.element.lastElementChild !== this.viewer.element) this.body.replaceWith(this.viewer.element);
    } else if (wasOpen) {
      this.viewer.element.replaceWith(this.body);
      this.draw();
      this.list.focus({ preventScroll: true });
    }
  }

  turn(checkpoint) {
    this.checkpoint = checkpoint;
    this.reading.abort();
    this.reading = new AbortController();
    clearTimeout(this.timer);
    const total = checkpoint.summary?.files?.total;
    this.number.textContent = total === undefined ? "" : count(total, "file");
    if (checkpoint.workspace === null) {
      this.levels.clear();
      const way = "Agents save them beside each step; a program does with ";
      const code = h("code", {}, "save(…, workspace=…)");
      fill(this.body, h("p", { class: "nothing" }, `This checkpoint was saved without files. ${way}`, code, "."));
      return;
    }
    if (this.body.firstElementChild !== this.list) fill(this.body, this.list);
    this.timer = setTimeout(() => this.read(), this.levels.size ? PAUSE : 0);
  }

  // Reading

  async read() {
    const { checkpoint, reading } = this;
    try {
      const [top] = await Promise.all([this.level(""), this.compare()]);
      if (checkpoint !== this.checkpoint) return;
      if (top.files_id !== this.filesId) {
        this.filesId = top.files_id;
        this.levels = new Map([["", top]]);
        await Promise.all([...this.open].filter(Boolean).map((path) => this.readLevel(path)));
      }
      if (checkpoint !== this.checkpoint) return;
      this.draw();
      if (this.isFirst) this.goBack();
      this.isFirst = false;
    } catch (problem) {
      if (!reading.signal.aborted) failed(this.body, problem, () => (fill(this.body, this.list), this.read()));
    }
  }

  async level(path, cursor = null) {
    const { signal } = this.reading;
    return get("files", { ref: this.checkpoint.id, path, limit: PAGE, cursor }, { signal });
  }

  async readLevel(path) {
    try {
      this.levels.set(path, await this.level(path));
    } catch (problem) {
      if (problem.code !== "not_found") throw problem; // it was no directory then
      this.open.delete(path);
    }
  }

  async more(path) {
    const known = this.levels.get(path);
    const { items, next } = await this.level(path, known.next);
    this.levels.set(path, { items: [...known.items, ...items], next });
    this.draw();
  }

  /** What differs from the parent, if there is one to compare with. */
  async compare() {
    const { id, parent } = this.checkpoint;
    const { signal } = this.reading;
    this.changes = new Map();
    if (parent === null || !this.checkpoint.summary?.files) return;
    try {
      const { files } = await get("diff", { from: parent, to: id }, { signal });
      for (const kind of ["removed", "changed", "added"])
        for (const path of withoutFolders(files[kind])) if (typeof path === "string") this.changes.set(path, kind);
    } catch (problem) {
      if (problem.code !== "not_found") throw problem; // the parent was deleted
    }
  }

  // Rows

  draw() {
    this.above = new Set(); // directories with changes in them
    for (const path of this.changes.keys())
      for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) this.above.add(path.slice(0, at));
    this.rows = [];
    if (this.changes.size) this.changed();
    this.rows.push({ group: "all", text: "All files", level: 1 });
    if (!this.shut.has("all")) this.below("", 2);
    this.list.show({
      length: this.rows.length,
      guess: 28,
      row: (number) => this.element_(this.rows[number], number),
      key: (number) => JSON.stringify([this.rows[number], this.isOpen(this.rows[number])]),
    });
  }

  changed() {
    const { size } = this.changes;
    this.rows.push({ group: "changed", text: `Changed here (${size.toLocaleString("en")})`, level: 1 });
    if (this.shut.has("changed")) return;
    const some = [...this.changes].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MOST_CHANGED);
    for (const [path, change] of some) this.rows.push({ path, change, text: path, level: 2, isChange: true });
    const { timeline, parent: from, id: to } = this.checkpoint;
    if (some.length < size) this.rows.push({ text: "Compare all", level: 2, link: href("diff", { timeline, from, to }) });
  }

  below(path, level) {
    const { items, next } = this.levels.get(path) ?? { items: [] };
    for (const { path: at, name, kind, size, target } of items) {
      const isFolder = kind === "directory";
      const change = this.changes.get(at) ?? (isFolder && this.above.has(at) ? "inside" : null);
      this.rows.push({ path: at, text: name, isFolder, size, target, kind, change, level });
      if (isFolder && this.open.has(at)) this.below(at, level + 1);
    }
    if (next) this.rows.push({ text: "Show more", more: path, level });
  }

  isOpen({ group, path, isFolder }) {
    return group ? !this.shut.has(group) : isFolder && this.open.has(path);
  }

  act(row) {
    if (!row) return;
    if (row.group || row.isFolder) this.unfold(row, !this.isOpen(row));
    else if (row.link) location.hash = row.link;
    else if (row.more !== undefined) this.more(row.more).catch(fail);
    else if (typeof row.path === "string" && row.kind !== "symlink")
      amend({ file: row.path, view: row.isChange ? "changes" : "" });
  }

  unfold(row, isOpen) {
    if (!row || !(row.group || row.isFolder) || this.isOpen(row) === isOpen) return false;
    if (row.group) this.shut[isOpen ? "delete" : "add"](row.group);
    else this.open[isOpen ? "add" : "delete"](row.path);
    keep({ folders: [...this.open] });
    if (row.isFolder && isOpen && !this.levels.has(row.path)) this.readLevel(row.path).then(() => this.draw(), fail);
    else this.draw();
    return true;
  }

  element_(row, number) {
    const isFold = row.group || row.isFolder;
    const isPath = typeof row.path === "string" || row.path === undefined;
    const made = h(
      "div",
      {
        id: `files-${number}`,
        role: "treeitem",
        "aria-level": row.level,
        "aria-expanded": isFold ? String(this.isOpen(row)) : null,
        class: `entry${row.group ? " group" : ""}${isPath ? "" : " quiet"}`,
        title: isPath ? null : "Its name is no UTF-8: the command line shows it",
        onclick: () => this.act(row),
      },
      h("span", { class: "arrow" }, isFold ? (this.isOpen(row) ? "▾" : "▸") : ""),
      h(
        "span",
        { class: row.isChange ? "name path" : "name" },
        pathText(row.text),
        row.kind === "symlink" && h("span", { class: "quiet" }, ` → ${line(pathText(row.target), 80)}`),
      ),
      row.change && h("span", { class: `mark ${row.change}`, title: row.change }, SIGNS[row.change] ?? "•"),
      row.kind === "file" && h("span", { class: "quiet small size" }, bytes(row.size)),
    );
    made.style.paddingLeft = `${(row.level - 1) * 0.9 + 0.4}rem`;
    return made;
  }
}
