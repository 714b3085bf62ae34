// Work: jobs and tasks by state, and what a person may do about them.

import { act, get, may } from "./api.js";
import { count, fill, h, line, shown, when } from "./dom.js";
import { keys } from "./keys.js";
import { listen } from "./live.js";
import { fail, failed, say } from "./notices.js";
import { amend, href } from "./router.js";

const STATES = {
  jobs: ["queued", "active", "waiting", "succeeded", "failed", "rolled_back", "forgotten"],
  tasks: ["pending", "in_progress", "completed", "failed", "rolled_back"],
};

export function show(place, params) {
  const work = new Work(place, params);
  return { title: "Work", amend: (given) => work.amend(given), end: () => work.end() };
}

class Work {
  constructor(place, params) {
    this.params = params;
    this.asked = new AbortController();
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "What" });
    this.states = h("div", { class: "tabs", role: "group", "aria-label": "State" });
    this.rows = h("div", { class: "rows" });
    fill(place, h("div", { class: "page" }, h("div", { class: "heading" }, h("h1", {}, "Work"), this.tabs), h("div", { class: "filters" }, this.states), this.rows));
    this.stop = [
      listen((message) => {
        if (message.kind === "reload" || message.items?.some?.((each) => each.task)) this.later();
      }),
      keys("Work", [
        { key: "j ArrowDown", about: "Next", act: () => this.step(1) },
        { key: "k ArrowUp", about: "Before", act: () => this.step(-1) },
      ]),
    ];
    this.load();
  }

  get what() {
    return this.params.what === "tasks" ? "tasks" : "jobs";
  }

  amend(params) {
    this.params = params;
    this.load();
  }

  end() {
    this.asked.abort();
    clearTimeout(this.timer);
    for (const stop of this.stop) stop();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load({ quietly: true }), 300);
  }

  step(by) {
    const links = [...this.rows.querySelectorAll("a.name")];
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + by))].focus();
  }

  async load({ quietly = false } = {}) {
    this.asked.abort();
    this.asked = new AbortController();
    this.drawChoice();
    if (!quietly) fill(this.rows, h("p", { class: "quiet loading" }, "Loading…"));
    try {
      const { signal } = this.asked;
      const found = await get(this.what, { state: this.params.state, limit: 100 }, { signal });
      this.draw(found, quietly ? document.activeElement?.dataset?.id : null);
    } catch (problem) {
      failed(this.rows, problem, () => this.load());
    }
  }

  drawChoice() {
    const button = (label, isOn, run) => h("button", { "aria-pressed": String(isOn), onclick: run }, label);
    fill(
      this.tabs,
      button("Jobs", this.what === "jobs", () => amend({ what: "", state: "" })),
      button("Tasks", this.what === "tasks", () => amend({ what: "tasks", state: "" })),
    );
    fill(
      this.states,
      button("All", !this.params.state, () => amend({ state: "" })),
      STATES[this.what].map((each) => button(each.replace("_", " "), this.params.state === each, () => amend({ state: each }))),
    );
  }

  draw({ items, next }, focused) {
    if (!items.length) return fill(this.rows, this.nothing());
    fill(this.rows, items.map(this.what === "jobs" ? jobCard : (each) => taskCard(each, () => this.load())), next && h("p", { class: "quiet" }, "The newest 100 are shown; choose a state to see others."));
    if (focused) this.rows.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  nothing() {
    const how = this.what === "jobs" ? "hardsave jobs submit NAME --prompt …" : "hardsave tasks add NAME";
    return h("div", { class: "empty" }, h("p", {}, this.params.state ? `No ${this.what} are ${this.params.state.replace("_", " ")}.` : `There are no ${this.what} yet.`), h("p", {}, "Add one with ", h("code", {}, how), "."));
  }
}

export function jobCard(job) {
  return h(
    "article",
    { class: `card work ${job.state}` },
    h(
      "div",
      { class: "heading" },
      h("a", { class: "name", href: href("job", { id: job.id }), dataset: { id: job.id } }, h("strong", {}, shown(job.id))),
      h("span", { class: `state ${job.state}` }, job.state.replace("_", " ")),
      h("span", { class: "quiet" }, `turn ${job.turns} of ${job.max_turns}`),
      h("progress", { max: 100, value: job.percent, "aria-label": `${job.percent} %` }),
      job.updated_at && h("span", { class: "quiet" }, when(job.updated_at)),
    ),
    h("p", {}, line(job.text, 200)),
    job.question && h("p", { class: "asked" }, line(job.question, 300)),
    job.failure && h("p", { class: "broke" }, line(job.failure, 300)),
    job.why_not && !job.can_resume && job.state !== "succeeded" && h("p", { class: "quiet" }, line(job.why_not, 300)),
  );
}

function taskCard(task, reload) {
  const run = (path, body, said) => async () => {
    try {
      await act(path, { id: task.id, ...body });
      say(said);
      reload();
    } catch (problem) {
      fail(problem);
    }
  };
  const isOver = ["completed", "failed", "rolled_back"].includes(task.state);
  return h(
    "article",
    { class: `card work ${task.state}` },
    h(
      "div",
      { class: "heading" },
      h("a", { class: "name", href: href("job", { id: task.id, task: 1 }), dataset: { id: task.id } }, h("strong", {}, shown(task.id))),
      h("span", { class: `state ${task.state}` }, task.state.replace("_", " ")),
      h("span", { class: "quiet" }, `${count(task.attempts, "attempt")} of ${task.max_attempts}`),
      task.progress.total > 0 && h("progress", { max: task.progress.total, value: task.progress.done, "aria-label": "progress" }),
      h("span", { class: "quiet" }, when(task.ended_at ?? task.started_at ?? task.created_at)),
    ),
    task.text && h("p", {}, line(task.text, 200)),
    task.question && h("p", { class: "asked" }, line(task.question, 300)),
    task.error_message && h("p", { class: "broke" }, line(task.error_message, 300)),
    may("act") &&
      h(
        "div",
        { class: "acts" },
        ["failed", "rolled_back"].includes(task.state) && h("button", { onclick: run("tasks/retry", {}, `${task.id} is back at work`) }, "Retry"),
        !isOver && h("button", { onclick: run("tasks/cancel", {}, `${task.id} is cancelled`) }, "Cancel"),
      ),
  );
}
