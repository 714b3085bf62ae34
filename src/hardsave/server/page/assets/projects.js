// All projects of this user, the last active first.

import { every } from "./api.js";
import { fill, framed, h, heading, line, shown, state, when } from "./dom.js";
import { keys, step } from "./keys.js";
import { follow, isGap, listen } from "./live.js";
import { failed } from "./notices.js";
import { amend, href } from "./router.js";

export function show(place, params) {
  const text = h("input", { type: "search", placeholder: "Filter by name or directory  f", "aria-label": "Filter by name or directory", value: params.text ?? "", oninput: () => amend({ text: text.value.trim() }) });
  const rows = h("ul", { class: "rows", "aria-label": "Projects" });
  const number = h("span", { class: "quiet", role: "status" });
  fill(place, h("div", { class: "page" }, heading("Projects", number), h("div", { class: "filters" }, text), rows));
  let all = [];
  let wanted = params.text ?? "";

  const draw = framed(() => {
    const found = all.filter((each) => `${each.name} ${each.directory}`.toLowerCase().includes(wanted.toLowerCase()));
    number.textContent = found.length === all.length ? `${all.length}` : `${found.length} of ${all.length}`;
    const focused = document.activeElement?.dataset?.id;
    if (!found.length) return fill(rows, h("li", { class: "empty" }, all.length ? "No project is called like that." : ["No project has saved anything yet. ", h("code", {}, "hardsave init"), " in a directory begins with it."]));
    fill(rows, found.map(project));
    if (focused) rows.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  });

  async function load() {
    try {
      all = (await every("projects", { project: undefined, limit: 1000 })).items;
      draw();
    } catch (problem) {
      failed(rows, problem, load);
    }
  }

  let loading = null;
  const again = () => (loading = (loading ?? Promise.resolve()).then(load)); // the last answer counts
  follow(null);
  const stop = [
    listen((message) => (message.kind === "projects" || isGap(message)) && again()),
    keys("Projects", [
      { key: "j ArrowDown", about: "Next project", act: () => step(rows, 1) },
      { key: "k ArrowUp", about: "Project before", act: () => step(rows, -1) },
      { key: "f", about: "Filter", act: () => text.focus() },
    ]),
  ];
  again();
  return {
    title: "Projects",
    amend: (given) => {
      wanted = given.text ?? "";
      draw();
    },
    end: () => {
      for (const each of stop) each();
      follow();
    },
  };
}

function project(one) {
  return h(
    "li",
    { class: "listed" },
    h("a", { class: "name", href: href("home", { project: one.id }), dataset: { id: one.id } }, line(one.name, 80)),
    one.is_here && state("running", "here"),
    h("span", { class: "quiet mono cut" }, shown(one.directory ?? "")),
    h("span", { class: "age quiet" }, one.updated_at && when(one.updated_at)),
  );
}
