// Work: jobs and tasks by state, and what a person may do about them.

import { get } from "./api.js";
import { actKeys, jobActs, taskActs } from "./acts.js";
import { count, fill, h, heading, keyed, later, line, shown, state, when } from "./dom.js";
import { keys, step } from "./keys.js";
import { isWork, listen } from "./live.js";
import { fail, failed, loading } from "./notices.js";
import { amend, href, keep, kept } from "./router.js";

const PAGE = 50;
const MOST = 1000;
const STATES = {
  jobs: ["waiting", "active", "queued", "failed", "succeeded", "rolled_back", "forgotten"],
  tasks: ["in_progress", "pending", "failed", "completed", "rolled_back"],
};
const HOW = { jobs: 'hardsave jobs submit NAME --prompt "…"', tasks: 'hardsave tasks add NAME "…"' };

export function show(place, params) {
  return new Work(place, params);
}

class Work {
  constructor(place, params) {
    this.title = "Work";
    this.params = params;
    this.asked = new AbortController();
    this.later = later(() => {
      this.load({ again: true });
      this.counted();
    });
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "What" });
    this.states = h("div", { class: "tabs small", role: "group", "aria-label": "State" });
    this.said = h("div", {});
    this.rows = h("ul", { class: "rows", "aria-label": "Jobs or tasks" });
    this.below = h("p", {});
    fill(place, h("div", { class: "page" }, heading("Work", this.tabs), h("div", { class: "filters" }, this.states), this.said, this.rows, this.below));
    this.stop = [
      listen((message) => isWork(message) && this.later()),
      keys("Work", [
        { key: "j ArrowDown", about: "Next", act: () => step(this.rows, 1) },
        { key: "k ArrowUp", about: "Before", act: () => step(this.rows, -1) },
        ...actKeys(() => document.activeElement.closest?.(".listed")),
        { key: "t", about: "Jobs or tasks", act: () => amend({ what: this.what === "jobs" ? "tasks" : "", state: "" }) },
      ]),
    ];
    this.load();
    this.counted();
  }

  get what() {
    return this.params.what === "tasks" ? "tasks" : "jobs";
  }

  amend(params) {
    this.params = params;
    keep({ shown: 0 });
    this.load();
    this.counted();
  }

  end() {
    this.asked.abort();
    this.later.stop();
    for (const stop of this.stop) stop();
  }

  /** With `again`, as many as are shown: nothing that a person looks at goes. */
  async load({ again = false } = {}) {
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    this.choices();
    if (!again) {
      keyed(this.rows, [], () => "", null);
      loading(this.said);
    }
    const shown = again ? this.rows.childElementCount : (kept().shown ?? 0);
    const limit = Math.min(MOST, Math.max(PAGE, shown));
    try {
      const { items, next } = await get(this.what, { state: this.params.state, limit, brief: true }, { signal });
      this.items = items;
      this.draw(next);
    } catch (problem) {
      failed(this.said, problem, () => this.load());
    }
  }

  async more(cursor) {
    const { signal } = this.asked;
    try {
      const { items, next } = await get(this.what, { state: this.params.state, limit: PAGE, cursor, brief: true }, { signal });
      this.items.push(...items);
      this.draw(next);
    } catch (problem) {
      fail(problem);
    }
  }

  /** How many there are in each state. */
  async counted() {
    try {
      const { jobs, tasks } = await get("health", {});
      this.counts = { jobs, tasks };
      this.choices();
    } catch {
      // the list says what is wrong
    }
  }

  choices() {
    const focused = document.activeElement?.textContent;
    const isHere = this.states.contains(document.activeElement) || this.tabs.contains(document.activeElement);
    const button = (label, isOn, run, number) => h("button", { "aria-pressed": String(isOn), onclick: run }, label, number ? h("span", { class: "quiet" }, ` ${number}`) : null);
    const total = (what) => STATES[what].reduce((sum, each) => sum + (this.counts?.[what]?.[each] ?? 0), 0);
    fill(
      this.tabs,
      button("Jobs", this.what === "jobs", () => amend({ what: "", state: "" }), total("jobs")),
      button("Tasks", this.what === "tasks", () => amend({ what: "tasks", state: "" }), total("tasks")),
    );
    fill(
      this.states,
      button("All", !this.params.state, () => amend({ state: "" })),
      STATES[this.what].map((each) => button(each.replace("_", " "), this.params.state === each, () => amend({ state: each }), this.counts?.[this.what]?.[each])),
    );
    if (isHere) [...this.tabs.children, ...this.states.children].find((each) => each.textContent.split(" ")[0] === focused?.split(" ")[0])?.focus();
  }

  draw(next) {
    fill(this.said, !this.items.length && this.nothing());
    const make = this.what === "jobs" ? jobRow : taskRow;
    const reload = () => this.load({ again: true });
    keyed(this.rows, this.items, (each) => `${this.what} ${each.id}`, (each) => entry(each, make, reload));
    fill(this.below, next && h("button", { onclick: () => this.more(next) }, "More"));
    if (this.items.length > PAGE) keep({ shown: this.items.length });
  }

  nothing() {
    const { state } = this.params;
    return h("div", { class: "empty" }, h("p", {}, state ? `No ${this.what} are ${state.replace("_", " ")}.` : `There are no ${this.what} yet.`), h("p", {}, "Add one with ", h("code", {}, HOW[this.what]), "."));
  }
}

/** A row that stays while what is told of it changes. */
function entry(item, make, reload) {
  const row = h("li", { class: "listed work" });
  row.update = (now) => {
    const said = JSON.stringify(now);
    if (said === row.said) return;
    const act = row.contains(document.activeElement) ? document.activeElement.dataset.act ?? "name" : null;
    row.said = said;
    fill(row, make(now, reload));
    if (act) (row.querySelector(`[data-act="${act}"]`) ?? row.querySelector("a.name")).focus();
  };
  row.update(item);
  return row;
}

function jobRow(job, reload) {
  return [
    h("a", { class: "name", href: href("job", { id: job.id }) }, line(job.id, 80)),
    state(job.state),
    h("span", { class: "progress" }, h("progress", { max: 100, value: job.percent, "aria-label": `Progress of ${line(job.id, 60)}` }), (job.turns > 0 || !job.is_over) && h("span", { class: "quiet" }, `turn ${job.turns} of ${job.max_turns}`)),
    h("span", { class: "age quiet" }, job.updated_at ? when(job.updated_at) : "not begun"),
    h("span", { class: "acts" }, jobActs(job, reload, { brief: true })),
    h("p", { class: "cut" }, line(job.text, 240)),
    job.question !== null && h("p", { class: "asked cut" }, line(job.question, 300)),
    job.failure !== null && h("p", { class: "broke cut" }, line(job.failure, 300)),
    job.why_not && !job.can_resume && !["succeeded", "active"].includes(job.state) && job.question === null && h("p", { class: "quiet cut" }, line(job.why_not, 300)),
  ];
}

function taskRow(task, reload) {
  return [
    h("a", { class: "name", href: href("job", { id: task.id, task: 1 }) }, line(task.id, 80)),
    state(task.question === null ? task.state : "waiting"),
    h(
      "span",
      { class: "progress" },
      task.progress.total > 0 && h("progress", { max: task.progress.total, value: task.progress.done, "aria-label": `Progress of ${line(task.id, 60)}` }),
      h("span", { class: "quiet" }, `${count(task.attempts, "attempt")} of ${task.max_attempts}`),
    ),
    h("span", { class: "age quiet" }, when(task.ended_at ?? task.started_at ?? task.created_at)),
    h("span", { class: "acts" }, taskActs(task, reload)),
    task.text && h("p", { class: "cut" }, line(task.text, 240)),
    task.question !== null && h("p", { class: "asked cut" }, line(task.question, 300)),
    task.error_message && h("p", { class: "broke cut" }, line(task.error_message, 300)),
    task.waits_for && h("p", { class: "quiet cut" }, `after ${shown(task.waits_for)}`),
  ];
}
