// Health: the store, its backup, missed saves, hooks, what retention would let go, verify.

import { act, get, may, me } from "./api.js";
import { bytes, count, fill, h, line, shown } from "./dom.js";
import { dialog, fail, failed, say } from "./notices.js";
import { href } from "./router.js";

export function show(place) {
  const parts = { store: h("section", { class: "card" }), retention: h("section", { class: "card" }), verify: h("section", { class: "card" }) };
  fill(place, h("div", { class: "page" }, h("div", { class: "heading" }, h("h1", {}, "Health"), h("span", { class: "quiet" }, `Hardsave ${shown(me.version)} on host ${shown(me.host)}`)), parts.store, parts.verify, parts.retention));
  store(parts.store);
  verify(parts.verify);
  retention(parts.retention);
  return { title: "Health" };
}

function facts(rows) {
  return h(
    "dl",
    { class: "facts-list" },
    rows.map(([name, value, isBad]) => h("div", {}, h("dt", {}, name), h("dd", { class: isBad ? "warning" : "" }, value))),
  );
}

async function store(place) {
  fill(place, h("h2", {}, "Store"), h("p", { class: "quiet loading" }, "Looking…"));
  try {
    const found = await get("health");
    const { store: size, jobs, tasks } = found;
    fill(
      place,
      h("h2", {}, "Store"),
      !found.usable && h("p", { class: "broke", role: "alert" }, shown(found.trouble)),
      facts([
        ["Usable", found.usable ? "yes" : "no", !found.usable],
        ["Checkpoints", size.checkpoints.toLocaleString("en")],
        ["Timelines", size.timelines.toLocaleString("en")],
        ["On disk", `${bytes(size.disk_bytes)}, of that ${bytes(size.backup_bytes)} backup`],
        ["Behind the backup", found.backup_behind === undefined ? "not told" : bytes(found.backup_behind), found.backup_behind > 0],
        ["Saves that hooks missed", found.saves_missed ? `${found.saves_missed}; hardsave doctor says why` : "none", found.saves_missed > 0],
        ["Saves that failed here", size.save_failures || "none", size.save_failures > 0],
        ["Jobs", `${jobs.active} active, ${jobs.queued} queued, ${jobs.waiting} waiting, ${jobs.failed} failed`, jobs.failed > 0],
        ["Queued without a worker", jobs.unserved || "none", jobs.unserved > 0],
        ["Tasks", `${tasks.in_progress} at work, ${tasks.pending} pending, ${tasks.failed} failed`, tasks.failed > 0],
      ]),
      h("p", { class: "quiet" }, h("a", { href: href("work", { state: "failed" }) }, "Failed jobs"), " · hooks are checked by ", h("code", {}, "hardsave doctor")),
    );
  } catch (problem) {
    failed(place, problem, () => store(place));
  }
}

function verify(place) {
  const said = h("p", { class: "quiet", role: "status" }, "Reads every checkpoint and compares every hash.");
  const button = h(
    "button",
    {
      id: "verify",
      onclick: async () => {
        button.disabled = true;
        said.textContent = "Reading everything…";
        try {
          const found = await act("verify");
          fill(said, found.ok ? `${count(found.checkpoints, "checkpoint")} and ${count(found.objects, "object")} are sound.` : `${count(found.faults.length, "fault")}: hardsave store repair saves what can be read.`);
          if (!found.ok) place.append(h("ul", { class: "broke" }, found.faults.slice(0, 50).map((each) => h("li", {}, shown(each)))));
        } catch (problem) {
          said.textContent = "";
          fail(problem);
        } finally {
          button.disabled = false;
        }
      },
    },
    "Verify now",
  );
  fill(place, h("h2", {}, "Soundness"), said, button);
}

async function retention(place) {
  fill(place, h("h2", {}, "Retention"), h("p", { class: "quiet loading" }, "Looking at what would go…"));
  try {
    const found = await get("retention");
    const rules = Object.entries(found.rules).map(([rule, number]) => h("li", {}, `${number} by ${shown(rule)}`));
    fill(
      place,
      h("h2", {}, "Retention"),
      h("p", {}, found.drops ? `${count(found.drops, "checkpoint")} of ${found.considered.toLocaleString("en")} would go, about ${bytes(found.freed_bytes)}.` : `Nothing would go of ${count(found.considered, "checkpoint")}.`),
      h("ul", {}, rules),
      found.drops > 0 && h("details", {}, h("summary", {}, "Which"), h("ul", { class: "mono" }, found.items.map((each) => h("li", {}, h("a", { href: href("session", { timeline: each.timeline, at: each.id }) }, `${line(each.timeline, 60)}:${each.seq}`), ` ${shown(each.rule)}`)))),
      found.drops > 0 && may("admin") && h("button", { id: "retain", onclick: () => retain(found, place) }, "Let them go…"),
    );
  } catch (problem) {
    failed(place, problem, () => retention(place));
  }
}

function retain(found, place) {
  dialog("Let these checkpoints go?", (close) => [
    h("p", { class: "broke" }, `${count(found.drops, "checkpoint")} are dropped for good. This cannot be undone.`),
    h(
      "button",
      {
        class: "danger",
        onclick: async () => {
          close();
          try {
            const done = await act("retain", {}, { match: found.plan });
            say(`${count(done.dropped, "checkpoint")} dropped`);
          } catch (problem) {
            fail(problem);
          }
          retention(place);
        },
      },
      "Let them go",
    ),
  ]);
}
