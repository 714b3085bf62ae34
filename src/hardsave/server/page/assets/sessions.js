// What is told of a session in one row of a list.

import { count, h, line, state, tally, when } from "./dom.js";
import { href } from "./router.js";

/** How the timelines of agents begin that name their sessions themselves. */
export const AGENTS = [
  ["claude-", "Claude Code"],
  ["codex-", "Codex"],
  ["qwen-", "Qwen Code"],
];

/** The agent of a timeline, as far as its name tells. */
function agentOf(timeline) {
  return AGENTS.find(([prefix]) => timeline.startsWith(prefix))?.[1] ?? "";
}

/** The name of a timeline without the end of an id that an agent has given it. */
export function short(timeline) {
  return timeline.replace(/^(.+-[0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "$1");
}

/** `files` counts what the session has changed since it began, as far as that is known. */
export function sessionRow(session, files = null) {
  const agent = agentOf(session.timeline);
  return h(
    "div",
    { class: "session", role: "listitem", dataset: { timeline: session.timeline } },
    h("span", { class: `dot ${session.status ?? ""}`, "aria-hidden": "true" }),
    h("a", { class: "name", href: href("session", { timeline: session.timeline }) }, line(session.title || session.timeline, 160)),
    h("span", { class: "what quiet" }, session.title && h("span", { class: "mono" }, line(short(session.timeline), 60)), agent && h("span", {}, agent)),
    h("span", { class: "status" }, session.status && state(session.status)),
    h("span", { class: "number", title: session.messages === null ? "" : count(session.messages, "message") }, session.checkpoints || !session.origin ? count(session.checkpoints, "step") : "forked"),
    h("span", { class: "tally", title: "Files that it has changed since it began" }, files ? tally(files) : ""),
    h("span", { class: "number cost" }, session.cost === null ? "" : `$${session.cost.toFixed(2)}`),
    h("span", { class: "age quiet" }, when(session.updated_at)),
  );
}
