// A session: its rail of checkpoints, its conversation and its files, all at the moment that one
// slider has chosen. Without `at` in the address that is the head, wherever it goes.

import { get } from "./api.js";
import { copy, goingOn, quoted } from "./copying.js";
import { Conversation } from "./conversation.js";
import { ago, count, fill, h, line, shown } from "./dom.js";
import { Files } from "./files.js";
import { fork } from "./fork.js";
import { History, told } from "./history.js";
import { keys } from "./keys.js";
import { listen } from "./live.js";
import { title } from "./main.js";
import { dialog, fail, failed, say } from "./notices.js";
import { Operations } from "./operations.js";
import { Rail } from "./rail.js";
import { rewind } from "./rewind.js";
import { amend, go, href } from "./router.js";
import { Scrubber } from "./scrubber.js";

const PAUSE = 150; // milliseconds before the address is written, and a screen reader told
const RENEW = 1500; // between looks at what a session costs, while it is saved on
const TABS = { conversation: "Conversation", history: "History", files: "Files" };
const LONG = /^(.+-[0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/; // named by an agent
const MADE = /^(.+)-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{8}-[0-9]{6}-[0-9a-f]{6})$/;

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
    this.isLive = true;
    this.pending = []; // events that are not shown yet
    this.asked = new AbortController();
    this.history = new History(this.timeline);
    this.build();
    this.stop = [listen((message) => this.heard(message)), keys("This session", this.keys())];
    this.clock = setInterval(() => this.tick(), 30_000);
    this.load();
  }

  end() {
    this.asked.abort();
    clearInterval(this.clock);
    clearTimeout(this.writing);
    clearTimeout(this.drawing);
    clearTimeout(this.renewing);
    for (const stop of this.stop) stop();
    this.conversation.end();
    this.files.end();
  }

  // Building

  build() {
    const choose = (id) => this.choose(id);
    this.rail = new Rail({ choose, more: () => this.older() });
    this.scrubber = new Scrubber({ choose, step: (by) => this.step(by) });
    this.conversation = new Conversation();
    this.files = new Files({ choose: (checkpoint, params) => this.chooseAs(checkpoint, params) });
    this.operations = new Operations(this.timeline, (done) => this.done(done));
    this.heading = h("h1", {}, line(this.timeline, 80));
    this.facts = h("div", { class: "facts quiet" });
    this.told = h("p", { class: "unseen", role: "status" });
    this.goesOn = h("div", { "aria-live": "polite" });
    this.root = h(
      "div",
      { class: "at-session fills" },
      h("div", { class: "session-top" }, h("div", { class: "named" }, this.heading, this.facts), this.acts()),
      this.goesOn,
      this.scrubber.element,
      this.tabs(),
      h("div", { class: "panes" }, this.railPane(), this.conversation.element, this.files.element),
      this.told,
    );
    fill(this.place, this.root);
    this.tab(this.params.tab);
  }

  railPane() {
    this.number = h("span", { class: "quiet" });
    return h("section", { class: "pane past", "aria-label": "History", id: "pane-history" }, h("header", {}, h("h2", {}, "History"), this.number), h("div", { class: "fills body" }, this.rail.list));
  }

  acts() {
    const button = (label, key, run, kind = "") => h("button", { class: kind, title: `${label}: ${key}`, onclick: run }, label);
    this.rewindButton = button("Rewind to here", "r", () => this.rewind(), "primary");
    return h(
      "div",
      { class: "bar-of-acts" },
      h("div", { class: "acts" }, this.rewindButton, button("Fork…", "f", () => this.fork()), this.operations.element),
      this.compareMenu(),
      h("button", { title: "Copy the command that goes on from here", onclick: () => copy(this.command()) }, "Copy command"),
    );
  }

  compareMenu() {
    const item = (label, ends) =>
      h("button", { class: "plain", onclick: () => ((menu.open = false), this.compare(ends())) }, label);
    const menu = h(
      "details",
      { class: "menu", onfocusout: (event) => menu.contains(event.relatedTarget) || (menu.open = false), onkeydown: (event) => event.key === "Escape" && ((menu.open = false), menu.firstElementChild.focus()) },
      h("summary", { class: "button" }, "Compare"),
      h(
        "div",
        { class: "items" },
        item("with the step before", () => [this.chosen.parent, this.chosen.id]),
        item("with the head", () => [this.chosen.id, this.history.head]),
        item("with the disk", () => [this.chosen.id, "now"]),
      ),
    );
    return menu;
  }

  tabs() {
    this.tabButtons = Object.entries(TABS).map(([name, label]) =>
      h("button", { role: "tab", "aria-controls": `pane-${name}`, dataset: { name }, onclick: () => amend({ tab: name === "conversation" ? "" : name }) }, label),
    );
    return h("div", { class: "tabs panes-tabs", role: "tablist", "aria-label": "Parts of the session" }, this.tabButtons);
  }

  tab(name) {
    const shownTab = TABS[name] ? name : "conversation";
    this.root.dataset.tab = shownTab;
    for (const button of this.tabButtons) button.setAttribute("aria-selected", String(button.dataset.name === shownTab));
  }

  keys() {
    return [
      { key: "ArrowLeft j", about: "Step before", act: () => this.step(-1) },
      { key: "ArrowRight k", about: "Step after", act: () => this.step(1) },
      { key: "Home", about: "First step", act: () => this.step(-Infinity) },
      { key: "End", about: "The head", act: () => this.choose(null) },
      { key: "g", about: "Go to a number, a name, or #message", act: () => this.askWhere() },
      { key: "r", about: "Rewind to here", act: () => this.rewind() },
      { key: "f", about: "Fork from here", act: () => this.fork() },
      { key: "c", about: "Compare with the step before", act: () => this.chosen?.parent && this.compare([this.chosen.parent, this.chosen.id]) },
      { key: "d", about: "Compare with the disk", act: () => this.chosen && this.compare([this.chosen.id, "now"]) },
      { key: "p", about: "Prompts only", act: () => this.conversation.toggle.click() },
    ];
  }

  // Reading

  async load() {
    const { signal } = this.asked;
    try {
      if (!this.timeline) throw new Error("the address names no session; choose one of the list");
      const reading = this.history.read({ signal, told: () => this.drawSoon() });
      this.operations.read(signal);
      await this.inform();
      if (this.params.at) await this.find(this.params.at);
      else if (this.info.head) this.set(this.info.head);
      this.conversation.foldAll(this.params.fold === "prompts");
      if (this.params.message) this.conversation.jump(this.params.message);
      await reading;
      this.draw();
      if (!this.chosen && !this.info.head) this.nothing();
    } catch (problem) {
      if (!signal.aborted) failed(this.place, problem, () => go("home"));
    }
  }

  nothing() {
    fill(this.root.querySelector(".panes"), h("p", { class: "empty" }, "This timeline has no checkpoint any more. Undo brings them back, if they were deleted here."));
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

  /** Reads all anew, after something else than a save. */
  async moved() {
    const { signal } = this.asked;
    try {
      await Promise.all([this.history.read({ signal }), this.inform(), this.operations.read(signal)]);
      if (this.isFollowing && this.info.head) this.set(this.info.head, { isGrown: true });
      this.draw();
    } catch (problem) {
      fail(problem);
    }
  }

  // What happens

  heard(message) {
    if (message.kind === "state") {
      this.isLive = message.connected;
      this.drawTop();
      if (message.connected && this.history.isRead) this.catchUp();
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

  async catchUp() {
    try {
      const isJoined = await this.history.catchUp({ signal: this.asked.signal });
      await this.inform();
      if (!isJoined || (this.info.head?.timeline === this.timeline && this.info.head.id !== this.history.head)) await this.moved();
      else this.absorb();
    } catch (problem) {
      fail(problem);
    }
  }

  drawSoon() {
    this.drawing ??= setTimeout(() => {
      this.drawing = null;
      this.draw();
    }, 16);
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

  renewSoon() {
    this.renewing ??= setTimeout(() => {
      this.renewing = null;
      this.inform().catch(fail);
    }, RENEW);
  }

  tick() {
    for (const each of this.root.querySelectorAll("time")) each.textContent = ago(each.dateTime);
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
    if (isOther || this.rail.chosen !== checkpoint.id || this.rail.place(checkpoint.id) < 0) this.rail.mark(checkpoint.id);
    const place = this.history.places.get(checkpoint.id);
    const past = place === undefined ? [checkpoint] : this.history.line.slice(0, place + 1).map((id) => this.history.checkpoint(id));
    this.conversation.show(checkpoint, past, { isGrown });
    this.files.show(checkpoint, this.params);
    this.rewindButton.title = `Rewind to :${checkpoint.seq}: r`;
  }

  /** Writes where the page is into the address, once a person has stopped. */
  writeSoon() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => {
      const at = this.isFollowing ? "" : this.chosen.id;
      this.params = { ...this.params, at, message: "" };
      amend({ at, message: "" });
      this.told.textContent = this.chosen ? `:${this.chosen.seq} ${line(told(this.chosen)[1], 160)}` : "";
    }, PAUSE);
  }

  /** The address has changed: by this screen, by a link, or by the browser's buttons. */
  amend(params) {
    const before = this.params;
    this.params = params;
    this.tab(params.tab);
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
    const head = history.checkpoint(history.head) ?? info.head;
    const known = history.isRead && !history.next ? history.order.length : Math.max(info.checkpoints, history.order.length);
    const agent = head?.metadata?.agent ?? MADE.exec(this.timeline)?.[1];
    const status = head?.status ?? info.status;
    const messages = head?.summary?.messages ?? info.messages;
    this.number.textContent = count(known, "checkpoint");
    this.heading.textContent = line(info.title || this.timeline, 160);
    fill(
      this.facts,
      status && h("span", { class: `state ${shown(status)}` }, line(status, 30)),
      h("span", { class: `live${this.isLive ? "" : " off"}`, title: this.isLive ? "What is saved appears here at once" : "Not connected: this may be out of date" }, this.isLive ? "live" : "not live"),
      info.title && h("span", { class: "mono", title: shown(this.timeline) }, line(this.timeline.replace(LONG, "$1"), 60)),
      typeof agent === "string" && h("span", {}, line(agent, 40)),
      h("span", {}, count(known, "step")),
      messages !== null && h("span", {}, count(messages, "message")),
      info.cost !== null && h("span", {}, `$${info.cost.toFixed(2)}`),
      info.origin && h("a", { href: href("session", { timeline: this.timeline, at: info.origin }) }, "forked"),
    );
  }

  // Acts

  async rewind() {
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
    say(`Forked: ${made.timeline.timeline}.${where}`, { act: { label: "Open it", run: () => go("session", { timeline: made.timeline.timeline }) } });
    await this.done(made);
  }

  compare([from, to]) {
    if (from && to) go("diff", { timeline: this.timeline, from, to });
    else say("There is no step before this one to compare with.");
  }

  /** What to type to go on from the chosen moment. */
  command() {
    const directory = this.chosen?.host === null && typeof this.chosen?.workspace === "string" ? `cd ${quoted(this.chosen.workspace)} && ` : "";
    return `${directory}hardsave rewind ${this.chosen?.id} --timeline ${quoted(this.timeline)} --resume`;
  }

  /** Asks for a number of a checkpoint, or of a message. */
  async askWhere() {
    const where = await dialog("Go to", (close) => {
      const input = h("input", { autofocus: true, "aria-label": "Where", placeholder: "12, a name, or #900 for a message" });
      const submit = (event) => {
        event.preventDefault();
        close(input.value.trim());
      };
      return h("form", { class: "form", onsubmit: submit }, input, h("div", { class: "acts end" }, h("button", { class: "primary" }, "Go")));
    });
    if (!where) return;
    if (where.startsWith("#")) return amend({ message: where.slice(1) });
    const number = /^:?(\d+)$/.exec(where)?.[1];
    const known = number && this.history.numbered(Number(number));
    if (known) this.choose(known);
    else amend({ at: number ? `:${number}` : where });
  }
}
