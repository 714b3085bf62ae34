// One job or task: how far it is, all that happened to it, its steps, and what can be done.

import { act, get, may } from "./api.js";
import { fill, h, line, shown, when } from "./dom.js";
import { listen } from "./live.js";
import { dialog, fail, failed, say } from "./notices.js";
import { go, href } from "./router.js";

const UNKNOWN = "step_began"; // of a step whose end was never written down

export function show(place, params) {
  const one = new Job(place, params);
  return { title: params.id, amend: (given) => one.amend(given), end: () => one.end() };
}

class Job {
  constructor(place, params) {
    this.place = place;
    this.params = params;
    this.stop = listen((message) => {
      const isAbout = message.items?.some?.((each) => each.task === this.task?.id || each.timeline === this.job?.lineage);
      if (message.kind === "reload" || isAbout) {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.load(), 300);
      }
    });
    this.load();
  }

  amend(params) {
    this.params = params;
    this.load();
  }

  end() {
    this.stop();
    clearTimeout(this.timer);
  }

  async load() {
    try {
      this.job = this.params.task ? null : await get("job", { id: this.params.id });
      this.task = await get("task", { id: this.job?.id ?? this.params.id }).catch((problem) => {
        if (problem.status === 404 && this.job) return null; // its task was forgotten
        throw problem;
      });
      this.draw();
    } catch (problem) {
      failed(this.place, problem, () => this.load());
    }
  }

  async run(path, body, said, options) {
    try {
      const done = await act(path, body, options);
      say(said);
      if (done.id && done.id !== this.params.id) go("job", { id: done.id }, { replace: true });
      else await this.load();
    } catch (problem) {
      fail(problem);
    }
  }

  draw() {
    const { job, task } = this;
    const focused = document.activeElement?.id;
    fill(
      this.place,
      h(
        "div",
        { class: "page" },
        h("p", { class: "quiet" }, h("a", { href: href("work", job ? {} : { what: "tasks" }) }, "Work")),
        h("div", { class: "heading" }, h("h1", {}, shown(job?.id ?? task.id)), h("span", { class: `state ${job?.state ?? task.state}` }, (job?.state ?? task.state).replace("_", " "))),
        h("p", { class: "text" }, shown(job?.prompt ?? task.text)),
        this.facts(),
        this.acts(),
        task && this.history(),
      ),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  facts() {
    const { job, task } = this;
    const rows = job
      ? [
          ["Turns", `${job.turns} of ${job.max_turns}`],
          ["Messages", job.messages],
          ["Agent", [job.agent, job.model].filter(Boolean).join(", ")],
          ["Directory", job.workspace],
          ["Last save", job.updated_at && when(job.updated_at)],
          ["Goes on from", job.checkpoint && h("a", { href: href("session", { timeline: job.lineage, at: job.checkpoint }) }, "this checkpoint")],
          ["Asks", job.question],
          ["Failed", job.failure],
          ["Why it cannot go on", job.can_resume ? null : job.why_not],
          ["Output", job.output === null ? null : JSON.stringify(job.output, null, 1)],
        ]
      : [
          ["Attempts", `${task.attempts} of ${task.max_attempts}`],
          ["Progress", task.progress.total ? `${task.progress.done} of ${task.progress.total}` : null],
          ["Asks", task.question],
          ["Failed", task.error_message],
          ["Result", task.result === null ? null : JSON.stringify(task.result, null, 1)],
        ];
    return h(
      "dl",
      { class: "facts-list card" },
      rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) =>
        h("div", {}, h("dt", {}, name), h("dd", { class: "text" }, typeof value === "object" ? value : shown(value))),
      ),
    );
  }

  acts() {
    const { job, task } = this;
    if (!may("act")) return null;
    const id = job?.id ?? task.id;
    const isOver = task && ["completed", "failed", "rolled_back"].includes(task.state);
    return h(
      "div",
      { class: "acts" },
      job?.can_resume && h("button", { id: "resume", class: "primary", onclick: () => this.resume() }, "Resume…"),
      (job?.question ?? task?.question) && h("a", { class: "button", href: href("inbox", { id }) }, "Answer"),
      !job && isOver && task.state !== "completed" && h("button", { id: "retry", onclick: () => this.run("tasks/retry", { id }, `${id} is back at work`) }, "Retry"),
      task && !isOver && h("button", { id: "cancel", onclick: () => this.run("tasks/cancel", { id }, `${id} is cancelled`) }, "Cancel"),
      job?.can_delete && h("button", { id: "delete", onclick: () => this.remove() }, "Delete…"),
      job && may("admin") && h("button", { id: "purge", onclick: () => this.purge() }, "Purge…"),
    );
  }

  resume() {
    const from = h("input", { placeholder: "its last save", "aria-label": "From which checkpoint" });
    const turns = h("input", { type: "number", min: 1, placeholder: "as before", "aria-label": "How many turns" });
    const keep = h("input", { type: "checkbox" });
    dialog("Resume this job", (close) => [
      h("p", {}, "A worker takes it up from its last save, under a new id. What its calls did outside of the files is not repeated by that, and not undone."),
      h("p", {}, h("label", {}, "From an earlier checkpoint ", from)),
      h("p", {}, h("label", {}, "Turns ", turns)),
      h("p", {}, h("label", {}, keep, " go on with the files as they lie there now")),
      h(
        "div",
        { class: "acts" },
        h(
          "button",
          {
            class: "primary",
            onclick: () => {
              close();
              const body = { id: this.job.id, keep_files: keep.checked };
              if (from.value.trim()) body.from = from.value.trim();
              if (turns.value) body.max_turns = Number(turns.value);
              this.run("jobs/resume", body, "It goes on when a worker takes it up");
            },
          },
          "Resume",
        ),
      ),
    ]);
  }

  remove() {
    dialog("Delete this job?", (close) => [
      h("p", {}, "It is taken out of the queue, and what it saved is hidden. ", h("code", {}, `hardsave undo --timeline ${this.job.lineage}`), " brings that back."),
      h("button", { class: "danger", onclick: () => (close(), this.run("job", {}, "Deleted", { method: "DELETE", query: { id: this.job.id } }).then(() => go("work"))) }, "Delete"),
    ]);
  }

  purge() {
    const typed = h("input", { "aria-label": "The name of the job" });
    dialog("Purge what this job saved?", (close) => [
      h("p", { class: "broke" }, "Its checkpoints, messages and files are removed from the store for good. This cannot be undone."),
      h("p", {}, h("label", {}, `Type ${this.job.lineage} to confirm `, typed)),
      h(
        "button",
        {
          class: "danger",
          onclick: () => {
            if (typed.value !== this.job.lineage) return typed.focus();
            close();
            this.run("purge", { timeline: this.job.lineage }, "Purged").then(() => go("work"));
          },
        },
        "Purge",
      ),
    ]);
  }

  history() {
    const ended = new Set(this.task.history.filter((each) => each.kind.startsWith("step_") && each.kind !== UNKNOWN).map((each) => each.about?.step));
    return h(
      "section",
      {},
      h("h2", {}, "What happened"),
      h(
        "ol",
        { class: "happened" },
        this.task.history.map((each) => {
          const isUnknown = each.kind === UNKNOWN && !ended.has(each.about?.step) && this.task.state !== "in_progress";
          return h(
            "li",
            { class: each.about?.error ? "broke" : "" },
            h("span", { class: "mono" }, each.kind.replaceAll("_", " ")),
            isUnknown && h("span", { class: "state failed", title: "the process died before it was over" }, "end not known"),
            h("span", { class: "quiet" }, when(each.at)),
            each.about?.by && h("span", { class: "quiet" }, `by ${shown(each.about.by)}`),
            each.about?.error && h("p", { class: "text" }, shown(each.about.error)),
            each.about?.traceback && h("details", {}, h("summary", {}, "Traceback"), h("pre", { class: "text" }, shown(each.about.traceback))),
            each.about?.question && h("p", {}, line(each.about.question, 300)),
          );
        }),
      ),
    );
  }
}
