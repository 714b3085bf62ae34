// The inbox: every question that waits for a person, with the call it is about and the conversation
// around it. A question is answered as it was read: one that has changed since is refused.

import { act, get, may } from "./api.js";
import { answer } from "./answers.js";
import { callOf } from "./calls.js";
import { count, fill, h, keyed, line, shown, when } from "./dom.js";
import { keys } from "./keys.js";
import { listen } from "./live.js";
import { countWaiting } from "./main.js";
import { message } from "./message.js";
import { fail, failed, say } from "./notices.js";
import { amend, go, href } from "./router.js";

const AROUND = 8; // messages of the conversation that are shown
const MOST = 500; // questions

export function show(place, params) {
  const inbox = new Inbox(place, params);
  return { title: "Inbox", amend: (given) => inbox.amend(given), end: () => inbox.end() };
}

class Inbox {
  constructor(place, params) {
    this.params = params;
    this.items = [];
    this.ticked = new Set();
    this.number = h("span", { class: "quiet", role: "status" });
    this.list = h("ul", { class: "asking", "aria-label": "Questions" });
    this.one = h("section", { class: "asked-one", "aria-label": "The question" });
    this.every = h("input", { type: "checkbox", "aria-label": "Tick all", onchange: () => this.tickAll() });
    this.many = h("span", { class: "acts" });
    this.side = h("div", { class: "asking-side" }, h("div", { class: "many" }, h("label", { class: "check" }, this.every, "all"), this.many), this.list);
    this.body = h("div", { class: "inbox" }, this.side, this.one);
    this.root = h("div", { class: "page" }, h("div", { class: "heading" }, h("h1", {}, "Inbox"), this.number), this.body);
    fill(place, this.root);
    this.stop = [
      listen(({ kind, items }) => {
        if (kind === "reload" || (kind === "events" && items.some((each) => each.task))) this.later();
      }),
      keys("Inbox", [
        { key: "j ArrowDown", about: "Next question", act: () => this.step(1) },
        { key: "k ArrowUp", about: "Question before", act: () => this.step(-1) },
        { key: "x", about: "Tick it, to answer several at once", act: () => this.tick(this.current?.id) },
        { key: "a", about: "Approve", act: () => this.form?.approve?.() },
        { key: "e", about: "Edit the arguments, then approve", act: () => this.form?.edit?.() },
        { key: "d", about: "Deny, with a reason", act: () => this.form?.deny?.() },
        { key: "r", about: "Write an answer", act: () => this.form?.reply?.() },
        { key: "A", about: "Approve all that are ticked", act: () => this.all("approve") },
        { key: "Escape", about: "Back to all questions", act: () => go("inbox") },
      ]),
    ];
    this.load();
  }

  /** The question that is shown; none if the address names one that is not asked any more. */
  get current() {
    return this.params.id ? this.items.find((each) => each.id === this.params.id) : this.items[0];
  }

  amend(params) {
    this.params = params;
    this.draw();
  }

  end() {
    clearTimeout(this.timer);
    for (const stop of this.stop) stop();
  }

  later() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.load();
    }, 300);
  }

  async load() {
    try {
      const found = [];
      let cursor = null;
      do {
        const page = await get("approvals", { cursor });
        found.push(...page.items);
        cursor = page.next;
      } while (cursor && found.length < MOST);
      this.items = found;
      this.more = cursor;
      for (const id of this.ticked) if (!found.some((each) => each.id === id)) this.ticked.delete(id);
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

  get tickedJobs() {
    return this.items.filter((each) => this.ticked.has(each.id) && each.kind === "job");
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
    const jobs = this.tickedJobs;
    fill(this.many, jobs.length > 0 && may("act") && [h("button", { class: "primary small", onclick: () => this.all("approve") }, `Approve ${jobs.length}`), h("button", { class: "small", onclick: () => this.all("deny") }, `Deny ${jobs.length}`)]);
    const { current } = this;
    const key = current ? `${current.id} ${current.question}` : "";
    if (this.shownKey === key && this.one.childElementCount) return; // a person may be writing there
    this.shownKey = key;
    if (current) this.drawOne(current);
    else this.drawGone();
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

  drawOne(one) {
    const around = h("div", { class: "around" });
    this.form = may("act") ? answer(one, (path, body, said) => this.send(path, one, body, said)) : null;
    const what = one.kind === "job" ? href("job", { id: one.id }) : href("job", { id: one.id, task: 1 });
    fill(
      this.one,
      h("p", { class: "only-narrow" }, h("a", { href: href("inbox") }, `‹ All questions`)),
      h("h2", {}, h("a", { href: what }, line(one.id, 80)), h("span", { class: "state waiting" }, one.choices ? "unknown step" : one.kind === "job" ? "asks to call" : "asks"), h("span", { class: "quiet" }, "since ", when(one.task.started_at ?? one.task.created_at))),
      one.task.text && h("p", { class: "quiet cut" }, line(one.task.text, 240)),
      question(one),
      this.form?.element,
      around,
    );
    if (one.timeline) this.drawAround(around, one);
  }

  async drawAround(place, one) {
    try {
      const found = await get("messages", { ref: "@", timeline: one.timeline, start: -AROUND, limit: AROUND });
      if (!place.isConnected) return;
      const opened = new Set();
      const more = () => go("session", { timeline: one.timeline });
      fill(
        place,
        h("h3", {}, "The conversation so far"),
        h("div", { class: "at-session messages" }, found.items.map((each) => h("article", { class: `message ${each.role}` }, message(each, { opened, more, number: h("span", { class: "quiet" }, `#${each.number}`) })))),
        h("p", {}, h("a", { href: href("session", { timeline: one.timeline }) }, `The whole session, ${count(found.total, "message")}`)),
      );
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
        h("p", {}, h("strong", {}, shown(this.params.id ?? "")), " does not ask any more: it was answered, or cancelled."),
        this.items.length ? h("a", { class: "button", href: href("inbox") }, `${count(this.items.length, "other question")}`) : h("a", { class: "button", href: href("work") }, "Work"),
      ),
    );
  }

  // Acting

  async send(path, one, body, said) {
    const next = this.items[this.items.indexOf(one) + 1] ?? this.items[this.items.indexOf(one) - 1];
    try {
      await act(path, { id: one.id, question: one.question, ...body });
      say(`${said}: ${line(one.question, 80)}`);
    } catch (problem) {
      fail(problem);
      await this.load();
      return;
    }
    this.items = this.items.filter((each) => each !== one);
    this.ticked.delete(one.id);
    go("inbox", next ? { id: next.id } : {}, { replace: true });
    await this.load();
    countWaiting();
    this.list.querySelector("[aria-current]")?.focus();
  }

  async all(what) {
    const jobs = this.tickedJobs;
    if (!jobs.length || !may("act")) return;
    let done = 0;
    for (const one of jobs)
      try {
        await act(`jobs/${what}`, { id: one.id, question: one.question });
        this.ticked.delete(one.id);
        done += 1;
      } catch (problem) {
        fail(problem);
      }
    say(`${done} of ${jobs.length} ${what === "deny" ? "denied" : "approved"}`);
    go("inbox", {}, { replace: true });
    await this.load();
    countWaiting();
  }
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
  if (!call) return h("div", { class: "asked" }, h("p", { class: "text", dir: "auto" }, shown(one.question)));
  const rows = Object.entries(call.args).map(([name, value]) => h("div", {}, h("dt", { class: "mono" }, shown(name)), h("dd", {}, h("pre", { class: "text", dir: "auto" }, shown(typeof value === "string" ? value : JSON.stringify(value, null, 1))))));
  return h("div", { class: "asked call" }, h("p", {}, "May it call ", h("strong", { class: "mono" }, shown(call.tool)), rows.length ? " with" : " without arguments?"), rows.length > 0 && h("dl", { class: "arguments" }, rows));
}
