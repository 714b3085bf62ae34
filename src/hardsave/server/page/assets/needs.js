// What needs a person: questions, steps whose end is not known, what failed, saves that were missed.

import { get } from "./api.js";
import { count, fill, h, later, line, state, when } from "./dom.js";
import { isWork, listen } from "./live.js";
import { fail } from "./notices.js";
import { href, remember, remembered } from "./router.js";

const SHOWN = matchMedia("(max-width: 48rem)").matches ? 3 : 5;
const FRESH_DAYS = 3; // what has failed before is found by filters
const AT_MOST_EVERY_MS = 1500;

/** Fills a section, which is hidden while there is nothing. */
export class Needs {
  constructor(section) {
    this.section = section;
    this.isAll = false;
    this.asked = new AbortController();
    this.later = later(() => this.load(), AT_MOST_EVERY_MS);
    this.stop = listen((message) => {
      if (isWork(message) || message.items?.some((each) => each.checkpoint?.status === "failed")) this.later();
    });
    this.load();
  }

  end() {
    this.stop();
    this.later.stop();
    this.asked.abort();
  }

  async load() {
    const { signal } = this.asked;
    try {
      const [waiting, jobs, tasks, sessions, health] = await Promise.all([
        get("approvals", { brief: true }, { signal }),
        get("jobs", { state: "failed", limit: 20, brief: true }, { signal }),
        get("tasks", { state: "failed", limit: 20, brief: true }, { signal }),
        get("timelines", { status: "failed", limit: 20 }, { signal }),
        get("health", {}, { signal }),
      ]);
      this.draw([
        ...waiting.items.map(asks),
        ...(health.usable ? [] : [broken(health.trouble)]),
        ...(health.saves_missed ? [missed(health.saves_missed)] : []),
        ...jobs.items.filter((each) => isFresh(each.updated_at)).map(failedJob),
        ...tasks.items.filter((each) => !each.metadata?.job && isFresh(each.ended_at)).map(failedTask),
        ...sessions.items.filter((each) => isFresh(each.updated_at) && !jobs.items.some((job) => job.lineage === each.timeline)).map(failedSession),
      ]);
    } catch (problem) {
      fail(problem);
    }
  }

  draw(every) {
    const away = putAway();
    const found = every.filter((each) => !each.key || !away.includes(each.key));
    const seen = this.isAll ? found : found.slice(0, SHOWN);
    const focused = document.activeElement?.closest?.(".need")?.dataset.address;
    this.section.hidden = found.length === 0;
    fill(
      this.section,
      h("h2", {}, "Needs you ", h("span", { class: "badge" }, `${found.length}`)),
      h("ul", {}, seen.map((each) => this.row(each, every))),
      seen.length < found.length && h("button", { class: "small", onclick: () => ((this.isAll = true), this.draw(every)) }, `${found.length - seen.length} more`),
    );
    if (focused) this.section.querySelector(`[data-address="${CSS.escape(focused)}"] a`)?.focus();
  }

  row({ is, label, text, address, at, key }, every) {
    const away = () => {
      putAway(key);
      this.draw(every);
    };
    return h(
      "li",
      { class: "need", dataset: { address } },
      state(is, label),
      h("a", { class: "cut", href: address }, line(text, 200)),
      at && h("span", { class: "age quiet" }, when(at)),
      key ? h("button", { class: "plain", "aria-label": `Put away: ${line(text, 60)}`, title: "Put away", onclick: away }, "×") : h("span", {}),
    );
  }
}

function isFresh(moment) {
  return moment && Date.now() - Date.parse(moment) < FRESH_DAYS * 86_400_000;
}

function asks({ id, question, choices }) {
  return { is: "waiting", label: choices ? "unknown step" : "asks", text: `${id}: ${question}`, address: href("inbox", { id }) };
}

function broken(trouble) {
  return { is: "failed", label: "store", text: trouble, address: href("health") };
}

function missed(number) {
  return { is: "waiting", label: "missed", text: `${count(number, "save")} of hooks missed: see why`, address: href("health") };
}

function failedJob(job) {
  return { is: "failed", label: "job failed", text: `${job.id}: ${job.failure ?? job.text}`, at: job.updated_at, address: href("job", { id: job.id }), key: `job ${job.id} ${job.updated_at}` };
}

function failedTask(task) {
  return { is: "failed", label: "task failed", text: `${task.id}: ${task.error_message ?? task.text}`, at: task.ended_at, address: href("job", { id: task.id, task: 1 }), key: `task ${task.id} ${task.ended_at}` };
}

function failedSession(session) {
  return { is: "failed", label: "failed", text: session.title || session.timeline, at: session.updated_at, address: href("session", { timeline: session.timeline }), key: `session ${session.timeline} ${session.updated_at}` };
}

/** What a person has put away; with a key, that as well from now on. */
function putAway(key) {
  const known = remembered("away", localStorage) ?? [];
  if (key) remember("away", [...known, key].slice(-300), localStorage);
  return key ? [...known, key] : known;
}
