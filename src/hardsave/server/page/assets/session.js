// A session: its rail of checkpoints, its conversation and its files, all at the moment that one
// slider has chosen. Without `at` in the address that is the head, wherever it goes.

import { get, may } from "./api.js";
import { copy, goingOn, resuming } from "./copying.js";
import { Conversation } from "./conversation.js";
import { count, fill, h, later, line } from "./dom.js";
import { Files } from "./files.js";
import { fork } from "./fork.js";
import { History, told } from "./history.js";
import { keys } from "./keys.js";
import { listen } from "./live.js";
import { title } from "./main.js";
import { ask, fail, failed, say } from "./notices.js";
import { Operations } from "./operations.js";
import { Rail } from "./rail.js";
import { rewind } from "./rewind.js";
import { amend, go } from "./router.js";
import { Scrubber } from "./scrubber.js";
import { Top } from "./top.js";

const PAUSE = 150; // milliseconds before the address is written, and a screen reader told
const RENEW = 1500; // between looks at what a session costs, while it is saved on

export function show(place, params) {
  let screen = new Session(place, params);
  return {
    title: params.timeline,
    amend: (given) => {
      if (given.timeline === screen.timeline) return screen.amend(given);
      screen.end();
      screen = new Session(place, given);
    },
    end: () => screen.end(),
  };
}

class Session {
  constructor(place, params) {
    this.timeline = params.timeline ?? "";
    this.params = params;
    this.place = place;
    this.chosen = null; // a checkpoint
    this.isFollowing = !params.at;
    this.isLive = null; // until it is told
    this.pending = []; // events that are not shown yet
    this.asked = new AbortController();
    this.drawSoon = later(() => this.draw(), 16);
    this.renewSoon = later(() => this.inform().catch(fail), RENEW);
    this.history = new History(this.timeline);
    this.build();
    this.stop = [listen((message) => this.heard(message)), keys("This session", this.keys())];
    this.load();
  }

  end() {
    this.asked.abort();
    clearTimeout(this.writing);
    this.drawSoon.stop();
    this.renewSoon.stop();
    for (const stop of this.stop) stop();
    this.conversation.end();
    this.files.end();
  }

  // Building

  build() {
    const choose = (id) => this.choose(id);
    this.rail = new Rail({ choose, compare: (id) => this.compareWith(id), more: () => this.older() });
    this.scrubber = new Scrubber({ choose, step: (by) => this.step(by) });
    this.conversation = new Conversation();
    this.files = new Files({ choose: (checkpoint, params) => this.chooseAs(checkpoint, params) });
    this.operations = new Operations(this.timeline, (done) => this.done(done));
    const acts = {
      rewind: () => this.rewind(),
      fork: () => this.fork(),
      compare: (what) => (what === "another" ? this.compareAnother() : this.compare(what)),
      copy: () => this.chosen && copy(resuming(this.timeline, this.chosen)),
    };
    this.top = new Top(this.timeline, acts, this.operations.element);
    this.told = h("p", { class: "unseen", role: "status" });
    this.goesOn = h("div", { "aria-live": "polite" });
    this.panes = h("div", { class: "panes" }, this.railPane(), this.conversation.element, this.files.element);
    const parts = [this.top.element, this.goesOn, this.scrubber.element, this.top.tabs, this.panes, this.told];
    this.root = h("div", { class: "at-session fills" }, parts);
    fill(this.place, this.root);
    this.root.dataset.tab = this.top.choose(this.params);
  }

  railPane() {
    this.number = h("span", { class: "quiet" });
    return h(
      "section",
      { class: "pane past", "aria-label": "History", id: "pane-history" },
      h("header", {}, h("h2", {}, "History"), this.number),
      h("div", { class: "fills body" }, this.rail.list),
    );
  }

  keys() {
    return [
      { key: "ArrowLeft j", about: "Step before", act: () => this.step(-1) },
      { key: "ArrowRight k", about: "Step after", act: () => this.step(1) },
      { key: "Home", about: "First step", act: () => this.step(-Infinity) },
      { key: "End", about: "The head", act: () => this.choose(null) },
      { key: "g", about: "Go to a number, a name, or #message", act: () => this.askWhere() },
      ...(may("act") ? this.actKeys() : []),
      { key: "c", about: "Compare with the step before", act: () => this.compare("before") },
      { key: "d", about: "Compare with the disk", act: () => this.compare("disk") },
      { key: "p", about: "Prompts only", act: () => this.conversation.toggle.click() },
    ];
  }

  actKeys() {
    return [
      { key: "r", about: "Rewind to here", act: () => this.rewind() },
      { key: "f", about: "Fork from here", act: () => this.fork() },
    ];
  }

  // Reading

  async load() {
    const { signal } = this.asked;
    try {
      if (!this.timeline) throw new Error("the address names no session; choose one of the list");
      const reading = this.history.read({ signal, told: () => this.drawSoon() });
      this.reading = reading.catch(() => {}); // told below, unless another request fails first
      this.operations.read(signal);
      await this.inform();
      if (this.params.at) await this.find(this.params.at);
      else if (this.info.head) this.set(this.info.head);
      this.conversation.foldAll(this.params.fold === "prompts");
      if (!this.conversation.restore() && this.params.message) this.conversation.jump(this.params.message);
      await reading;
      this.draw();
      if (!this.chosen && !this.info.head) this.nothing();
    } catch (problem) {
      if (!signal.aborted) failed(this.place, problem, () => go("home"), "All sessions");
    }
  }

  nothing() {
    const way = "Undo brings them back, if they were deleted here.";
    fill(this.panes, h("p", { class: "empty" }, `This timeline has no checkpoint any more. ${way}`));
  }

  /** What the session is called, how it is, and what it costs. */
  async inform() {
    this.info = await get("timeline", { timeline: this.timeline }, { signal: this.asked.signal });
    title(this.info.title || this.timeline);
    this.drawTop();
  }

  /** Chooses what a ref of the address names: an id, `:12`, a name. */
  async find(ref) {
    const known = this.history.checkpoint(ref);
    const found = known ?? (await get("checkpoint", { ref, timeline: this.timeline }, { signal: this.asked.signal }));
    if (found.timeline !== this.timeline && found.id !== this.info.head?.id)
      return go("session", { timeline: found.timeline, at: found.id }, { replace: true });
    this.set(found);
  }

  async older() {
    try {
      await this.history.more({ signal: this.asked.signal });
      this.draw();
    } catch (problem) {
      fail(problem);
    }
  }

  /** Reads all anew, after something else than a save; once more, if it is called meanwhile. */
  moved() {
    this.isOld = true;
    this.moving ??= this.renew().finally(() => (this.moving = null));
    return this.moving;
  }

  async renew() {
    const { signal } = this.asked;
    while (this.isOld && !signal.aborted) {
      this.isOld = false;
      try {
        await Promise.all([this.history.read({ signal }), this.inform(), this.operations.read(signal)]);
        if (this.isFollowing && this.info.head) this.set(this.info.head, { isGrown: true });
        this.draw();
      } catch (problem) {
        if (!signal.aborted) fail(problem);
      }
    }
  }

  // What happens

  heard(message) {
    if (message.kind === "state") {
      this.isLive = message.connected;
      this.drawTop();
      if (message.connected) this.connected();
    } else if (message.kind === "reload") this.moved();
    else if (message.kind === "events") this.take(message.items);
  }

  take(items) {
    const own = items.filter((each) => each.timeline === this.timeline || each.data?.from === this.timeline);
    if (!own.length) return;
    this.pending.push(...own.filter((each) => each.checkpoint).map((each) => each.checkpoint));
    if (own.some((each) => !each.checkpoint && !each.task)) this.hasMoved = true;
    this.drawSoon();
  }

  /** What was saved before this tab was told of each save may be missing; once the history is read. */
  async connected() {
    await this.reading;
    if (this.history.isRead && !this.asked.signal.aborted) this.catchUp();
  }

  async catchUp() {
    try {
      const isJoined = await this.history.catchUp({ signal: this.asked.signal });
      await this.inform();
      const { head } = this.info;
      const isSame = head?.timeline !== this.timeline || head.id === this.history.head;
      if (isJoined && isSame) this.absorb();
      else await this.moved();
    } catch (problem) {
      fail(problem);
    }
  }

  /** Takes what was saved since, and shows it. */
  draw() {
    const saved = this.pending.splice(0);
    if (saved.length && !this.history.add(saved)) this.hasMoved = true;
    if (this.hasMoved && this.history.isRead) {
      this.hasMoved = false;
      this.moved();
    }
    if (saved.length) this.renewSoon();
    this.absorb();
  }

  absorb() {
    this.rail.show(this.history);
    const head = this.history.checkpoint(this.history.head);
    if (this.isFollowing && head && head.id !== this.chosen?.id) this.set(head, { isGrown: true });
    else if (this.chosen) this.set(this.chosen);
    this.drawTop();
  }

  // The chosen moment

  /** Chooses a checkpoint by its id; null is the head, and stays with it. */
  choose(id) {
    const isHead = id === null || id === this.history.head;
    const found = this.history.checkpoint(id ?? this.history.head) ?? (id === null ? this.info?.head : null);
    this.isFollowing = isHead;
    this.writeSoon();
    if (found) this.set(found);
    else if (id) this.find(id).catch(fail);
  }

  chooseAs(checkpoint, params) {
    if (checkpoint.timeline !== this.timeline && !this.history.nodes.has(checkpoint.id))
      return go("session", { timeline: checkpoint.timeline, at: checkpoint.id, file: this.params.file, ...params });
    this.choose(checkpoint.id);
    amend(params);
  }

  step(by) {
    if (!this.chosen) return;
    const to = this.history.step(this.chosen.id, by);
    if (to && to !== this.chosen.id) this.choose(to);
  }

  set(checkpoint, { isGrown = false } = {}) {
    const isOther = checkpoint.id !== this.chosen?.id;
    this.chosen = checkpoint;
    this.scrubber.show(this.history, checkpoint);
    if (isOther || !this.rail.isMarked) this.rail.mark(checkpoint.id);
    this.conversation.show(checkpoint, this.history.past(checkpoint), { isGrown });
    this.files.show(checkpoint, this.params);
  }

  /** Writes where the page is into the address, once a person has stopped. */
  writeSoon() {
    clearTimeout(this.writing);
    const before = this.params.message;
    this.writing = setTimeout(() => {
      const at = this.isFollowing ? "" : this.chosen?.id;
      const message = this.params.message === before ? "" : this.params.message; // gone to meanwhile
      this.params = { ...this.params, at, message };
      amend({ at, message });
      this.told.textContent = this.chosen ? `:${this.chosen.seq} ${line(told(this.chosen)[1], 160)}` : "";
    }, PAUSE);
  }

  /** The address has changed: by this screen, by a link, or by the browser's buttons. */
  amend(params) {
    const before = this.params;
    this.params = params;
    this.root.dataset.tab = this.top.choose(params);
    this.conversation.foldAll(params.fold === "prompts");
    if ((params.at ?? "") !== (before.at ?? "")) {
      this.isFollowing = !params.at;
      if (params.at) this.find(params.at).catch(fail);
      else if (this.history.head) this.choose(null);
    }
    if (params.message && params.message !== before.message) this.conversation.jump(params.message);
    if (this.chosen) this.files.show(this.chosen, params);
  }

  // Showing

  drawTop() {
    if (!this.info) return;
    const { info, history } = this;
    const { length } = history.order;
    const steps = history.isRead && !history.next ? length : Math.max(info.checkpoints, length);
    this.number.textContent = count(steps, "checkpoint");
    this.top.show(info, history.checkpoint(history.head) ?? info.head, steps, this.isLive);
  }

  // Acts

  async rewind() {
    await this.reading; // it tells what reached outside since
    if (!this.chosen || document.querySelector("dialog[open]")) return;
    const done = await rewind(this.timeline, this.chosen, this.history.left(this.chosen.id));
    if (!done) return;
    const what = done.moved ? `Rewound to :${done.target.seq}.` : `Files are as they were at :${done.target.seq}.`;
    say(what, { act: { label: "Undo", run: () => this.operations.undo() } });
    if (done.moved) this.isFollowing = true;
    await this.done(done);
  }

  /** After an act: what there is now, with the head in view if that is followed. */
  async done(answer) {
    if (answer) goingOn(this.goesOn, answer.going_on);
    this.writeSoon();
    await this.moved();
    if (this.chosen) this.rail.mark(this.chosen.id);
  }

  async fork() {
    if (!this.chosen || document.querySelector("dialog[open]")) return;
    const made = await fork(this.timeline, this.chosen);
    if (!made) return;
    const where = made.directory ? ` Its files are in ${made.directory}.` : "";
    const { timeline } = made.timeline;
    const open = { label: "Open it", run: () => go("session", { timeline }) };
    say(`Forked: ${timeline}.${where}`, { act: open });
    await this.done(made);
  }

  compare(what) {
    if (!this.chosen) return;
    const { id, parent } = this.chosen;
    const ends = { before: [parent, id], head: [id, this.history.head], disk: [id, "now"] }[what];
    if (ends.every(Boolean)) go("diff", { timeline: this.timeline, from: ends[0], to: ends[1] });
    else say("There is no step before this one to compare with.");
  }

  /** Compares the chosen moment with another one, the older one first. */
  compareWith(id) {
    const other = this.history.checkpoint(id);
    if (!this.chosen || !other || id === this.chosen.id) return;
    const [from, to] = [this.chosen, other].sort((a, b) => a.seq - b.seq);
    go("diff", { timeline: this.timeline, from: from.id, to: to.id });
  }

  async compareAnother() {
    if (!this.chosen) return;
    const where = await this.ask("Compare with", "12, or a name", "Compare");
    if (!where) return;
    const number = /^:?(\d+)$/.exec(where)?.[1];
    go("diff", { timeline: this.timeline, from: number ? `:${number}` : where, to: this.chosen.id });
  }

  /** Asks for one word; nothing if it was left. */
  ask(title, placeholder, verb) {
    const input = h("input", { autofocus: true, "aria-label": "Where", placeholder });
    return ask(title, h("p", { class: "field" }, input), verb, { value: () => input.value.trim(), leave: "Cancel" });
  }

  /** Asks for a number of a checkpoint, or of a message. */
  async askWhere() {
    const where = await this.ask("Go to", "12, a name, or #900 for a message", "Go");
    if (!where) return;
    if (where.startsWith("#")) return amend({ message: where.slice(1) });
    const number = /^:?(\d+)$/.exec(where)?.[1];
    const known = number && this.history.numbered(Number(number));
    if (known) this.choose(known);
    else amend({ at: number ? `:${number}` : where });
  }
}
