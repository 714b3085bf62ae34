// Home: what needs a person, then all sessions of the project, the last active first.

import { get } from "./api.js";
import { count, fill, framed, h, line, shown, when } from "./dom.js";
import { keys } from "./keys.js";
import { listen } from "./live.js";
import { fail, failed } from "./notices.js";
import { amend, go, href, remember, remembered } from "./router.js";
import "./virtual.js";

const PAGE = 200;
const AGES = { "": "Any time", 1: "Last day", 7: "Last week", 30: "Last month" };

export function show(place, params) {
  return new Home(place, params).screen;
}

class Home {
  constructor(place, params) {
    this.params = params;
    this.items = [];
    this.next = null;
    this.isComplete = false;
    this.chosen = -1;
    this.changed = new Set(); // timelines that were saved on since they were read
    this.asked = new AbortController();
    this.build(place);
    this.screen = { title: "Sessions", amend: (given) => this.amend(given), end: () => this.end() };
    this.stop = [
      listen((message) => this.heard(message)),
      keys("Sessions", [
        { key: "j ArrowDown", about: "Next session", act: () => this.choose(this.chosen + 1) },
        { key: "k ArrowUp", about: "Session before", act: () => this.choose(this.chosen - 1) },
        { key: "Enter", about: "Open it", act: () => this.open() },
        { key: "f", about: "Filter by name", act: () => this.text.focus() },
      ]),
    ];
    this.load();
    this.needs();
  }

  build(place) {
    this.text = h("input", {
      type: "search",
      placeholder: "Filter by title or name",
      "aria-label": "Filter by title or name",
      value: this.params.text ?? "",
      oninput: () => amend({ text: this.text.value.trim() }),
    });
    this.failed = h("input", {
      type: "checkbox",
      checked: this.params.status === "failed",
      onchange: () => amend({ status: this.failed.checked ? "failed" : "" }),
    });
    this.agent = h(
      "select",
      { "aria-label": "Agent", onchange: () => amend({ prefix: this.agent.value }) },
      [["", "All agents"], ["claude-", "Claude Code"], ["codex-", "Codex"]].map(([value, label]) =>
        h("option", { value }, label),
      ),
    );
    this.agent.value = this.params.prefix ?? "";
    this.age = h(
      "select",
      { "aria-label": "Time", onchange: () => amend({ days: this.age.value }) },
      Object.entries(AGES).map(([value, label]) => h("option", { value }, label)),
    );
    this.age.value = this.params.days ?? "";
    this.number = h("span", { class: "quiet", role: "status" });
    this.list = h("virtual-list", { class: "sessions", role: "list", "aria-label": "Sessions" });
    this.list.addEventListener("drawn", ({ detail }) => this.more(detail.to));
    this.list.addEventListener("scroll", () => remember("home", this.list.scrollTop), { passive: true });
    this.needed = h("section", { class: "needs", "aria-label": "What needs you", hidden: true });
    this.body = h("div", { class: "fills" }, this.list);
    fill(
      place,
      h(
        "div",
        { class: "page fills" },
        this.needed,
        h("div", { class: "heading" }, h("h1", {}, "Sessions"), this.number),
        h("div", { class: "filters" }, this.text, h("label", {}, this.failed, " failed only"), this.agent, this.age),
        this.body,
      ),
    );
    this.draw = framed(() => this.drawNow());
  }

  end() {
    this.asked.abort();
    for (const stop of this.stop) stop();
  }

  amend(params) {
    const names = ["text", "status", "prefix", "days"];
    const isOther = names.some((name) => (params[name] ?? "") !== (this.params[name] ?? ""));
    this.params = params;
    if (isOther) this.load();
  }

  // Reading

  get query() {
    const { text, status, prefix } = this.params;
    return { text, status, prefix, limit: PAGE };
  }

  get oldest() {
    return this.params.days ? Date.now() - Number(this.params.days) * 86_400_000 : 0;
  }

  async load() {
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    try {
      const found = await get("timelines", this.query, { signal });
      const isFirst = this.items.length === 0;
      this.items = [];
      this.take(found);
      if (this.body.firstElementChild !== this.list) fill(this.body, this.list);
      this.drawNow();
      if (isFirst) this.list.scrollTop = remembered("home") ?? 0;
    } catch (problem) {
      failed(this.body, problem, () => this.load());
    }
  }

  take({ items, next }) {
    const young = items.filter((each) => Date.parse(each.updated_at) >= this.oldest);
    this.items.push(...young);
    this.next = young.length === items.length ? next : null;
    this.isComplete = this.next === null;
  }

  async more(to) {
    if (this.isComplete || this.isReading || to < this.items.length - 50) return;
    this.isReading = true;
    try {
      const { signal } = this.asked;
      this.take(await get("timelines", { ...this.query, cursor: this.next }, { signal }));
      this.drawNow();
    } catch (problem) {
      fail(problem);
    } finally {
      this.isReading = false;
    }
  }

  heard(message) {
    if (message.kind === "reload") {
      this.load();
      this.needs();
    }
    if (message.kind !== "events") return;
    for (const event of message.items) if (event.timeline) this.changed.add(event.timeline);
    if (message.items.some((each) => each.task)) this.needs();
    if (this.changed.size && !this.timer)
      this.timer = setTimeout(() => {
        this.timer = null;
        this.renew();
      }, 300);
  }

  /** Reads what was saved on since anew: one session by itself, many as a list. */
  async renew() {
    const names = [...this.changed];
    this.changed.clear();
    if (names.length > 5) return this.load();
    for (const name of names) {
      try {
        const found = await get("timeline", { timeline: name }, { signal: this.asked.signal });
        this.items = this.items.filter((each) => each.timeline !== name);
        if (!found.is_deleted && this.wants(found)) this.items.unshift(found);
      } catch (problem) {
        if (problem.status !== 404) return fail(problem);
      }
    }
    this.items.sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
    this.draw();
  }

  wants(session) {
    const { text, status, prefix } = this.params;
    const named = `${session.timeline} ${session.title}`.toLowerCase();
    return (
      (!text || named.includes(text.toLowerCase())) &&
      (!status || session.status === status) &&
      (!prefix || session.timeline.startsWith(prefix))
    );
  }

  // Showing

  drawNow() {
    const more = this.isComplete ? "" : " and more";
    this.number.textContent = this.items.length ? `${count(this.items.length, "session")}${more}` : "";
    if (!this.items.length) {
      fill(this.body, this.nothing());
      return;
    }
    if (this.body.firstElementChild !== this.list) fill(this.body, this.list);
    this.list.show({
      length: this.items.length,
      guess: 62,
      key: (at) => `${this.items[at].timeline} ${this.items[at].updated_at} ${at === this.chosen}`,
      row: (at) => this.row(this.items[at], at === this.chosen),
    });
  }

  nothing() {
    if (Object.values(this.params).some(Boolean))
      return h("div", { class: "empty" }, h("p", {}, "No session is like that."), h("button", { onclick: () => go("home") }, "Show all"));
    return h(
      "div",
      { class: "empty" },
      h("p", {}, "Nothing was saved in this project yet."),
      h("p", {}, "Type ", h("code", {}, "hardsave init"), " once, then use Claude Code or Codex as always; or ", h("code", {}, "hardsave run -- CMD"), " with any other agent."),
    );
  }

  row(session, isChosen) {
    const { newest } = session;
    const files = newest?.summary?.files;
    return h(
      "a",
      {
        class: isChosen ? "session chosen" : "session",
        role: "listitem",
        href: href("session", { timeline: session.timeline }),
      },
      h("span", { class: `dot ${session.status ?? ""}`, title: session.status ?? "" }),
      h("span", { class: "title" }, line(session.title || session.timeline, 160)),
      h("span", { class: "age quiet" }, when(session.updated_at)),
      h(
        "span",
        { class: "facts quiet" },
        session.status && session.status !== "running" && h("span", { class: `state ${session.status}` }, shown(session.status)),
        session.title && h("span", { class: "mono" }, line(session.timeline, 60)),
        h("span", {}, count(session.checkpoints, "step")),
        session.messages !== null && h("span", {}, count(session.messages, "message")),
        files && h("span", { class: "tally" }, tally(files)),
        session.cost !== null && h("span", {}, `$${session.cost.toFixed(2)}`),
      ),
    );
  }

  choose(at) {
    if (!this.items.length) return;
    this.chosen = Math.max(0, Math.min(at, this.items.length - 1));
    this.drawNow();
    this.list.reveal(this.chosen);
  }

  open() {
    const session = this.items[this.chosen];
    if (session) go("session", { timeline: session.timeline });
  }

  // What needs a person

  async needs() {
    try {
      const { signal } = this.asked;
      const [waiting, broken] = await Promise.all([get("approvals", {}, { signal }), get("jobs", { state: "failed", limit: 5 }, { signal })]);
      const rows = [
        ...waiting.items.slice(0, 5).map((each) => this.need("waiting", "asks", each.question, href("inbox", { id: each.id }))),
        ...broken.items.map((job) => this.need("failed", "failed", job.failure ?? job.text, href("job", { id: job.id }))),
      ];
      this.needed.hidden = rows.length === 0;
      fill(this.needed, h("h2", {}, "Needs you"), h("ul", {}, rows));
    } catch (problem) {
      fail(problem);
    }
  }

  need(state, label, text, address) {
    return h("li", {}, h("a", { class: "need", href: address }, h("span", { class: `state ${state}` }, label), h("span", {}, line(text, 160))));
  }
}

/** How many files were added, changed and removed. */
export function tally({ added, changed, removed }) {
  return [
    added ? h("span", { class: "added", title: "files added" }, `+${added}`) : null,
    changed ? h("span", { class: "changed", title: "files changed" }, `~${changed}`) : null,
    removed ? h("span", { class: "removed", title: "files removed" }, `-${removed}`) : null,
  ];
}
