// One job or task: how far it is, its steps, all that happened to it, and what can be done.

import { actKeys, jobActs, taskActs } from "./acts.js";
import { address, get } from "./api.js";
import { facts, fill, h, heading, later, line, shown, state, when } from "./dom.js";
import { keys } from "./keys.js";
import { listen } from "./live.js";
import { failed } from "./notices.js";
import { go, href } from "./router.js";

const SHOWN = 200; // happenings, at first and more
const ENDS = { began: "unknown", raised: "failed", returned: "done" }; // calls of a job, as steps of a task

export function show(place, params) {
  return new Job(place, params);
}

class Job {
  constructor(place, params) {
    this.title = params.id;
    this.place = place;
    this.params = params;
    this.later = later(() => this.load());
    this.asked = new AbortController();
    this.build();
    const forgetKeys = keys("Job or task", [
      ...actKeys(() => this.parts.acts),
      { key: "Escape", about: "Back to the list", act: () => go("work", this.params.task ? { what: "tasks" } : {}) },
    ]);
    const hearNothing = listen(({ kind, items }) => {
      const isAbout = kind === "events" && items.some((each) => each.task === this.task?.id || each.timeline === this.job?.lineage);
      if (kind === "reload" || isAbout) this.later();
    });
    this.stop = () => (forgetKeys(), hearNothing());
    this.load();
  }

  build() {
    const part = (tag, about) => h(tag, about);
    this.parts = { top: part("div", {}), facts: part("div", {}), acts: part("div", { class: "acts" }), steps: part("section", {}), history: part("section", {}) };
    fill(this.place, h("div", { class: "page" }, Object.values(this.parts)));
  }

  amend(params) {
    const isOther = params.id !== this.params.id || params.task !== this.params.task;
    this.params = params;
    if (isOther) this.build();
    this.load();
  }

  end() {
    this.stop();
    this.asked.abort();
    this.later.stop();
  }

  async load() {
    const { signal } = this.asked;
    try {
      this.job = this.params.task ? null : await get("job", { id: this.params.id, brief: true }, { signal });
      const [task, calls] = await Promise.all([this.read("task", { id: this.job?.id ?? this.params.id, brief: true }, Boolean(this.job)), this.job?.checkpoint ? this.read("state", { ref: this.job.checkpoint, path: ["calls"], brief: true }, true) : null]);
      this.task = task;
      this.calls = called(calls?.value, this.job?.state === "active");
      if (!this.parts.top.isConnected) this.build();
      this.draw();
    } catch (problem) {
      failed(this.place, problem, () => this.load());
    }
  }

  /** What may be gone: a task that was forgotten, the state of a job that another program saved. */
  async read(path, query, mayLack) {
    try {
      return await get(path, query, { signal: this.asked.signal });
    } catch (problem) {
      if (mayLack && [400, 404].includes(problem.status)) return null;
      throw problem;
    }
  }

  draw() {
    const { job, task, calls } = this;
    const reload = () => this.load();
    const steps = [...(task?.steps ?? []), ...calls];
    put(this.parts.top, [job, task?.state, task?.question], () => this.top());
    put(this.parts.facts, [job, job ? null : task], () => facts(job ? ofJob(job) : ofTask(task), "card"));
    put(this.parts.acts, [job, job ? null : task], () => (job ? jobActs(job, reload) : taskActs(task, reload)));
    put(this.parts.steps, steps, () => steps.length > 0 && [h("h2", {}, "Steps"), h("ol", { class: "steps" }, steps.map(stepRow))]);
    put(this.parts.history, task?.history ?? [], () => task && [h("h2", {}, "What happened"), happened(task.history)]);
  }

  top() {
    const { job, task } = this;
    const is = job?.state ?? (task.question === null ? task.state : "waiting");
    return [
      h("p", { class: "quiet" }, h("a", { href: href("work", job ? {} : { what: "tasks" }) }, job ? "Jobs" : "Tasks")),
      heading(shown(job?.id ?? task.id), state(is), job && h("progress", { max: 100, value: job.percent, "aria-label": "Progress" })),
      h("p", { class: "text prompt", dir: "auto" }, shown(job?.prompt ?? task.text)),
    ];
  }
}

/** Makes a part of the page anew if what it is made of has changed: what a person has opened or
 * focused in the others stays. */
function put(part, data, make) {
  const said = JSON.stringify(data);
  if (part.said === said) return;
  part.said = said;
  const isHere = part.contains(document.activeElement);
  const { act } = document.activeElement?.dataset ?? {};
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  fill(part, make());
  [...part.querySelectorAll("details")].forEach((each, at) => {
    each.open = open[at + open.length - part.querySelectorAll("details").length] ?? each.open;
  });
  if (isHere) (part.querySelector(`[data-act="${act}"]`) ?? part.querySelector("a, button, summary") ?? document.getElementById("main")).focus();
}

function ofJob(job) {
  return [
    ["Asks", job.question, "asked"],
    ["Failed", job.failure, "broke"],
    [job.state === "queued" ? "Waits" : "Cannot go on", job.can_resume || job.state === "succeeded" ? null : job.why_not],
    ["Turns", job.turns > 0 || !job.is_over ? `${job.turns} of ${job.max_turns}, ${job.percent} %` : null],
    ["Messages", job.messages],
    ["Agent", [job.agent, job.model].filter(Boolean).join(", ")],
    ["Directory", job.workspace],
    ["Last save", job.updated_at && when(job.updated_at)],
    ["Can be resumed until", job.can_resume && job.expires_at ? new Date(job.expires_at).toLocaleString() : null],
    ["Session", job.checkpoint && h("a", { href: href("session", { timeline: job.lineage, at: job.checkpoint }) }, `${line(job.lineage, 60)}, at its last save`)],
    ["Resumed from", job.resumed_from],
    ["Output", job.output === null ? null : result(job.output, "job", job.id)],
  ];
}

function ofTask(task) {
  return [
    ["Asks", task.question, "asked"],
    ["Failed", task.error_message, "broke"],
    ["Attempts", `${task.attempts} of ${task.max_attempts}`],
    ["Progress", task.progress.total ? `${task.progress.done} of ${task.progress.total}` : null],
    ["Waits for", task.waits_for],
    ["Not before", task.not_before && new Date(task.not_before).toLocaleString()],
    ["Added", when(task.created_at)],
    ["Result", task.result === null ? null : result(task.result, "task", task.id)],
  ];
}

/** What came of it, with a link to all of it where this is the beginning. */
function result(value, path, id) {
  const text = readable(value);
  return h("span", { class: "long" }, shown(text), text.endsWith("…") && h("a", { href: address(path, { id }), target: "_blank", rel: "noopener" }, " all of it, as JSON"));
}

function readable(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}

/** The calls of a job's last response, told like steps of a task. */
function called(calls, isActive) {
  if (!calls || typeof calls !== "object") return [];
  return Object.values(calls)
    .filter((each) => each && typeof each.tool === "string")
    .map(({ tool, state, at, value }) => ({
      path: tool,
      state: state === "began" && isActive ? "running" : (ENDS[state] ?? state),
      ended_at: at,
      value: value === null ? "" : readable(state === "returned" ? (value.value ?? value) : value),
    }));
}

export function stepRow({ path, state: is, started_at, ended_at, value, is_cut }) {
  const isUnknown = is === "unknown";
  const at = ended_at ?? started_at;
  return h(
    "li",
    { class: isUnknown ? "unknown" : "" },
    h("span", { class: "mono" }, line(path, 120)),
    state(is, isUnknown ? "end not known" : is),
    h("div", { class: "gave" }, isUnknown ? "Its process died: look what it did before it is taken again." : value && (value.length > 80 ? h("details", {}, h("summary", {}, line(value, 80)), h("pre", { class: "text" }, shown(value), is_cut && "…")) : line(value, 80))),
    h("span", { class: "age quiet" }, at ? when(at) : ""),
  );
}

/** All that happened, the newest first, and no more of it at once than a browser lays out at once. */
function happened(history) {
  const list = h("ol", { class: "happened", reversed: true, start: history.length });
  const more = h("button", { class: "small", onclick: () => older() });
  const older = () => {
    const left = history.length - list.childElementCount;
    list.append(...history.slice(Math.max(0, left - SHOWN), left).reverse().map(happening));
    more.textContent = `Show ${Math.min(SHOWN, Math.max(0, left - SHOWN))} older`;
    more.hidden = left <= SHOWN;
  };
  older();
  return [list, h("p", {}, more)];
}

function happening({ kind, at, by, about }) {
  const { error, traceback, question, answer, ...rest } = about ?? {};
  const said = Object.entries(rest).filter(([key, value]) => value !== null && value !== "" && !["was", "by"].includes(key));
  return h(
    "li",
    {},
    state(error ? "failed" : "", kind.replaceAll("_", " ")),
    h("span", { class: "quiet" }, when(at)),
    by && h("span", { class: "quiet" }, `by ${line(by, 60)}`),
    said.length > 0 && h("span", { class: "quiet" }, said.map(([key, value]) => `${key.replaceAll("_", " ")} ${key === "again_at" ? new Date(value / 1000).toLocaleTimeString() : line(readable(value), 80)}`).join(" · ")),
    question && h("p", { class: "text" }, shown(question)),
    answer !== undefined && answer !== null && h("p", { class: "text" }, `answer: ${shown(readable(answer))}`),
    error && h("p", { class: "text broke" }, shown(error)),
    traceback && h("details", {}, h("summary", {}, "Traceback"), h("pre", { class: "text" }, shown(traceback))),
  );
}
