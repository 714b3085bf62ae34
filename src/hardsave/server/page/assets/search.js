// Search over everything that was said, named and touched; sessions by their titles come first.

import { get } from "./api.js";
import { count, fill, form, h, heading, line, pathText, shown, when } from "./dom.js";
import { keys, step } from "./keys.js";
import { title } from "./main.js";
import { failed } from "./notices.js";
import { go, href, keep, kept } from "./router.js";
import { sessionRow, short } from "./sessions.js";

const NAMED = 5; // sessions whose titles match
const PAGE = 50;
const MOST = 1000; // that the server gives at once

export function show(place, params) {
  return new Search(place, params);
}

function named({ text }) {
  return text ? `Search: ${text}` : "Search";
}

class Search {
  constructor(place, params) {
    this.title = named(params);
    this.input = h("input", { type: "search", "aria-label": "Search", placeholder: "Words of messages, names, file paths" });
    this.within = h("p", { hidden: true });
    this.said = h("p", { class: "quiet", role: "status" });
    this.sessions = h("div", { class: "sessions short", role: "list", "aria-label": "Sessions", hidden: true });
    this.found = h("ul", { class: "rows", "aria-label": "Found" });
    this.below = h("p", {});
    this.asked = new AbortController();
    const submit = () => go("search", { text: this.input.value.trim(), timeline: this.params.timeline });
    fill(
      place,
      h(
        "div",
        { class: "page" },
        heading("Search"),
        form({ class: "filters", role: "search" }, submit, this.input, h("button", { class: "primary" }, "Search")),
        this.within,
        this.said,
        this.sessions,
        this.found,
        this.below,
      ),
    );
    this.stop = keys("Search", [
      { key: "j ArrowDown", about: "Next", act: () => step(place, 1) },
      { key: "k ArrowUp", about: "Before", act: () => step(place, -1) },
      { key: "f", about: "Change the words", act: () => this.input.focus() },
    ]);
    this.amend(params);
  }

  end() {
    this.asked.abort();
    this.stop();
  }

  async amend(params, { wait = false } = {}) {
    this.params = params;
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    const { text, timeline } = params;
    title(named(params));
    this.input.value = text ?? "";
    this.within.hidden = !timeline;
    if (timeline) fill(this.within, "In ", h("strong", {}, line(timeline, 80)), " alone · ", h("a", { href: href("search", { text }) }, "everywhere"));
    fill(this.found);
    fill(this.below);
    this.sessions.hidden = true;
    if (!text) {
      this.input.focus();
      fill(this.said, "Words of messages, names and file paths, of all sessions. What is inside of files is not searched.");
      return;
    }
    fill(this.said, "Searching…");
    try {
      const [hits, sessions] = await Promise.all([get("search", { text, timeline, wait, limit: Math.min(MOST, kept().shown ?? PAGE) }, { signal }), timeline ? { items: [] } : get("timelines", { text, limit: NAMED }, { signal })]);
      this.sessions.hidden = !sessions.items.length;
      fill(this.sessions, sessions.items.map((each) => sessionRow(each)));
      this.tell(hits);
    } catch (problem) {
      failed(this.said, problem, () => this.amend(params));
    }
  }

  tell(hits) {
    this.found.append(...hits.items.map(hit));
    const total = this.found.childElementCount;
    const { text } = this.params;
    fill(this.said, total ? `${count(total, "place")}${hits.next ? " and more" : ""}` : `Nothing that was said has “${line(text, 80)}” in it. Fewer words find more.`);
    if (!hits.is_complete)
      this.said.append(h("span", { class: "warning" }, ` · ${count(hits.unsearched, "checkpoint")} not searched yet `), h("button", { class: "small", onclick: () => this.amend(this.params, { wait: true }) }, "Search all"));
    if (total > PAGE) keep({ shown: total });
    fill(this.below, hits.next && h("button", { onclick: () => this.more(hits.next) }, "More"));
  }

  async more(cursor) {
    const { signal } = this.asked;
    const { text, timeline } = this.params;
    try {
      this.tell(await get("search", { text, timeline, cursor, limit: PAGE }, { signal }));
    } catch (problem) {
      failed(this.below, problem, () => this.more(cursor));
    }
  }
}

function hit(one) {
  const { checkpoint, timeline, field, path, snippet, marks } = one;
  const message = field === "state" ? /^messages\[(\d+)\]/.exec(pathText(path ?? ""))?.[1] : undefined;
  const place = message === undefined ? `${shown(field)}${path ? ` · ${pathText(path)}` : ""}` : `message #${message}`;
  const file = field === "file" && typeof path === "string" ? path : undefined;
  return h(
    "li",
    { class: "card hit" },
    h("a", { class: "name", href: href("session", { timeline, at: checkpoint.id, message, file }), title: shown(timeline) }, h("strong", {}, line(short(timeline), 60)), ` :${checkpoint.seq}`),
    h("span", { class: "quiet" }, " ", place, " · ", when(checkpoint.created_at)),
    h("p", { class: "text", dir: "auto" }, marked(snippet, marks)),
  );
}

function marked(text, marks) {
  const parts = [];
  let at = 0;
  for (const [from, to] of marks) {
    if (from < at) continue;
    parts.push(shown(text.slice(at, from)), h("mark", {}, shown(text.slice(from, to))));
    at = to;
  }
  return [...parts, shown(text.slice(at))];
}
