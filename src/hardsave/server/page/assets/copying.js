// Commands that are typed elsewhere: as a shell reads them, and onto the clipboard.

import { fill, h, shown } from "./dom.js";
import { dialog, say } from "./notices.js";

/** A word of a command, in quotes if a shell would take it for something else. Pure. */
export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** What to type to go on from a checkpoint of a timeline. Pure. */
export function resuming(timeline, { id, host, workspace }) {
  const there = host === null && typeof workspace === "string" ? `cd ${quoted(workspace)} && ` : "";
  return `${there}hardsave rewind ${id} --timeline ${quoted(timeline)} --resume`;
}

/** Puts a text onto the clipboard; a browser that has none shows it, to be selected. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied: ${text}`);
  } catch {
    await dialog("Copy this", () => h("pre", { class: "text command", tabindex: 0 }, shown(text)));
  }
}

/** How to go on with an agent whose conversation was taken back, until it is put away. */
export function goingOn(place, found) {
  if (!found) return fill(place);
  const { agent, command, why, prompt } = found;
  return fill(
    place,
    h(
      "div",
      { class: "going-on asked" },
      h("div", {}, command ? `Go on with ${shown(agent)}: ` : "The conversation was left as it is. ", shown(why)),
      command && h("code", { class: "command" }, shown(command)),
      command && h("button", { class: "small", onclick: () => copy(command) }, "Copy the command"),
      prompt && h("button", { class: "small", onclick: () => copy(prompt) }, "Copy the prompt that was taken back"),
      h("button", { class: "plain", "aria-label": "Put this away", onclick: () => fill(place) }, "×"),
    ),
  );
}
