// One moment of a line of checkpoints, chosen with a slider: prompts and names are marked on it, and
// how far the head is.

import { h, svg, when } from "./dom.js";
import { described } from "./rail.js";
import { told } from "./history.js";

const MOST_MARKS = 400; // further ones would not be told from each other

export class Scrubber {
  constructor({ choose, step }) {
    this.choose = choose;
    this.line = [];
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: 0,
      "aria-label": "Moment",
      oninput: () => this.choose(this.line[Number(this.slider.value)]),
    });
    this.marks = svg("svg", { class: "marks", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.label = h("div", { class: "moment-label" });
    const button = (label, text, by) =>
      h("button", { class: "plain", "aria-label": label, title: label, onclick: () => step(by) }, text);
    this.element = h(
      "div",
      { class: "scrubber" },
      button("Step before (←)", "‹", -1),
      h("div", { class: "track" }, this.marks, this.slider),
      button("Step after (→)", "›", 1),
      this.label,
    );
  }

  /** Shows where a checkpoint is on the line that leads through it. */
  show(history, checkpoint) {
    const line = checkpoint && history.nodes.has(checkpoint.id) ? history.through(checkpoint.id) : [];
    if (line !== this.line || line.length !== this.length || history.head !== this.head) this.draw(history, line);
    const place = checkpoint ? (history.places.get(checkpoint.id) ?? 0) : 0;
    this.slider.value = place;
    this.slider.disabled = line.length < 2;
    if (!checkpoint) return;
    const node = history.nodes.get(checkpoint.id) ?? { checkpoint, is_current: true };
    this.slider.setAttribute("aria-valuetext", described(node).slice(0, 300));
    const where = node.is_head ? "head" : node.is_current ? "" : "left behind";
    this.label.replaceChildren(
      h("b", {}, `:${checkpoint.seq}`),
      h("span", { class: "quiet" }, when(checkpoint.created_at), where && ` · ${where}`),
    );
    this.label.title = `${new Date(checkpoint.created_at).toLocaleString()}\n${checkpoint.id}`;
  }

  draw(history, ids) {
    Object.assign(this, { line: ids, length: ids.length, head: history.head });
    const last = Math.max(1, ids.length - 1);
    this.slider.max = last;
    const prompts = [];
    const names = [];
    ids.forEach((id, place) => {
      const { checkpoint } = history.nodes.get(id);
      if (checkpoint.name) names.push(place);
      else if (told(checkpoint)[0] === "prompt") prompts.push(place);
    });
    const head = history.places.get(history.head);
    const reached = head ?? ids.findLastIndex((id) => history.nodes.get(id).is_current);
    this.marks.setAttribute("viewBox", `0 0 ${last} 10`);
    this.marks.replaceChildren(
      svg("path", { class: "past", d: `M0 5H${reached}` }),
      svg("path", { class: "ahead", d: `M${reached} 5H${last}` }),
      svg("path", { class: "prompt", d: ticks(prompts, last, 2, 6) }),
      svg("path", { class: "name", d: ticks(names, last, 0, 10) }),
      svg("path", { class: "head", d: head === undefined ? "" : `M${head} 0V10` }),
    );
  }
}

/** Marks at places of a line, without those that lie on others. Pure. */
export function ticks(places, last, top, high) {
  const least = last / MOST_MARKS;
  let before = -Infinity;
  return places
    .filter((place) => {
      if (place - before < least) return false;
      before = place;
      return true;
    })
    .map((place) => `M${place} ${top}v${high}`)
    .join("");
}
