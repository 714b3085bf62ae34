// The page: its header, the screen that the address names, what is said to all screens.

import { Problem, begin, chosen, get, may, me } from "./api.js";
import { ago, fill, h, later, shown } from "./dom.js";
import { help, keys, press } from "./keys.js";
import { follow, isWork, listen } from "./live.js";
import { fail, failed, loading } from "./notices.js";
import { go, here, href } from "./router.js";
import { keepScroll } from "./scrolled.js";

// A screen is a module with `show(place, params)`, which gives { title, amend(params)?, end()? }.
const SCREENS = {
  home: () => import("./home.js"),
  projects: () => import("./projects.js"),
  session: () => import("./session.js"),
  diff: () => import("./diff.js"),
  work: () => import("./work.js"),
  job: () => import("./job.js"),
  inbox: () => import("./inbox.js"),
  health: () => import("./health.js"),
  search: () => import("./search.js"),
};
const LINKS = [
  ["home", "Sessions", ["session", "diff"]],
  ["work", "Work", ["job"]],
  ["inbox", "Inbox", []],
  ["health", "Health", []],
  ["search", "Search", []],
];
const WITHOUT_PROJECT = ["projects"]; // screens that are about none
const CLOCK_MS = 20_000;

let shownScreen = null; // { name, screen }
let known = []; // projects
const place = document.getElementById("main");
const goBack = keepScroll(place); // to where this screen was scrolled to

async function route() {
  const { name, params } = here();
  if (!agree(name, params)) return;
  mark(name);
  if (shownScreen?.name === name && shownScreen.screen?.amend) {
    shownScreen.screen.amend(params);
    return;
  }
  shownScreen?.screen?.end?.();
  const opening = { name, screen: null };
  shownScreen = opening;
  const stoodHere = place.contains(document.activeElement);
  loading(place);
  try {
    const load = SCREENS[name];
    if (!load) throw new Error(`There is no screen “${name}”; choose one above.`);
    const module = await load().catch(() => null);
    if (shownScreen !== opening) return;
    if (!module) return failed(place, new Problem(0, {}), anew);
    fill(place);
    opening.screen = await module.show(place, params);
    goBack();
    if (stoodHere && document.activeElement === document.body) place.focus({ preventScroll: true });
    title(opening.screen?.title);
    if (shownScreen !== opening) opening.screen?.end?.();
  } catch (problem) {
    if (shownScreen === opening) failed(place, problem, route);
  }
}

/** Loads the whole page anew once the server answers: what a browser could not load of a module, it
 * does not ask for again. */
function anew() {
  get("").then(() => location.reload(), fail);
}

/** Whether the address says which project it is about, where there are several. If it does not, it
 * is changed to one that does. */
function agree(name, params) {
  if (!chosen.isOneOfSeveral || WITHOUT_PROJECT.includes(name)) return true;
  if (!params.project) {
    go(chosen.project === null ? "projects" : name, params, { replace: true });
    return false;
  }
  if (params.project === chosen.project) return true;
  chosen.project = params.project;
  if (known.some(({ id }) => id === chosen.project)) named();
  else projects().catch(fail); // it has come since
  follow();
  countWaiting();
  shownScreen?.screen?.end?.();
  shownScreen = null;
  return true;
}

export function title(text) {
  document.title = `${text ? `${shown(text).slice(0, 80)} · ` : ""}Hardsave`;
}

function mark(name) {
  for (const link of document.querySelectorAll("nav.screens a")) {
    link.href = href(link.dataset.name); // of the project that is shown now
    const [, , parts] = LINKS.find(([each]) => each === link.dataset.name);
    if (link.dataset.name === name || parts.includes(name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.querySelector(".brand").href = href("home");
}

function header() {
  const find = h("input", {
    id: "find",
    type: "search",
    placeholder: "Search everything  /",
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
        h("a", { href: href(name), class: name === "search" && "only-narrow", dataset: { name } }, label, name === "inbox" && h("span", { id: "waiting", class: "badge", hidden: true })),
      ),
    ),
    find,
    h("span", { id: "connected", class: "connected", role: "status" }),
    h("button", { class: "plain", "aria-label": "Light or dark", title: "Light or dark", onclick: theme }, "◐"),
    h("button", { class: "plain", "aria-label": "Keys", title: "Keys: ?", onclick: help }, "?"),
  );
}

function theme() {
  const { dataset } = document.documentElement;
  const isDark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("hardsave:theme", dataset.theme);
  } catch {
    // for this page alone, then
  }
}

const countSoon = later(countWaiting);

/** How many questions wait for a person, told in the header. */
export async function countWaiting() {
  try {
    const { items, next } = await get("approvals", { brief: true });
    const badge = document.getElementById("waiting");
    badge.textContent = `${items.length}${next ? "+" : ""}`;
    badge.hidden = items.length === 0;
    badge.title = "waiting for an answer";
  } catch {
    // the screen that is shown says what is wrong
  }
}

/** Which projects there are; the one of the address, or of the server's directory, is chosen. */
async function projects(meanwhile = null) {
  const [{ items }] = await Promise.all([get("projects", { limit: 1000, project: undefined }), meanwhile]);
  known = items;
  chosen.isOneOfSeveral = me.all_projects;
  if (!me.all_projects) return;
  chosen.project ??= here().params.project ?? items.find((each) => each.is_here)?.id ?? items[0]?.id ?? null;
  named();
}

/** The project that is shown, and the others. */
function named() {
  if (!me.all_projects) return;
  const others = known.some(({ id }) => id === chosen.project) ? known : [{ id: chosen.project, name: chosen.project ?? "no project", directory: "" }, ...known];
  const choice = h(
    "select",
    {
      "aria-label": "Project",
      onchange: ({ target }) => (target.value ? go("home", { project: target.value }) : go("projects")),
    },
    others.map((each) => h("option", { value: each.id, title: each.directory }, shown(each.name))),
    h("option", { value: "" }, "All projects…"),
  );
  choice.value = chosen.project;
  fill(document.getElementById("project"), choice);
}

/** What was so many seconds ago is more so by now. */
function tick() {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const said = ago(each.dateTime);
    if (each.textContent !== said) each.textContent = said;
  }
}

function told(message) {
  const { kind, connected } = message;
  if (kind === "state") {
    const said = document.getElementById("connected");
    said.className = connected ? "connected" : "connected off";
    said.title = connected ? "What happens is shown as it happens" : "The server does not answer; is it still running? It is tried again.";
    said.textContent = connected ? "" : "not connected";
  }
  if (isWork(message)) countSoon();
}

keys("Everywhere", [
  { key: "?", about: "List keys", act: help },
  { key: "/", about: "Search everything", act: () => (document.getElementById("find").checkVisibility() ? document.getElementById("find").focus() : go("search")) },
  { key: "h", about: "Sessions", act: () => go("home") },
  { key: "w", about: "Work: tasks and jobs", act: () => go("work") },
  { key: "i", about: "Inbox: what waits for an answer", act: () => go("inbox") },
  { key: "H", about: "Health", act: () => go("health") },
]);

/** Where a person wanted to go before the login. */
function wanted() {
  try {
    const kept = sessionStorage.getItem("hardsave:wanted");
    sessionStorage.removeItem("hardsave:wanted");
    if (kept && !location.hash) history.replaceState(null, "", kept);
  } catch {
    // home, then
  }
}

async function start() {
  wanted();
  addEventListener("keydown", press);
  document.querySelector(".skip").onclick = (event) => (event.preventDefault(), place.focus()); // `#main` is no address
  header();
  SCREENS[here().name]?.().catch(() => {}); // is loaded meanwhile; `route` tells what is wrong with it
  try {
    await projects(begin());
  } catch (problem) {
    failed(place, problem, start);
    return;
  }
  document.body.classList.toggle("may-act", may("act"));
  if (me.all_projects) keys("All projects", [{ key: "p", about: "Projects", act: () => go("projects") }]);
  addEventListener("hashchange", route);
  setInterval(tick, CLOCK_MS);
  listen(told);
  follow();
  await route();
  countWaiting();
}

start().catch(fail);
