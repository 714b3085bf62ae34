// The inbox: every question that waits for a person, with the call it is about and the conversation
// around it. A question is answered as it was read: one that has changed since is refused, and none
// takes the place of the one that a person reads.

import { act, every, get, may } from "./api.js";
import { CHOICES, answer, callOf, valueOf } from "./answers.js";
import { count, facts, fill, h, heading, keyed, later, line, shown, state, when } from "./dom.js";
import { stepRow } from "./job.js";
import { keys } from "./keys.js";
import { isWork, listen } from "./live.js";
import { countWaiting } from "./main.js";
import { REACH, message } from "./message.js";
import { ask, fail, failed, loading, say } from "./notices.js";
import { amend, go, href } from "./router.js";

const AROUND = 8; // messages of the conversation that are shown
const MOST = 500; // questions
const CUT = 4000; // characters, at which a list cuts a text

export function show(place, params) {
  return new Inbox(place, params);
}

class Inbox {
  constructor(place, params) {
    this.title = "Inbox";
    this.params = params;
    this.items = [];
    this.later = later(() => this.load());
    this.ticked = new Set();
    this.reading = null; // the id of the question that is shown where the address names none
    this.isSending = false;
    this.number = h("span", { class: "quiet", role: "status" });
    this.list = h("ul", { class: "asking", "aria-label": "Questions" });
    this.one = h("section", { class: "asked-one", "aria-label": "The question" });
    this.every = h("input", { type: "checkbox", "aria-label": "Tick all", onchange: () => this.tickAll() });
    this.many = h("span", { class: "acts" });
    this.side = h("div", { class: "asking-side" }, h("div", { class: "many" }, h("label", { class: "check" }, this.every, "all"), this.many), this.list);
    this.body = h("div", { class: "inbox" }, this.side, this.one);
    this.root = h("div", { class: "page" }, heading("Inbox", this.number), this.body);
    fill(place, this.root);
    this.stop = [
      listen((message) => isWork(message) && this.later()),
      keys("Inbox", [
        { key: "j ArrowDown", about: "Next question", act: () => this.step(1) },
        { key: "k ArrowUp", about: "Question before", act: () => this.step(-1) },
        { key: "x", about: "Tick it, to answer several at once", act: () => this.tick(this.current?.id) },
        { key: "a", about: "Approve", act: () => this.form?.approve?.() },
        { key: "e", about: "Edit the arguments, then approve", act: () => this.form?.edit?.() },
        { key: "d", about: "Deny, with a reason", act: () => this.form?.deny?.() },
        { key: "r", about: "Write an answer", act: () => this.form?.reply?.() },
        { key: "1 2 3", about: "Retry, skip or fail a step whose end is not known", act: ({ key }) => this.form?.choose?.(key - 1) },
        { key: "A", about: "Approve all that are ticked", act: () => this.all("calls", "approve") },
        { key: "D", about: "Deny all that are ticked, with a reason", act: () => this.all("calls", "deny") },
        { key: "R", about: "Answer all that are ticked", act: () => this.all("words", "answer") },
        { key: "Escape", about: "Back to all questions", act: () => go("inbox") },
      ]),
    ];
    this.load();
  }

  /** The question that is shown; none if it is not asked any more. */
  get current() {
    const id = this.params.id ?? this.reading;
    return id ? this.items.find((each) => each.id === id) : this.items[0];
  }

  amend(params) {
    this.params = params;
    this.draw();
  }

  end() {
    this.later.stop();
    for (const stop of this.stop) stop();
  }

  async load() {
    try {
      const { items, next } = await every("approvals", { brief: true }, MOST);
      this.items = items;
      this.more = next;
      for (const id of this.ticked) if (!items.some((each) => each.id === id)) this.ticked.delete(id);
      this.draw();
    } catch (problem) {
      failed(this.body, problem, () => this.load());
    }
  }

  step(by) {
    const at = this.items.indexOf(this.current);
    const next = this.items[Math.max(0, Math.min(this.items.length - 1, at + by))];
    if (!next) return;
    amend({ id: next.id });
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  tick(id) {
    if (!id) return;
    if (!this.ticked.delete(id)) this.ticked.add(id);
    this.draw();
  }

  tickAll() {
    this.ticked = new Set(this.every.checked ? this.items.map((each) => each.id) : []);
    this.draw();
  }

  /** What is ticked, by how it is answered. */
  get chosen() {
    const found = { calls: [], steps: [], words: [] };
    for (const each of this.items) if (this.ticked.has(each.id)) found[kindOf(each)].push(each);
    return found;
  }

  // Showing

  draw() {
    this.number.textContent = this.items.length ? `${count(this.items.length, "question")}${this.more ? " and more" : ""}` : "";
    this.body.classList.toggle("has-one", Boolean(this.params.id));
    if (!this.items.length && !this.params.id) {
      fill(this.body, nothing());
      return;
    }
    if (!this.list.isConnected) fill(this.body, this.side, this.one);
    keyed(this.list, this.items, (each) => each.id, (each) => this.entry(each));
    for (const each of this.list.children) {
      const isCurrent = each.id_ === this.current?.id;
      each.classList.toggle("current", isCurrent);
      each.tick.checked = this.ticked.has(each.id_);
      if (isCurrent) each.link.setAttribute("aria-current", "true");
      else each.link.removeAttribute("aria-current");
    }
    this.every.checked = this.items.length > 0 && this.ticked.size === this.items.length;
    this.drawMany();
    const { current } = this;
    this.reading = this.params.id ?? current?.id ?? this.reading;
    const key = current ? `${current.id} ${current.question_digest}` : "";
    if (this.shownKey === key && this.one.childElementCount) return; // a person may be writing there
    this.shownKey = key;
    if (current) this.drawOne(current);
    else this.drawGone();
  }

  drawMany() {
    const focused = this.many.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    fill(this.many, may("act") && Object.entries(this.chosen).flatMap(([kind, every]) => (every.length ? Object.entries(MANY[kind]).map(([what, { label }]) => h("button", { class: "small", dataset: { act: what }, onclick: () => this.all(kind, what) }, label(every.length))) : [])));
    if (focused) (this.many.querySelector(`[data-act="${focused}"]`) ?? this.every).focus();
  }

  entry(one) {
    const row = h("li", {});
    row.id_ = one.id;
    row.tick = h("input", { type: "checkbox", "aria-label": `Tick ${line(one.id, 60)}`, onchange: () => this.tick(one.id) });
    row.link = h("a", { class: "name", href: href("inbox", { id: one.id }) });
    row.update = (now) => fill(row.link, h("strong", { class: "cut" }, line(now.id, 60)), h("span", {}, line(now.question, 120)));
    row.update(one);
    row.append(row.tick, row.link);
    return row;
  }

  async drawOne(brief) {
    if (!isCut(brief)) return this.drawWhole(brief);
    loading(this.one);
    this.form = null;
    try {
      const { question } = await get("task", { id: brief.id });
      if (this.current?.id === brief.id) this.drawWhole({ ...brief, question: question ?? brief.question });
    } catch (problem) {
      failed(this.one, problem, () => this.drawOne(brief));
    }
  }

  drawWhole(one) {
    const around = h("div", { class: "around" });
    this.form = may("act") ? answer(one, (path, body, said) => this.send(path, one, body, said)) : null;
    const what = one.kind === "job" ? href("job", { id: one.id }) : href("job", { id: one.id, task: 1 });
    fill(
      this.one,
      h("p", { class: "only-narrow" }, h("a", { href: href("inbox") }, `‹ All questions`)),
      h("h2", {}, h("a", { href: what }, line(one.id, 80)), state("waiting", one.choices ? "unknown step" : one.kind === "job" ? "asks to call" : "asks"), h("span", { class: "quiet" }, "since ", when(one.task.started_at ?? one.task.created_at))),
      one.task.text && h("p", { class: "quiet cut" }, line(one.task.text, 240)),
      question(one),
      this.form?.element,
      around,
    );
    this.drawAround(around, one);
  }

  async drawAround(place, one) {
    try {
      fill(place, await (one.timeline ? conversation(one) : taken(one)));
    } catch (problem) {
      if (place.isConnected && problem.status !== 404) failed(place, problem, () => this.drawAround(place, one));
    }
  }

  drawGone() {
    this.form = null;
    fill(
      this.one,
      h(
        "div",
        { class: "empty" },
        h("p", {}, h("strong", {}, shown(this.reading ?? "")), " does not ask any more: it was answered, or cancelled."),
        this.items.length ? h("a", { class: "button", href: href("inbox") }, `${count(this.items.length, "other question")}`) : h("a", { class: "button", href: href("work") }, "Work"),
      ),
    );
  }

  // Acting

  async send(path, one, body, said) {
    if (this.isSending) return; // a key that was pressed twice
    this.isSending = true;
    const at = this.items.findIndex((each) => each.id === one.id);
    const next = this.items[at + 1] ?? this.items[at - 1];
    try {
      await act(path, { id: one.id, question_digest: one.question_digest, ...body });
      say(`${said}: ${line(one.question, 80)}`);
    } catch (problem) {
      fail(problem);
      await this.load();
      return;
    } finally {
      this.isSending = false;
    }
    this.items = this.items.filter((each) => each.id !== one.id);
    this.ticked.delete(one.id);
    this.reading = null;
    go("inbox", next ? { id: next.id } : {}, { replace: true });
    this.draw();
    this.focus(); // now: a person may write into the next one before it is loaded anew
    await this.load();
    countWaiting();
  }

  /** Answers all that are ticked and of one kind; what is refused stays ticked. */
  async all(kind, what) {
    const every = this.chosen[kind];
    if (!every.length || !may("act") || this.isSending) return;
    const { path, body, said } = MANY[kind][what];
    const sent = await body(every.length);
    if (sent === null) return;
    this.isSending = true;
    let done = 0;
    for (const { id, question_digest } of every)
      try {
        await act(path, { id, question_digest, ...sent });
        this.ticked.delete(id);
        done += 1;
      } catch (problem) {
        fail(problem);
      }
    this.isSending = false;
    say(`${said}: ${done} of ${count(every.length, "question")}`);
    this.reading = null;
    this.items = this.items.filter(({ id }) => this.ticked.has(id) || !every.some((each) => each.id === id));
    go("inbox", {}, { replace: true });
    this.draw();
    this.focus();
    await this.load();
    countWaiting();
  }

  focus() {
    const link = this.list.isConnected && this.list.checkVisibility() && (this.list.querySelector("[aria-current]") ?? this.list.querySelector("a"));
    (link || document.getElementById("main")).focus();
  }
}

/** How it is answered: a call, a step whose end is not known, a question in words. */
function kindOf({ kind, choices }) {
  return choices ? "steps" : kind === "job" ? "calls" : "words";
}

/** What can be done to several at once, by how they are answered. */
const MANY = {
  calls: {
    approve: { label: (n) => `Approve ${n}`, path: "jobs/approve", body: () => ({}), said: "Approved" },
    deny: { label: (n) => `Deny ${n}…`, path: "jobs/deny", body: (n) => typed(`Deny ${count(n, "call")}?`, "Reason, told the agents", "Deny", "reason"), said: "Denied" },
  },
  steps: Object.fromEntries(
    Object.entries(CHOICES).map(([answer, [label]]) => [answer, { label: (n) => `${label} ${n}`, path: "tasks/answer", body: () => ({ answer }), said: label }]),
  ),
  words: {
    answer: { label: (n) => `Answer ${n}…`, path: "tasks/answer", body: (n) => typed(`One answer to ${count(n, "question")}`, "Answer: a text, or JSON", "Answer", "answer"), said: "Answered" },
  },
};

/** Asks for one text for all: a body with it, null if it was not given. */
async function typed(title, label, button, name) {
  const field = h("textarea", { id: "typed", rows: 3, autofocus: true, required: name === "answer" });
  if (!(await ask(title, h("p", {}, h("label", { for: "typed" }, label), field), button))) return null;
  if (name === "answer") return { answer: valueOf(field.value) };
  return field.value.trim() ? { reason: field.value.trim() } : {};
}

/** The last steps of a task. */
async function taken({ id }) {
  const { steps } = await get("task", { id, brief: true });
  return steps.length > 0 && [h("h3", {}, "What it did so far"), h("ol", { class: "steps" }, steps.slice(-AROUND).map(stepRow))];
}

/** The end of the conversation of a job. */
async function conversation({ timeline }) {
  const { items, total } = await get("messages", { ref: "@", timeline, start: -AROUND, limit: AROUND });
  const opened = new Set();
  const more = () => go("session", { timeline });
  return [
    h("h3", {}, "The conversation so far"),
    h("div", { class: "at-session messages" }, items.map((each) => h("article", { class: `message ${each.role}` }, message(each, { opened, more, number: h("span", { class: "quiet" }, `#${each.number}`) })))),
    h("p", {}, h("a", { href: href("session", { timeline }) }, `The whole session, ${count(total, "message")}`)),
  ];
}

function isCut({ question }) {
  return question.length >= CUT && question.endsWith("…");
}

function nothing() {
  return h(
    "div",
    { class: "empty" },
    h("p", {}, "Nothing waits for you."),
    h("p", {}, "A tool with ", h("code", {}, "requires_approval=True"), ", a task that asks, and a step whose end is not known are listed here, and answered with one key."),
  );
}

/** What is asked: the call with its arguments where it is about one, else its words. */
function question(one) {
  const call = one.kind === "job" ? callOf(one.question) : null;
  if (!call) return h("div", { class: "asked" }, text(one.question, "div"));
  const rows = Object.entries(call.args).map(([name, value]) => [shown(name), text(typeof value === "string" ? value : JSON.stringify(value, null, 1))]);
  return h("div", { class: "asked call" }, h("p", {}, "May it call ", h("strong", { class: "mono" }, shown(call.tool)), rows.length ? " with" : " without arguments?"), rows.length > 0 && facts(rows, "arguments"));
}

/** A text of any length, so much of it at a time as a browser lays out at once. */
function text(whole, tag = "pre") {
  const part = h(tag, { class: "text", dir: "auto", tabindex: 0 });
  let reach = REACH;
  const draw = () => fill(part, shown(whole.slice(0, reach)), whole.length > reach && more);
  const more = h("button", { class: "small", onclick: () => ((reach += REACH * 4), draw(), part.focus()) }, "Show more");
  draw();
  return part;
}
