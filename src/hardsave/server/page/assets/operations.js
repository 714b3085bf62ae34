// Undo and redo of what was done to one timeline: two buttons that say what they would do.

import { act, get } from "./api.js";
import { ago, count, h, line, shown } from "./dom.js";
import { fail, say } from "./notices.js";

const STEPS = ["undo", "redo"];

/** What can be undone and redone, of operations newest first: { undo, redo }. Pure. */
export function next(operations) {
  const undo = operations.find(({ kind, is_undone }) => !STEPS.includes(kind) && !is_undone) ?? null;
  const first = operations.findIndex(({ kind }) => !STEPS.includes(kind));
  const steps = operations.slice(0, first < 0 ? undefined : first);
  const open = steps.reduce((depth, { kind }) => depth + (kind === "undo" ? 1 : -1), 0);
  const redo = open > 0 ? (operations.slice(first).find((each) => each.is_undone) ?? null) : null;
  return { undo, redo };
}

export class Operations {
  /** `done(answer)` is called after each undo and redo, and after one that was refused. */
  constructor(timeline, done) {
    this.timeline = timeline;
    this.done = done;
    this.undoButton = h("button", { hidden: true, onclick: () => this.undo() });
    this.redoButton = h("button", { hidden: true, onclick: () => this.redo() });
    this.element = h("span", { class: "acts" }, this.undoButton, this.redoButton);
  }

  async read(signal) {
    try {
      const { items } = await get("operations", { timeline: this.timeline, limit: 50 }, { signal });
      const { undo, redo } = next(items);
      this.redone = redo; // if that is asked for: the server calls it the redo of an undo
      this.tell(this.undoButton, "Undo", undo);
      this.tell(this.redoButton, "Redo", redo);
    } catch (problem) {
      if (!signal?.aborted) fail(problem);
    }
  }

  tell(button, word, operation) {
    button.hidden = !operation;
    if (!operation) return;
    const { kind, created_at, by } = operation;
    button.textContent = `${word} ${line(kind, 20)}`;
    button.title = `${kind} of ${ago(created_at)}${by ? `, by ${shown(by)}` : ""}`;
  }

  undo() {
    return this.step("undo", "Undone", { label: "Redo", run: () => this.redo() });
  }

  redo() {
    return this.step("redo", "Done again", { label: "Undo", run: () => this.undo() });
  }

  async step(path, word, button) {
    let done = null;
    const { redone } = this;
    try {
      done = await act(path, { timeline: this.timeline });
      const of = path === "undo" ? done.about.of : redone?.kind;
      const kept = done.files?.kept.length ? ` ${count(done.files.kept.length, "file")} stayed as they are.` : "";
      say(`${word}${of ? `: ${of}` : ""}.${kept}`, { act: button });
    } catch (problem) {
      fail(problem);
    }
    await this.done(done);
  }
}
