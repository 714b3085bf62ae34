// Home: what needs a person, then all sessions of the project, the last active first.

import { get } from "./api.js";
import { count, fill, framed, h, heading, later } from "./dom.js";
import { keys } from "./keys.js";
import { isGap, listen } from "./live.js";
import { Needs } from "./needs.js";
import { fail, failed, loading } from "./notices.js";
import { amend, go, remember, remembered } from "./router.js";
import { AGENTS, sessionRow } from "./sessions.js";
import "./virtual.js";

const PAGE = 200;
const AT_ONCE = 2; // sessions whose files are counted
const MOST = 1000; // that the server gives at once
const TOGETHER_MS = 300; // in which saves are one
const ONE_BY_ONE = 5; // sessions that are read by themselves; more are read as a list
const AGES = { "": "Any time", 1: "Last day", 7: "Last week", 30: "Last month" };
const FILTERS = ["text", "status", "prefix", "days"];

export function show(place, params) {
  return new Home(place, params);
}

class Home {
  constructor(place, params) {
    this.params = params;
    this.items = [];
    this.next = null;
    this.changed = new Set(); // timelines that were saved on since they were read
    this.asked = new AbortController();
    this.tallies = new Tallies(() => this.draw());
    this.build(place);
    this.title = "Sessions";
    this.renewSoon = later(() => this.renew(), TOGETHER_MS);
    this.needs = new Needs(this.needed);
    this.stop = [
      listen((message) => this.heard(message)),
      keys("Sessions", [
        { key: "j ArrowDown", about: "Next session", act: () => this.step(1) },
        { key: "k ArrowUp", about: "Session before", act: () => this.step(-1) },
        { key: "Enter", about: "Open it", act: () => document.activeElement?.click?.() },
        { key: "f", about: "Filter by title or name", act: () => this.text.focus() },
        { key: "x", about: "Failed only", act: () => this.failed.click() },
      ]),
    ];
    this.loading = this.load();
  }

  build(place) {
    const choice = (label, name, options) => {
      const made = h("select", { "aria-label": label, onchange: () => amend({ [name]: made.value }) }, options.map(([value, text]) => h("option", { value }, text)));
      made.value = this.params[name] ?? "";
      return made;
    };
    this.text = h("input", { type: "search", placeholder: "Filter by title or name  f", "aria-label": "Filter by title or name", value: this.params.text ?? "", oninput: () => amend({ text: this.text.value.trim() }) });
    this.failed = h("input", { type: "checkbox", checked: this.params.status === "failed", onchange: () => amend({ status: this.failed.checked ? "failed" : "" }) });
    this.agent = choice("Agent", "prefix", [["", "All agents"], ...AGENTS]);
    this.age = choice("Time", "days", Object.entries(AGES));
    this.number = h("span", { class: "quiet", role: "status" });
    this.list = h("virtual-list", { class: "sessions", role: "list", "aria-label": "Sessions", tabindex: -1 });
    this.list.addEventListener("drawn", ({ detail: { from, to } }) => {
      this.tallies.want(this.items.slice(from, to + 1));
      this.more(to);
    });
    this.list.addEventListener("scroll", () => this.keep(), { passive: true });
    this.needed = h("section", { class: "needs", "aria-label": "What needs you", hidden: true });
    this.body = h("div", { class: "fills" }, this.list);
    fill(
      place,
      h(
        "div",
        { class: "page fills home" },
        this.needed,
        heading("Sessions", this.number),
        h("div", { class: "filters" }, this.text, h("label", { class: "check" }, this.failed, "failed only"), this.agent, this.age),
        this.body,
      ),
    );
    this.draw = framed(() => this.drawNow());
  }

  end() {
    this.asked.abort();
    this.tallies.end();
    this.renewSoon.stop();
    this.needs.end();
    for (const stop of this.stop) stop();
  }

  amend(params) {
    const isOther = FILTERS.some((name) => (params[name] ?? "") !== (this.params[name] ?? ""));
    this.params = params;
    if (document.activeElement !== this.text) this.text.value = params.text ?? "";
    this.failed.checked = params.status === "failed";
    this.agent.value = params.prefix ?? "";
    this.age.value = params.days ?? "";
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

  /** Where this list was scrolled to, in this tab and with these filters. */
  get place() {
    return `home ${JSON.stringify([this.params.project, ...FILTERS.map((name) => this.params[name] ?? "")])}`;
  }

  keep() {
    if (this.isPlaced) remember(this.place, { anchor: this.anchor(new Set()), items: this.items.length });
  }

  async load() {
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    const kept = remembered(this.place);
    this.isPlaced = false;
    if (!this.items.length) loading(this.body);
    const limit = Math.min(MOST, Math.max(PAGE, kept?.items ?? 0));
    try {
      const found = await get("timelines", { ...this.query, limit }, { signal });
      this.items = [];
      this.take(found);
      this.list.scrollTop = 0;
      this.drawNow({ fresh: true, anchor: kept?.anchor });
      this.isPlaced = true;
    } catch (problem) {
      failed(this.body, problem, () => this.load());
    }
  }

  take({ items, next }) {
    const young = items.filter((each) => Date.parse(each.updated_at) >= this.oldest);
    const known = new Set(this.items.map((each) => each.timeline)); // one may have moved meanwhile
    this.items.push(...young.filter((each) => !known.has(each.timeline)));
    this.next = young.length === items.length ? next : null;
  }

  async more(to) {
    if (this.next === null || this.isReading || to < this.items.length - 50) return;
    this.isReading = true;
    const { signal } = this.asked;
    try {
      this.take(await get("timelines", { ...this.query, cursor: this.next }, { signal }));
      this.draw();
    } catch (problem) {
      fail(problem);
    } finally {
      this.isReading = false;
    }
  }

  heard(message) {
    const { kind, items } = message;
    if (isGap(message)) this.loading?.then(() => this.renewAll());
    if (kind !== "events") return;
    for (const event of items) if (event.timeline) this.changed.add(event.timeline);
    if (this.changed.size) this.renewSoon();
  }

  /** Reads what was saved on since anew: few sessions by themselves, many as a list. */
  async renew() {
    const names = [...this.changed];
    this.changed.clear();
    if (names.length > ONE_BY_ONE) return this.renewAll();
    const { signal } = this.asked;
    try {
      const found = await Promise.all(names.map((timeline) => session(timeline, signal)));
      if (!signal.aborted) this.put(names, found.filter(Boolean));
    } catch (problem) {
      fail(problem);
    }
  }

  /** Reads as many as are there anew, and leaves them where a person looks at them. */
  async renewAll() {
    const { signal } = this.asked;
    try {
      const found = await get("timelines", { ...this.query, limit: Math.min(MOST, Math.max(PAGE, this.items.length)) }, { signal });
      const young = found.items.filter((each) => Date.parse(each.updated_at) >= this.oldest);
      this.put(this.items.map((each) => each.timeline), young);
      if (found.next === null) this.next = null;
    } catch (problem) {
      fail(problem);
    }
  }

  /** These sessions in the place of those of these names. */
  put(names, sessions) {
    const anchor = this.anchor(new Set(names.length > ONE_BY_ONE ? [] : names));
    const gone = new Set(names);
    const wanted = sessions.filter((each) => this.wants(each));
    this.items = [...this.items.filter((each) => !gone.has(each.timeline)), ...wanted];
    this.items.sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
    this.drawNow({ anchor });
  }

  /** A session that is seen and stays, and how far below the top; null at the top of the list. */
  anchor(changing) {
    if (this.list.scrollTop < 4 || !this.items.length) return null;
    const { heights } = this.list;
    for (let row = this.list.first; row < this.items.length; row += 1)
      if (!changing.has(this.items[row].timeline)) return { timeline: this.items[row].timeline, offset: heights.top(row) - this.list.scrollTop };
    return null;
  }

  wants(session) {
    const { text, status, prefix } = this.params;
    const named = `${session.timeline} ${session.title}`.toLowerCase();
    return (
      !session.is_deleted &&
      (!text || named.includes(text.toLowerCase())) &&
      (!status || session.status === status) &&
      (!prefix || session.timeline.startsWith(prefix)) &&
      Date.parse(session.updated_at) >= this.oldest
    );
  }

  // Showing

  drawNow({ fresh = false, anchor = null } = {}) {
    const more = this.next === null ? "" : " and more";
    this.number.textContent = this.items.length ? `${count(this.items.length, "session")}${more}` : "";
    if (!this.items.length) {
      fill(this.body, this.nothing());
      return;
    }
    if (this.body.firstElementChild !== this.list) fill(this.body, this.list);
    const focused = document.activeElement?.closest?.(".session")?.dataset.timeline;
    this.list.show({
      length: this.items.length,
      guess: 42,
      fresh,
      key: (at) => JSON.stringify([this.items[at], this.tallies.of(this.items[at])]),
      row: (at) => sessionRow(this.items[at], this.tallies.of(this.items[at])),
    });
    const held = anchor ? this.items.findIndex((each) => each.timeline === anchor.timeline) : -1;
    if (held >= 0) this.list.jump(held, anchor.offset);
    if (focused && document.activeElement?.closest?.(".session")?.dataset.timeline !== focused) this.focus(this.items.findIndex((each) => each.timeline === focused));
    this.keep();
  }

  nothing() {
    if (FILTERS.some((name) => this.params[name]))
      return h("div", { class: "empty" }, h("p", {}, "No session is like that."), h("button", { onclick: () => go("home") }, "Show all"));
    return h(
      "div",
      { class: "empty" },
      h("p", {}, "Nothing was saved in this project yet."),
      h("p", {}, "Type ", h("code", {}, "hardsave init"), " once, then use Claude Code or Codex as always; or ", h("code", {}, "hardsave run -- CMD"), " with any other agent. What they do is listed here as they do it."),
    );
  }

  step(by) {
    const focused = document.activeElement?.closest?.(".session")?.dataset.timeline;
    const at = this.items.findIndex((each) => each.timeline === focused);
    this.focus(at < 0 ? this.list.first : at + by);
  }

  focus(row) {
    if (!this.items.length || row < 0) return;
    const at = Math.min(row, this.items.length - 1);
    this.list.reveal(at);
    this.list.rows.get(at)?.element.querySelector("a").focus({ preventScroll: true });
  }
}

/** One session as it stands now; null if it is gone. */
async function session(timeline, signal) {
  try {
    return await get("timeline", { timeline }, { signal });
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}

/** How many files sessions have changed since they began. Each is a comparison, so only sessions that
 * are seen are asked about, few at a time. */
class Tallies {
  /** `tell()` is called when some have come. */
  constructor(tell) {
    this.tell = tell;
    this.known = new Map(); // by timeline: { head, files }
    this.wanted = [];
    this.asking = 0;
    this.asked = new AbortController();
  }

  end() {
    this.wanted = [];
    this.asked.abort();
  }

  /** What is known of a session, perhaps of a moment ago; null if nothing is. */
  of(session) {
    return this.known.get(session.timeline)?.files ?? null;
  }

  /** These are seen now, and no others. */
  want(sessions) {
    this.wanted = sessions.filter((each) => each.head?.workspace && this.known.get(each.timeline)?.head !== each.head.id);
    while (this.asking < AT_ONCE && this.wanted.length) this.ask(this.wanted.shift());
  }

  async ask({ timeline, head }) {
    this.asking += 1;
    this.known.set(timeline, { head: head.id, files: this.known.get(timeline)?.files ?? null });
    try {
      const { files } = await get("timeline/files", { timeline }, { signal: this.asked.signal });
      this.known.set(timeline, { head: head.id, files });
      this.tell();
    } catch {
      // a row goes without: what is wrong is said by the list itself
    } finally {
      this.asking -= 1;
      if (this.wanted.length) this.want(this.wanted);
    }
  }
}
