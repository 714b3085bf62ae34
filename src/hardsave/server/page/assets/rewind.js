// Taking a session back: what it would do to this machine's files and to the conversation, compared
// with the disk; then exactly that, or nothing.

import { act } from "./api.js";
import { count, fill, h, line, pathText, shown } from "./dom.js";
import { told } from "./history.js";
import { dialog, loading } from "./notices.js";
import "./virtual.js";

const WHATS = [
  ["all", "Conversation and files"],
  ["state", "Conversation only"],
  ["files", "Files only"],
  ["paths", "Some files"],
];
const NOTHING_LOST =
  "Nothing is lost: what is left behind stays in the history, and one click takes this back.";
const STALE = "Nothing was done: this preview is out of date. The session or its files have changed since.";
const GO = { all: "Rewind both", state: "Rewind the conversation", files: "Bring files back" };
const MOST_PATHS = 1000; // that can be named one by one

/** Asks, and does it; gives the server's answer, or nothing if it was left. `left` is what the head
 * has more: { found, isAll }. */
export function rewind(timeline, checkpoint, left) {
  return dialog(
    `Rewind to :${checkpoint.seq}`,
    (close) => new Asking(timeline, checkpoint, left, close).element,
    { wide: true },
  );
}

class Asking {
  constructor(timeline, checkpoint, left, close) {
    Object.assign(this, { timeline, checkpoint, left, close });
    this.hasFiles = checkpoint.workspace !== null;
    this.chosen = { what: this.hasFiles ? "all" : "state", scope: null, git: false, tasks: false };
    this.picked = new Set();
    this.asked = new AbortController();
    this.build();
    this.preview();
  }

  build() {
    this.place = h("div", { class: "preview", "aria-live": "polite" });
    this.list = h("virtual-list", { class: "paths", role: "list", "aria-label": "Files", hidden: true });
    this.trouble = h("div", { role: "alert" });
    this.options = h("div", { class: "filters" });
    this.go = h("button", { class: "primary", disabled: true, onclick: () => this.apply() }, "Rewind");
    const where = h("q", {}, line(told(this.checkpoint)[1], 160));
    const legend = h("legend", { class: "unseen" }, "What goes back");
    this.element = [
      h("p", {}, "This session goes back to ", where, `. ${NOTHING_LOST}`),
      h("fieldset", { class: "choice" }, legend, WHATS.map((each) => this.radio(each))),
      this.options,
      this.trouble,
      this.place,
      this.list,
      h("div", { class: "acts end" }, h("button", { onclick: () => this.close() }, "Cancel"), this.go),
    ];
  }

  radio([what, label]) {
    const isChosen = this.chosen.what === what;
    return h(
      "label",
      { class: "pick" },
      h("input", {
        type: "radio",
        name: "what",
        checked: isChosen,
        autofocus: isChosen,
        disabled: !this.hasFiles && what !== "state",
        onchange: () => {
          this.chosen.what = what;
          this.picked.clear();
          this.preview();
        },
      }),
      label,
    );
  }

  check(label, name, value = true) {
    const box = h("input", {
      type: "checkbox",
      checked: this.chosen[name] === value,
      onchange: () => {
        this.chosen[name] = box.checked ? value : value === true ? false : "mine";
        this.preview();
      },
    });
    return h("label", {}, box, ` ${label}`);
  }

  // Asking the server

  get body() {
    const { what, scope, git, tasks } = this.chosen;
    const body = { timeline: this.timeline, ref: this.checkpoint.id, what: what === "paths" ? "files" : what };
    if (what === "paths" && this.picked.size) body.paths = [...this.picked];
    if (what !== "state") Object.assign(body, scope && { scope }, git && { git });
    return tasks ? { ...body, tasks } : body;
  }

  async preview() {
    this.asked.abort();
    const asked = (this.asked = new AbortController());
    this.go.disabled = true;
    if (!this.found) loading(this.place, "Comparing with the disk…");
    try {
      const found = await act("rewind/preview", this.body);
      if (asked.signal.aborted) return;
      fill(this.trouble);
      this.found = found;
      this.shown(found);
    } catch (problem) {
      if (!asked.signal.aborted) this.refused(problem);
    }
  }

  async apply() {
    this.go.disabled = true;
    try {
      const done = await act("rewind", this.body, { match: this.found.plan });
      this.close(done);
    } catch (problem) {
      this.refused(problem);
    }
  }

  /** Says why not, and what can be done about it. */
  refused(problem) {
    const again = h("button", { class: "small", onclick: () => this.preview() }, "Preview again");
    if (problem.status === 412) {
      fill(this.trouble, h("div", { class: "broke" }, h("p", {}, STALE), again));
      again.focus();
      return;
    }
    const isShared = problem.code === "conflict" && !this.chosen.scope && this.chosen.what !== "state";
    this.found = null;
    this.list.hidden = true;
    fill(this.place);
    const why = shown(isShared ? problem.message.split(";")[0] : problem.message);
    const way = isShared ? this.scopes() : again;
    fill(this.trouble, h("div", { class: isShared ? "asked" : "broke" }, h("p", {}, why), way));
  }

  scopes() {
    const choice = (scope, label) =>
      h("button", { class: "small", onclick: () => ((this.chosen.scope = scope), this.preview()) }, label);
    const both = [choice("mine", "Only what this session changed"), choice("everyone", "All of it")];
    return h("div", { class: "acts" }, both);
  }

  // The preview

  shown(found) {
    const { files, tasks, messages_left } = found;
    const { what } = this.chosen;
    const movesHead = what === "all" || what === "state";
    const isSome = what === "paths";
    if (!isSome || !this.candidates || !this.picked.size) this.candidates = files;
    const hasGit = files?.checkout?.can_return || files?.git || this.chosen.git;
    fill(
      this.options,
      hasGit && this.check("git: branch and index, too", "git"),
      this.chosen.scope && this.check("files that other sessions changed, too", "scope", "everyone"),
      (tasks.length > 0 || this.chosen.tasks) && this.check("roll back tasks", "tasks"),
    );
    fill(
      this.place,
      h(
        "ul",
        { class: "said-first" },
        movesHead && messages_left !== null && h("li", {}, `${leaving(messages_left)} left behind`),
        files && h("li", {}, this.sum(files)),
        this.outside(movesHead),
        tasks.map((each) => h("li", {}, `Task ${line(each.id ?? each.task ?? "", 60)} is rolled back`)),
        files && gitLines(files),
      ),
    );
    this.list.hidden = !files;
    if (files) this.paths(isSome ? this.candidates : files, isSome);
    const { created = [], changed = [], removed = [] } = files ?? {};
    const isNothing = !movesHead && !(created.length + changed.length + removed.length);
    this.go.disabled = (isSome && !this.picked.size) || isNothing;
    this.go.textContent = isSome ? `Bring ${count(this.picked.size, "path")} back` : GO[what];
  }

  sum({ created, changed, removed, workspace }) {
    const parts = [
      created.length && `${count(created.length, "file comes", "files come")} back`,
      changed.length && count(changed.length, "file changes", "files change"),
      removed.length && count(removed.length, "file goes", "files go"),
    ].filter(Boolean);
    const where = h("span", { class: "quiet" }, ` in ${pathText(workspace)}`);
    return parts.length ? [parts.join(", "), where] : ["The files are as they were then", where];
  }

  outside(movesHead) {
    const { found, isAll } = this.left;
    const all = found.flatMap((each) => each.summary?.outside ?? []);
    if (movesHead && !isAll) all.push("perhaps more, in older steps than were read");
    if (!movesHead || !all.length) return null;
    const some = [...new Set(all)];
    const more = some.length > 5 ? ` and ${some.length - 5} more` : "";
    const calls = `${count(all.length, "call")} reached outside and ${all.length === 1 ? "stays" : "stay"} done`;
    const which = some.slice(0, 5).map((each) => line(each));
    return h("li", { class: "warning" }, `${calls}: ${which.join("; ")}${more}`);
  }

  /** All paths in one list, by what becomes of them. */
  paths(files, isSome) {
    const group = (kind, sign, label, paths) => {
      const found = paths.map((each) => ({ kind, sign, path: each.reason ? each.path : each, why: why(each) }));
      return found.length ? [{ label, kind, count: found.length }, ...found] : [];
    };
    const rows = [
      ...group("added", "+", "Come back", files.created),
      ...group("changed", "~", "Change", files.changed),
      ...group("removed", "−", "Go", files.removed),
      ...group("kept", "=", "Stay as they are", files.kept),
      ...group("missing", "!", "Cannot come back", [...files.missing, ...files.not_saved]),
    ];
    this.list.hidden = !rows.length;
    this.list.style.height = `${Math.min(rows.length * 28 + 2, 300)}px`;
    this.list.show({
      length: rows.length,
      guess: 28,
      row: (number) => this.pathRow(rows[number], isSome),
      key: (number) => JSON.stringify([rows[number], isSome]),
    });
  }

  pathRow({ label, kind, sign, path, why: reason, count: number }, isSome) {
    if (label) return h("div", { class: "entry group", role: "listitem" }, `${label} (${number.toLocaleString("en")})`);
    const canPick = isSome && typeof path === "string" && ["added", "changed", "removed"].includes(kind);
    const name = [
      h("span", { class: `mark ${kind}` }, sign),
      h("span", { class: "name path" }, pathText(path)),
      reason && h("span", { class: "quiet small" }, line(reason)),
    ];
    if (!canPick) return h("div", { class: "entry", role: "listitem" }, name);
    const onchange = () => this.pick(box, path);
    const box = h("input", { type: "checkbox", checked: this.picked.has(path), onchange });
    return h("div", { class: "entry", role: "listitem" }, h("label", {}, box, name));
  }

  pick(box, path) {
    if (!box.checked) this.picked.delete(path);
    else if (this.picked.size < MOST_PATHS) this.picked.add(path);
    else box.checked = false;
    this.preview();
  }
}

function leaving(messages) {
  return messages ? count(messages, "message is", "messages are") : "No message is";
}

function why({ reason, is_gone }) {
  if (!reason) return "";
  return is_gone === undefined ? reason : `${reason}; ${is_gone ? "it is gone" : "it stays as it is now"}`;
}

/** Where git was then and is now, and what becomes of that. */
function gitLines({ git, checkout }) {
  const where = (state) => line(state?.branch ?? state?.commit?.slice(0, 12) ?? "no commit", 60);
  if (git) {
    const left = git.left_behind.map((each) => line(each.subject, 60));
    const commits = `${count(left.length, "commit")}${git.is_all ? "" : " or more"} left behind`;
    return [
      h("li", {}, `git goes from ${where(git.before)} to ${where(git.after)}`),
      left.length > 0 && h("li", { class: "warning" }, `${commits}: ${left.slice(0, 3).join("; ")}`),
    ];
  }
  if (!checkout) return null;
  const stays = checkout.can_return ? "stays there, unless you have it taken back, too" : "stays there";
  return h("li", { class: "warning" }, `git was on ${where(checkout.then)}, is on ${where(checkout.now)} and ${stays}`);
}
