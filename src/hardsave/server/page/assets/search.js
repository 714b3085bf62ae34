// Search over everything that was said, named and touched.

import { get } from "./api.js";
import { count, fill, h, line, pathText, shown, when } from "./dom.js";
import { failed } from "./notices.js";
import { go, href } from "./router.js";

export function show(place, params) {
  const input = h("input", { type: "search", "aria-label": "Search", value: params.text ?? "", autofocus: true });
  const found = h("div", { class: "found", role: "status" });
  fill(
    place,
    h(
      "div",
      { class: "page" },
      h("div", { class: "heading" }, h("h1", {}, "Search")),
      h(
        "form",
        {
          class: "filters",
          onsubmit: (event) => {
            event.preventDefault();
            go("search", { text: input.value.trim() });
          },
        },
        input,
        h("button", { class: "primary" }, "Search"),
      ),
      found,
    ),
  );
  let asked = new AbortController();

  async function look(text, { wait = false, cursor = null } = {}) {
    asked.abort();
    asked = new AbortController();
    if (!text) return fill(found, h("p", { class: "empty" }, "Words of messages, names and file paths. Contents of files are not searched."));
    if (!cursor) fill(found, h("p", { class: "quiet loading" }, "Searching…"));
    try {
      const hits = await get("search", { text, wait, cursor, limit: 50 }, { signal: asked.signal });
      if (!cursor) fill(found);
      found.querySelector(".more")?.remove();
      found.append(...rows(hits, text));
    } catch (problem) {
      failed(found, problem, () => look(text));
    }
  }

  function rows(hits, text) {
    const made = hits.items.map(hit);
    if (!hits.items.length && !found.querySelector(".hit")) made.push(h("p", { class: "empty" }, `Nothing has “${line(text, 80)}” in it.`));
    if (!hits.is_complete)
      made.unshift(
        h(
          "p",
          { class: "warning" },
          `${count(hits.unsearched, "checkpoint")} not searched yet. `,
          h("button", { onclick: () => look(text, { wait: true }) }, "Search all"),
        ),
      );
    if (hits.next) made.push(h("p", { class: "more" }, h("button", { onclick: () => look(text, { cursor: hits.next }) }, "More")));
    return made;
  }

  look(params.text);
  return {
    title: params.text ? `Search: ${params.text}` : "Search",
    amend: (given) => {
      input.value = given.text ?? "";
      look(given.text);
    },
    end: () => asked.abort(),
  };
}

function hit(one) {
  return h(
    "a",
    { class: "card hit", href: href("session", { timeline: one.timeline, at: one.checkpoint.id }) },
    h("p", { class: "quiet" }, h("strong", {}, line(one.timeline, 60)), " · ", `#${one.checkpoint.seq}`, " · ", shown(one.field), one.path ? ` · ${pathText(one.path)}` : "", " · ", when(one.checkpoint.created_at)),
    h("p", { class: "text" }, marked(one.snippet, one.marks)),
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
