// The inbox: every question that waits for a person, with the conversation around it.

import { act, get, may } from "./api.js";
import { fill, h, line, shown, when } from "./dom.js";
import { keys } from "./keys.js";
import { listen } from "./live.js";
import { countWaiting } from "./main.js";
import { fail, failed, say } from "./notices.js";
import { amend, href } from "./router.js";

const AROUND = 6; // messages of the conversation that are shown

export function show(place, params) {
  const inbox = new Inbox(place, params);
  return { title: "Inbox", amend: (given) => inbox.amend(given), end: () => inbox.end() };
}

class Inbox {
  constructor(place, params) {
    this.params = params;
    this.items = [];
    this.ticked = new Set();
    this.list = h("ul", { class: "asking", role: "listbox", "aria-label": "Questions", tabindex: 0 });
    this.one = h("section", { class: "asked-one", "aria-live": "polite" });
    this.many = h("div", { class: "acts" });
    this.body = h("div", { class: "inbox" }, h("div", {}, this.many, this.list), this.one);
    this.root = h("div", { class: "page" }, h("div", { class: "heading" }, h("h1", {}, "Inbox")), this.body);
    fill(place, this.root);
    this.stop = [
      listen((message) => {
        if (message.kind === "reload" || message.items?.some?.((each) => each.task)) {
          clearTimeout(this.timer);
          this.timer = setTimeout(() => this.load(), 300);
        }
      }),
      keys("Inbox", [
        { key: "j ArrowDown", about: "Next question", act: () => this.step(1) },
        { key: "k ArrowUp", about: "Question before", act: () => this.step(-1) },
        { key: "x", about: "Tick it, to answer several at once", act: () => this.tick(this.current?.id) },
        { key: "a", about: "Approve", act: () => this.approve() },
        { key: "d", about: "Deny", act: () => this.root.querySelector("#reason")?.focus() },
      ]),
    ];
    this.load();
  }

  get current() {
    return this.items.find((each) => each.id === this.params.id) ?? this.items[0];
  }

  amend(params) {
    this.params = params;
    this.draw();
  }

  end() {
    clearTimeout(this.timer);
    for (const stop of this.stop) stop();
  }

  async load() {
    try {
      const found = [];
      let cursor = null;
      do {
        const page = await get("approvals", { cursor });
        found.push(...page.items);
        cursor = page.next;
      } while (cursor && found.length < 200);
      this.items = found;
      for (const id of this.ticked) if (!found.some((each) => each.id === id)) this.ticked.delete(id);
      this.shownId = null;
      this.draw();
      countWaiting();
    } catch (problem) {
      failed(this.body, problem, () => this.load());
    }
  }

  step(by) {
    const at = this.items.indexOf(this.current);
    const next = this.items[Math.max(0, Math.min(this.items.length - 1, at + by))];
    if (next) amend({ id: next.id });
  }

  tick(id) {
    if (!id) return;
    if (!this.ticked.delete(id)) this.ticked.add(id);
    this.draw();
  }

  draw() {
    if (!this.items.length) {
      fill(this.body, h("div", { class: "empty" }, h("p", {}, "Nothing waits for you."), h("p", {}, "A tool that needs approval, or a task that asks, is listed here and answered with one key.")));
      return;
    }
    if (!this.list.isConnected) fill(this.body, h("div", {}, this.many, this.list), this.one);
    fill(
      this.list,
      this.items.map((each) =>
        h(
          "li",
          { role: "option", "aria-selected": String(each === this.current) },
          h("input", { type: "checkbox", "aria-label": `Tick ${shown(each.id)}`, checked: this.ticked.has(each.id), onchange: () => this.tick(each.id) }),
          h("a", { href: href("inbox", { id: each.id }) }, h("strong", {}, shown(each.id)), h("span", {}, line(each.question, 120))),
        ),
      ),
    );
    const jobs = this.items.filter((each) => this.ticked.has(each.id) && each.kind === "job");
    fill(
      this.many,
      jobs.length > 0 && [
        h("button", { class: "primary", onclick: () => this.all(jobs, "approve") }, `Approve ${jobs.length}`),
        h("button", { onclick: () => this.all(jobs, "deny") }, `Deny ${jobs.length}`),
      ],
    );
    if (this.shownId !== this.current.id) this.drawOne(this.current);
  }

  async drawOne(one) {
    this.shownId = one.id;
    const around = h("div", { class: "around" });
    fill(
      this.one,
      h("h2", {}, shown(one.id)),
      h("div", { class: "asked" }, h("p", { class: "text" }, shown(one.question))),
      may("act") && (one.kind === "job" ? this.answerJob(one) : this.answerTask(one)),
      around,
    );
    if (!one.timeline) return;
    try {
      const found = await get("messages", { ref: "@", timeline: one.timeline, start: -AROUND, limit: AROUND });
      if (this.shownId !== one.id) return;
      fill(
        around,
        h("h3", {}, "The conversation so far"),
        found.items.map((each) =>
          h(
            "article",
            { class: "card message" },
            h("p", { class: "quiet" }, shown(each.role || "message")),
            each.text && h("p", { class: "text" }, shown(each.text)),
            each.calls.map((call) => h("div", { class: "call" }, h("strong", { class: "mono" }, shown(call.tool)), h("pre", { class: "text" }, shown(call.arguments)))),
            each.results.map((result) => h("details", {}, h("summary", {}, line(result, 100)), h("pre", { class: "text" }, shown(result)))),
          ),
        ),
        h("p", {}, h("a", { href: href("session", { timeline: one.timeline }) }, "The whole session")),
      );
    } catch (problem) {
      failed(around, problem, () => this.drawOne(one));
    }
  }

  answerJob(one) {
    const reason = h("input", { id: "reason", placeholder: "why not, told the agent", "aria-label": "Reason", onkeydown: (event) => event.key === "Enter" && this.deny(one, reason.value) });
    return h(
      "div",
      { class: "acts" },
      h("button", { id: "approve", class: "primary", onclick: () => this.approve() }, "Approve"),
      reason,
      h("button", { id: "deny", onclick: () => this.deny(one, reason.value) }, "Deny"),
    );
  }

  answerTask(one) {
    const answer = h("textarea", { id: "reason", rows: 3, "aria-label": "Answer" });
    return h(
      "div",
      {},
      answer,
      h("div", { class: "acts" }, h("button", { id: "answer", class: "primary", onclick: () => this.send("tasks/answer", one, { answer: answer.value }, "Answered") }, "Answer")),
    );
  }

  approve() {
    const one = this.current;
    if (one?.kind === "job" && may("act")) this.send("jobs/approve", one, {}, "Approved");
  }

  deny(one, reason) {
    this.send("jobs/deny", one, reason.trim() ? { reason: reason.trim() } : {}, "Denied");
  }

  async send(path, one, body, said) {
    try {
      await act(path, { id: one.id, question: one.question, ...body });
      say(`${said}: ${line(one.question, 80)}`);
    } catch (problem) {
      fail(problem);
    }
    await this.load();
    this.list.focus();
  }

  async all(jobs, what) {
    let done = 0;
    for (const one of jobs)
      try {
        await act(`jobs/${what}`, { id: one.id, question: one.question });
        done += 1;
      } catch (problem) {
        fail(problem);
      }
    this.ticked.clear();
    say(`${done} of ${jobs.length} ${what === "deny" ? "denied" : "approved"}`);
    await this.load();
  }
}
