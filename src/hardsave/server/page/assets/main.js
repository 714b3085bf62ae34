// The page: its header, the screen that the address names, what is said to all screens.

import { begin, chosen, get, may, me } from "./api.js";
import { fill, h, shown } from "./dom.js";
import { help, keys, press } from "./keys.js";
import { follow, listen } from "./live.js";
import { fail, failed } from "./notices.js";
import { go, here, href } from "./router.js";

// A screen is a module with `show(place, params)`, which gives { title, amend(params)?, end()? }.
const SCREENS = {
  home: () => import("./home.js"),
  session: () => import("./session.js"),
  diff: () => import("./diff.js"),
  work: () => import("./work.js"),
  job: () => import("./job.js"),
  inbox: () => import("./inbox.js"),
  health: () => import("./health.js"),
  search: () => import("./search.js"),
};
const LINKS = [
  ["home", "Sessions"],
  ["work", "Work"],
  ["inbox", "Inbox"],
  ["health", "Health"],
];

let shownScreen = null; // { name, screen }
const place = document.getElementById("main");

async function route() {
  const { name, params } = here();
  if ((params.project ?? null) !== chosen.project && "project" in params) {
    chosen.project = params.project;
    follow();
    shownScreen?.screen?.end?.();
    shownScreen = null;
  }
  mark(name);
  if (shownScreen?.name === name && shownScreen.screen?.amend) {
    shownScreen.screen.amend(params);
    return;
  }
  shownScreen?.screen?.end?.();
  const opening = { name, screen: null };
  shownScreen = opening;
  fill(place, h("p", { class: "quiet loading" }, "Loading…"));
  try {
    const load = SCREENS[name];
    if (!load) throw new Error(`there is no screen ${name}; choose one above`);
    const module = await load();
    if (shownScreen !== opening) return;
    fill(place);
    opening.screen = await module.show(place, params);
    title(opening.screen?.title);
    if (shownScreen !== opening) opening.screen?.end?.();
  } catch (problem) {
    if (shownScreen === opening) failed(place, problem, route);
  }
}

export function title(text) {
  document.title = `${text ? `${shown(text).slice(0, 80)} · ` : ""}Hardsave`;
}

function mark(name) {
  for (const link of document.querySelectorAll("nav.screens a"))
    if (link.dataset.name === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
}

function header() {
  const find = h("input", {
    id: "find",
    type: "search",
    placeholder: "Search everything",
    "aria-label": "Search everything",
    onkeydown: (event) => {
      if (event.key === "Enter" && event.target.value.trim()) go("search", { text: event.target.value.trim() });
    },
  });
  fill(
    document.getElementById("top"),
    h("a", { class: "brand", href: href("home") }, "Hardsave"),
    h("span", { id: "project" }),
    h(
      "nav",
      { class: "screens", "aria-label": "Screens" },
      LINKS.map(([name, label]) =>
        h("a", { href: href(name), dataset: { name } }, label, name === "inbox" && h("span", { id: "waiting", class: "badge", hidden: true })),
      ),
    ),
    find,
    h("span", { id: "connected", class: "quiet", role: "status" }),
    h("button", { class: "plain", "aria-label": "Light or dark", title: "Light or dark", onclick: theme }, "◐"),
    h("button", { class: "plain", "aria-label": "Keys", title: "Keys: ?", onclick: help }, "?"),
  );
}

function theme() {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--is-dark").trim() === "1";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("hardsave:theme", document.documentElement.dataset.theme);
  } catch {
    // for this page alone, then
  }
}

/** How many questions wait for a person, told in the header. */
export async function countWaiting() {
  try {
    const { items, next } = await get("approvals");
    const badge = document.getElementById("waiting");
    badge.textContent = `${items.length}${next ? "+" : ""}`;
    badge.hidden = items.length === 0;
    badge.title = "waiting for an answer";
  } catch {
    // the screen that is shown says what is wrong
  }
}

async function projects() {
  const place = document.getElementById("project");
  const { items } = await get("projects", { limit: 1000 });
  if (items.length < 2) return;
  const here_ = items.find((each) => each.is_here);
  const options = items.map((each) => h("option", { value: each.id, title: each.directory }, shown(each.name)));
  const choice = h(
    "select",
    { "aria-label": "Project", onchange: (event) => go("home", { project: event.target.value }) },
    options,
  );
  if (chosen.project === null && here_) chosen.project = here_.id;
  choice.value = chosen.project ?? items[0].id;
  if (chosen.project === null) chosen.project = items[0].id;
  fill(place, choice);
  addEventListener("hashchange", () => {
    choice.value = chosen.project;
  });
}

keys("Everywhere", [
  { key: "?", about: "List keys", act: help },
  { key: "/", about: "Search everything", act: () => document.getElementById("find").focus() },
  { key: "h", about: "Sessions", act: () => go("home") },
  { key: "w", about: "Work: tasks and jobs", act: () => go("work") },
  { key: "i", about: "Inbox: what waits for an answer", act: () => go("inbox") },
]);

async function start() {
  addEventListener("keydown", press);
  addEventListener("hashchange", route);
  header();
  try {
    await begin();
    if ("project" in here().params) chosen.project = here().params.project;
    await projects();
  } catch (problem) {
    fail(problem);
  }
  document.body.classList.toggle("may-act", may("act"));
  listen((message) => {
    if (message.kind === "state")
      document.getElementById("connected").textContent = message.connected ? "" : "not connected";
    if (message.kind === "reload" || message.items?.some?.((each) => each.task)) countWaiting();
  });
  follow();
  await route();
  countWaiting();
}

start();
