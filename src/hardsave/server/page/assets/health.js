// Health: the store, its backup, missed saves, hooks, what retention would let go, verify.

import { act, get, may, me } from "./api.js";
import { bytes, count, facts, fill, form, h, heading, line, shown } from "./dom.js";
import { keys } from "./keys.js";
import { ask, fail, failed, loading, say } from "./notices.js";
import { amend, href } from "./router.js";

const RULES = [
  ["max_age_days", "Keep for days"],
  ["max_per_timeline", "Keep of each session"],
  ["max_store_mb", "Keep the store below MB"],
];
const WHY = {
  deleted: "deleted before",
  ttl: "its time has passed",
  age: "too old",
  kind: "too old for its kind",
  thin: "between those that stay",
  timeline: "more than a session keeps",
  user: "more than a user keeps",
  store: "the store is too large",
};
const LISTED = 100; // checkpoints that would go
const LEVELS = { ok: ["✓", "well"], warning: ["!", "warning"], failure: ["✗", "failure"] };

export function show(place, params) {
  const part = (title) => h("section", { class: "card", "aria-label": title });
  const parts = { store: part("Store"), findings: part("What works here"), verify: part("Soundness"), retention: part("Retention") };
  fill(place, h("div", { class: "page" }, heading("Health", h("span", { class: "quiet", title: `host ${shown(me.host)}` }, `Hardsave ${shown(me.version)}`)), h("div", { class: "cards" }, h("div", {}, parts.store, parts.verify), h("div", {}, parts.findings, parts.retention))));
  store(parts);
  verify(parts.verify);
  const planned = new Retention(parts.retention, params);
  const forgetKeys = keys("Health", [
    { key: "l", about: "Look again", act: () => store(parts) },
    { key: "v", about: "Verify everything", act: () => document.getElementById("verify").click() },
    { key: "r", about: "Other rules of retention", act: () => document.getElementById(RULES[0][0]).focus() },
  ]);
  return { title: "Health", amend: (given) => planned.amend(given), end: forgetKeys };
}

async function store(parts) {
  const again = () => store(parts);
  const stoodHere = parts.store.contains(document.activeElement);
  fill(parts.store, h("h2", {}, "Store"), h("p", { class: "quiet loading" }, "Looking…"));
  try {
    const found = await get("health");
    fill(parts.store, h("h2", {}, "Store"), !found.usable && h("p", { class: "broke", role: "alert" }, shown(found.trouble)), facts(numbers(found)), h("button", { id: "again", class: "small", onclick: again }, "Look again"));
    if (stoodHere && document.activeElement === document.body) document.getElementById("again").focus();
    fill(parts.findings, h("h2", {}, "What works here"), h("ul", { class: "findings" }, found.findings.map(finding)), h("p", { class: "quiet" }, h("code", {}, "hardsave doctor"), " also saves, destroys and restores files of its own."));
  } catch (problem) {
    failed(parts.store, problem, again);
  }
}

function numbers({ usable, store: size, jobs, tasks, saves_missed: missed }) {
  const ended = jobs.resumes_succeeded + jobs.resumes_failed;
  return [
    ["Usable", usable ? "yes" : "no", !usable && "warning"],
    ["Checkpoints", `${size.checkpoints.toLocaleString("en")} in ${count(size.timelines, "timeline")}`],
    ["On disk", `${bytes(size.disk_bytes)}${size.backup_bytes ? `, of that ${bytes(size.backup_bytes)} backup` : ""}`],
    ["Contents", `${bytes(size.object_bytes)} before they are compressed`],
    ["Saves that hooks missed", missed ? h("span", {}, `${missed}, in all projects`) : "none", missed && "warning"],
    ["Saves that failed here", size.save_failures || "none", size.save_failures && "warning"],
    ["Jobs", h("a", { href: href("work") }, `${jobs.active} active, ${jobs.queued} queued, ${jobs.waiting} waiting, ${jobs.failed} failed`)],
    ["Queued without a worker", jobs.unserved ? h("span", {}, `${jobs.unserved}: `, h("code", {}, "hardsave worker"), " runs them") : "none", jobs.unserved && "warning"],
    ["Resumptions that succeeded", ended ? `${jobs.resumes_succeeded} of ${ended}` : "none has ended"],
    ["Tasks", h("a", { href: href("work", { what: "tasks" }) }, `${tasks.in_progress} at work, ${tasks.pending} pending, ${tasks.failed} failed`)],
  ];
}

function finding({ what, level, message, remedy }) {
  const [mark, label] = LEVELS[level];
  return h(
    "li",
    { class: level },
    h("span", { class: "mark", "aria-label": label, role: "img" }, mark),
    h("strong", {}, shown(what)),
    h("span", { class: "said" }, shown(message), level !== "ok" && remedy && h("span", { class: "quiet" }, " → ", h("code", {}, shown(remedy)))),
  );
}

function verify(place) {
  const said = h("p", { class: "quiet", role: "status" }, "Reads every checkpoint, deleted ones too, and compares every hash. Saves go on meanwhile.");
  const faults = h("div", {});
  const button = h(
    "button",
    {
      id: "verify",
      onclick: async () => {
        if (button.getAttribute("aria-disabled")) return;
        button.setAttribute("aria-disabled", "true"); // it keeps the focus
        fill(faults);
        said.textContent = "Reading everything…";
        try {
          const found = await act("verify");
          fill(said, found.ok ? `${count(found.checkpoints, "checkpoint")} and ${count(found.objects, "object")} are sound.` : [`${count(found.faults.length, "fault")}: `, h("code", {}, "hardsave store repair"), " saves what can be read."]);
          if (!found.ok) fill(faults, h("ul", { class: "broke" }, found.faults.slice(0, 50).map((each) => h("li", {}, shown(each)))));
        } catch (problem) {
          said.textContent = `It could not be read: ${shown(problem.message)}`;
        } finally {
          button.removeAttribute("aria-disabled");
        }
      },
    },
    "Verify now",
  );
  fill(place, h("h2", {}, "Soundness"), said, faults, button);
}

/** What retention would let go, by the project's settings or by rules that are typed; the plan that
 * was looked at is the one that is applied. */
class Retention {
  constructor(place, params) {
    this.params = params;
    this.fields = RULES.map(([name, label]) => ({ name, label, input: h("input", { type: "number", min: 1, id: name, class: "number", placeholder: "all" }) }));
    this.result = h("div", {});
    loading(this.result, "Looking at what would go…");
    const submit = () => amend(Object.fromEntries(this.fields.map(({ name, input }) => [name, input.value])));
    fill(
      place,
      h("h2", {}, "Retention"),
      form({ class: "rules" }, submit, this.fields.map(({ name, label, input }) => h("p", { class: "field" }, h("label", { for: name }, label), input)), h("button", {}, "What would go?")),
      this.result,
    );
    this.load();
  }

  amend(params) {
    const isOther = RULES.some(([name]) => params[name] !== this.params[name]);
    this.params = params;
    if (isOther) this.load();
  }

  get rules() {
    return Object.fromEntries(RULES.filter(([name]) => this.params[name]).map(([name]) => [name, Number(this.params[name])]));
  }

  async load() {
    for (const { name, input } of this.fields) input.value = this.params[name] ?? "";
    try {
      this.draw(await get("retention", this.rules));
    } catch (problem) {
      failed(this.result, problem, () => this.load());
    }
  }

  draw(found) {
    const isOwn = Object.keys(this.rules).length > 0;
    const said = found.drops ? `${count(found.drops, "checkpoint")} of ${found.considered.toLocaleString("en")} would go, about ${bytes(found.freed_bytes)}.` : `Nothing would go of ${count(found.considered, "checkpoint")}.`;
    fill(
      this.result,
      h("p", { class: "quiet" }, isOwn ? "By these rules; those of the project's settings are left aside." : "By the settings of this project. Other rules can be tried here: nothing goes by looking.", " Checkpoints that were deleted, and may still be brought back, count too."),
      h("p", { role: "status", id: "would-go" }, said, Object.entries(found.rules).map(([rule, number]) => h("span", { class: "quiet" }, ` ${number.toLocaleString("en")}: ${reason(rule)}.`))),
      found.drops > 0 && h("details", {}, h("summary", {}, `Which${found.drops > LISTED ? `: the first ${LISTED}` : ""}`), h("ul", {}, found.items.slice(0, LISTED).map((each) => h("li", {}, h("a", { class: "mono", href: href("session", { timeline: each.timeline, at: each.id }) }, `${line(each.timeline, 60)}:${each.seq}`), h("span", { class: "quiet" }, ` ${reason(each.rule)}`))))),
      found.drops > 0 && may("admin") && h("button", { id: "retain", onclick: () => this.apply(found) }, "Let them go…"),
    );
  }

  async apply(found) {
    const said = h("p", { class: "broke" }, `${count(found.drops, "checkpoint")} are dropped for good, about ${bytes(found.freed_bytes)}. This cannot be undone.`);
    if (!(await ask("Let these checkpoints go?", said, "Let them go", { kind: "danger", leave: "Keep them" }))) return;
    try {
      const done = await act("retain", this.rules, { match: found.plan });
      say(`${count(done.dropped, "checkpoint")} dropped. What only they had lies in the store until it is collected.`, { act: { label: "Collect it now", run: collect } });
    } catch (problem) {
      fail(problem);
    }
    this.load();
  }
}

function reason(rule) {
  return WHY[rule] ?? shown(rule);
}

/** Frees the room of what no checkpoint leads to. */
async function collect() {
  try {
    const { freed_bytes: freed } = await act("gc");
    say(`${bytes(freed)} freed`);
  } catch (problem) {
    fail(problem);
  }
}
