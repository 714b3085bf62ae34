// What a person does about jobs and tasks: each asks first where it cannot be taken back.

import { act, get, may } from "./api.js";
import { count, h, line, shown, when } from "./dom.js";
import { ask, dialog, fail, say } from "./notices.js";
import { go, href } from "./router.js";

const OVER = ["completed", "failed", "rolled_back"];
const AGAIN = ["failed", "rolled_back"];
const SHOWN = 1000; // checkpoints to resume from
const POLICIES = [
  ["", "as the program says"],
  ["retry", "take them again: what they did outside may be done twice"],
  ["skip", "skip them: go on without what they give"],
  ["ask", "ask about each"],
];

/** Does it, and says so, with a button for what can be done next; what the server answered, or null if
 * it refused. */
async function done(path, body, said, options, further = null) {
  try {
    const answer = await act(path, body, options);
    say(said, { act: further });
    return answer;
  } catch (problem) {
    fail(problem);
    return null;
  }
}

/** The buttons for a job; `reload` is called after an act. `brief`: without those that let go. */
export function jobActs(job, reload, { brief = false } = {}) {
  if (!may("act")) return [];
  const run = (make) => async () => (await make(job)) && reload();
  return [
    job.can_resume && button("Resume…", job, "resume", run(resume), "primary"),
    !job.can_resume && AGAIN.includes(job.state) && button("Retry…", job, "retry", run(retry), "primary"),
    job.question !== null && answering(job),
    !job.is_over && button("Cancel", job, "cancel", run(cancel)),
    !brief && job.can_delete && button("Delete…", job, "delete", run(remove)),
    !brief && may("admin") && job.is_over && job.checkpoint !== null && button("Purge…", job, "purge", run(purge)),
  ];
}

export function taskActs(task, reload) {
  if (!may("act")) return [];
  const run = (make) => async () => (await make(task)) && reload();
  return [
    AGAIN.includes(task.state) && button("Retry…", task, "retry", run(retry), "primary"),
    task.question !== null && answering(task),
    !OVER.includes(task.state) && button("Cancel", task, "cancel", run(cancel)),
  ];
}

function button(label, { id }, name, run, kind = "") {
  return h("button", { class: kind, dataset: { act: name, of: id }, onclick: run }, label);
}

function answering({ id }) {
  return h("a", { class: "button", dataset: { act: "answer", of: id }, href: href("inbox", { id }) }, "Answer");
}

/** Keys for what is done with a mouse by the buttons in the element that `place()` gives. */
export function actKeys(place) {
  const press = (...names) => names.map((name) => place()?.querySelector(`[data-act="${name}"]`)).find(Boolean)?.click();
  return [
    { key: "r", about: "Resume or retry", act: () => press("resume", "retry") },
    { key: "a", about: "Answer what it asks", act: () => press("answer") },
    { key: "c", about: "Cancel", act: () => press("cancel") },
    { key: "Delete", about: "Delete, on the page of one job", act: () => press("delete") },
  ];
}

/** Asks with a dialog; what `run` gives when its button was pressed, null if it was not. */
async function asked(title, content, label, run, kind) {
  return (await ask(title, content, label, { kind })) ? run() : null;
}

/** Lets a job go on, from its last save or from an earlier one. */
async function resume(job) {
  const from = h("select", { id: "from", autofocus: true, "aria-describedby": "after" }, h("option", { value: "" }, "its last save"));
  const after = h("p", { id: "after", class: "warning", role: "status", hidden: true });
  const turns = h("input", { type: "number", id: "turns", min: 1, placeholder: `as before: ${job.max_turns}` });
  const keep = h("input", { type: "checkbox" });
  const every = earlier(job, from);
  from.onchange = async () => {
    const outside = reached(await every, from.value);
    after.hidden = !outside.length;
    after.textContent = `After that it reached outside, which is not taken back, and may be done again: ${outside.map((each) => line(each, 60)).join(", ")}`;
  };
  return asked(
    `Resume ${shown(job.id)}`,
    [
      h("p", {}, "A worker takes it up under a new id, with the conversation and the files of that moment. What its calls did outside of the files stays done."),
      h("p", { class: "field" }, h("label", { for: "from" }, "From"), from),
      after,
      h("p", { class: "field" }, h("label", { for: "turns" }, "Turns"), turns),
      h("p", {}, h("label", { class: "check" }, keep, "leave the files as they lie there now")),
    ],
    "Resume",
    async () => {
      const body = { id: job.id, keep_files: keep.checked };
      if (from.value) body.from = from.value;
      if (turns.value) body.max_turns = Number(turns.value);
      const answer = await done("jobs/resume", body, "It goes on when a worker takes it up");
      if (answer) go("job", { id: answer.id });
      return answer;
    },
  );
}

/** The checkpoints of a job, newest first, put into a choice but for those of files alone. */
async function earlier(job, choice) {
  try {
    const { items } = await get("checkpoints", { timeline: job.lineage, limit: SHOWN });
    const ofJob = items.filter((each) => each.summary?.messages !== null);
    choice.append(...ofJob.map((each) => h("option", { value: each.id }, `#${each.seq} ${line(each.description || each.kind, 50)}${each.summary ? `, ${count(each.summary.messages ?? 0, "message")}` : ""}, ${when(each.created_at).textContent}`)));
    return items;
  } catch (problem) {
    if (problem.status !== 404) fail(problem);
    return [];
  }
}

/** What was reached outside after a checkpoint, as far as its successors tell. */
function reached(checkpoints, id) {
  const at = checkpoints.findIndex((each) => each.id === id);
  return [...new Set(checkpoints.slice(0, Math.max(0, at)).flatMap((each) => each.summary?.outside ?? []))];
}

function cancel({ id }) {
  return done("tasks/cancel", { id }, `${id} is cancelled`);
}

async function retry(task) {
  const steps = await taken(task);
  if (!steps) return null;
  const unknown = steps.filter((each) => each.state === "unknown");
  const policy = h("select", { id: "unknown" }, POLICIES.map(([value, label]) => h("option", { value }, label)));
  return asked(
    `Retry ${shown(task.id)}`,
    [
      h("p", {}, "It is put back to work. Steps that are done are not taken again: their results are on record."),
      unknown.length > 0 && [
        h("p", { class: "warning" }, `${count(unknown.length, "step")} began, and the end is not known: ${unknown.map((each) => line(each.path, 60)).join(", ")}`),
        h("p", { class: "field" }, h("label", { for: "unknown" }, "What becomes of them"), policy),
      ],
    ],
    "Retry",
    () => done("tasks/retry", { id: task.id, ...(policy.value ? { unknown: policy.value } : {}) }, `${task.id} is back at work`),
  );
}

/** The steps of its journal; null if they cannot be read, which is said. */
async function taken({ id }) {
  try {
    return (await get("task", { id, brief: true })).steps;
  } catch (problem) {
    fail(problem);
    return null;
  }
}

async function remove(job) {
  const answer = await asked(
    `Delete ${shown(job.id)}?`,
    h("p", {}, "It is taken out of the queue, and what it saved is hidden: it cannot be resumed. Undo, or ", h("code", {}, `hardsave undo --timeline ${shown(job.lineage)}`), ", brings back what it saved."),
    "Delete",
    () => done("job", {}, `${job.id} is deleted`, { method: "DELETE", query: { id: job.id } }, job.checkpoint === null ? null : { label: "Undo", run: () => bringBack(job) }),
    "danger",
  );
  if (answer) go("work", {}, { replace: true });
  return answer;
}

async function bringBack(job) {
  if (await done("undo", { timeline: job.lineage }, `What ${job.id} saved is back`)) go("job", { id: job.id });
}

async function purge(job) {
  const typed = h("input", { id: "typed", autocomplete: "off", autofocus: true, oninput: () => check() });
  const name = shown(job.lineage); // as it can be typed
  const check = () => typed.setCustomValidity(typed.value === name ? "" : `Type ${name} here to confirm`);
  check();
  const answer = await asked(
    `Purge ${shown(job.id)}?`,
    [
      h("p", { class: "broke" }, "All that it was asked, did and answered, its checkpoints and its files are removed from the store and from its backup, for good. This cannot be undone, and no copy is kept."),
      h("p", { class: "field" }, h("label", { for: "typed" }, "Type ", h("strong", {}, name), " to confirm"), typed),
    ],
    "Purge",
    () => {
      go("work", {}, { replace: true }); // there is nothing to look at here any more
      return done("purge", { timeline: job.lineage }, `${job.id} is purged`);
    },
    "danger",
  );
  if (answer?.left.length) await dialog("This is left", () => [h("p", { class: "broke" }, "It is not removed by itself:"), h("ul", {}, answer.left.map((each) => h("li", { class: "text" }, shown(each))))]);
  return answer;
}
