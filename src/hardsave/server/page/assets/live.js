// What happens, as it happens. A browser has six connections to a host: of all tabs that show one
// project, one listens to the server and tells the others. Tabs of more projects than there are
// connections to spare ask from time to time instead.

import { address, chosen, get } from "./api.js";

const STREAMS = 3; // connections of one browser that may stay open
const ASKING_MS = 2000;
const WAITS_MS = [500, 1000, 3000, 10_000]; // before a server that does not answer is tried again

const listeners = new Set();
let current = null;
let last = null; // what was last said of the connection

/** Calls `listener({ kind, ... })` for each message from now on; what comes back ends it. Kinds:
 * `events` (items), `reload` (read everything anew), `projects` (items), `state` (connected). */
export function listen(listener) {
  listeners.add(listener);
  if (last) listener(last);
  return () => listeners.delete(listener);
}

/** Whether a screen has to read anew what it has read: it may have missed what happened before the page
 * was told of it. */
export function isGap({ kind, connected }) {
  return kind === "reload" || (kind === "state" && connected);
}

/** Whether tasks or jobs are perhaps not as they were. */
export function isWork(message) {
  return isGap(message) || (message.kind === "events" && message.items.some((each) => each.task));
}

function tell(message) {
  if (message.kind === "state") last = message;
  for (const listener of [...listeners]) listener(message);
}

/** Listens to a project from now on, or with null to which projects change. */
export function follow(project = chosen.project) {
  const name = project ?? "";
  if (current?.project === name) return;
  current?.end();
  current = new Following(name);
}

class Following {
  constructor(project) {
    this.project = project;
    this.name = `hardsave ${new URL(".", document.baseURI).pathname} ${project}`;
    this.cursor = ""; // of the last message, for the tab that listens next
    this.isConnected = null;
    this.isLeader = false;
    this.ended = new AbortController();
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = ({ data }) => this.heard(data);
    this.work().catch((problem) => {
      if (problem?.name !== "AbortError") throw problem;
    });
  }

  end() {
    this.ended.abort();
    this.channel.close();
  }

  /** Of the tab that listens, or of one that asks it how it is. */
  heard(message) {
    if (message.kind === "asked") {
      if (this.isLeader && this.isConnected !== null) this.channel.postMessage({ kind: "state", connected: this.isConnected, cursor: this.cursor });
      return;
    }
    this.take(message);
  }

  take({ cursor, ...message }) {
    if (cursor) this.cursor = cursor;
    if (message.kind) tell(message);
  }

  pass(message) {
    this.take(message);
    if (navigator.locks) this.channel.postMessage(message);
  }

  connected(is) {
    if (this.isConnected === is) return;
    this.isConnected = is;
    this.pass({ kind: "state", connected: is, cursor: this.cursor });
  }

  async work() {
    const { signal } = this.ended;
    if (!navigator.locks) return this.asking(); // over plain HTTP from another machine: each by itself
    this.channel.postMessage({ kind: "asked" });
    await navigator.locks.request(this.name, { signal }, async () => {
      this.isLeader = true;
      while (!signal.aborted) {
        const isHeard = await this.inPlace(() => this.listening());
        if (!isHeard) await this.asking(ASKING_MS * 10);
      }
    });
  }

  /** Runs with one of the connections that may stay open; false if all are taken. */
  async inPlace(run) {
    for (let place = 1; place <= STREAMS; place += 1) {
      const name = `hardsave stream ${place}`;
      const had = await navigator.locks.request(name, { ifAvailable: true }, async (lock) => {
        if (lock) await run();
        return lock !== null;
      });
      if (had) return true;
    }
    return false;
  }

  /** Listens for all tabs, until this one is closed or shows another project. */
  async listening() {
    const { signal } = this.ended;
    for (let tries = 0; !signal.aborted; tries += 1) {
      const began = Date.now();
      await this.streamed();
      if (Date.now() - began > 20_000) tries = 0;
      if (!signal.aborted) await this.pause(WAITS_MS[Math.min(tries, WAITS_MS.length - 1)]);
      if (!signal.aborted) await this.known();
    }
  }

  /** One stream, from where the last one ended to its own end. */
  streamed() {
    const { signal } = this.ended;
    const query = { project: this.project || undefined, cursor: this.cursor };
    const source = new EventSource(address("events", query));
    return new Promise((resolve) => {
      const over = () => {
        source.close();
        resolve();
      };
      signal.addEventListener("abort", over, { once: true });
      for (const kind of ["events", "reload", "projects"])
        source.addEventListener(kind, ({ data, lastEventId }) => this.pass({ kind, ...JSON.parse(data), cursor: lastEventId }));
      source.addEventListener("hello", ({ lastEventId }) => {
        if (lastEventId) this.cursor = lastEventId;
        this.connected(true);
      });
      source.addEventListener("bye", () => {
        this.connected(false);
        over();
      });
      source.onerror = () => {
        this.connected(false);
        if (source.readyState === EventSource.CLOSED) over();
      };
    });
  }

  /** Whether the server knows this browser: one that does not leads to the login. */
  async known() {
    await get("").catch(() => {});
  }

  /** Asks from time to time, for so long at most. */
  async asking(most = Infinity) {
    const { signal } = this.ended;
    const until = Date.now() + most;
    while (!signal.aborted && Date.now() < until) {
      await this.asked();
      await this.pause(ASKING_MS);
    }
  }

  async asked() {
    const { signal } = this.ended;
    try {
      if (!this.project && chosen.isOneOfSeveral) this.pass({ kind: "projects", items: [] });
      else {
        const path = this.cursor ? "happened" : "happened?cursor="; // from now on
        const { items, next } = await get(path, { project: this.project || undefined, cursor: this.cursor, limit: 1000 }, { signal });
        this.pass(items.length ? { kind: "events", items, cursor: next } : { cursor: next });
      }
      this.connected(true);
    } catch (problem) {
      if (problem.status === 400) {
        this.cursor = "";
        this.pass({ kind: "reload", reason: "unknown_id" });
      } else this.connected(false);
    }
  }

  async pause(milliseconds) {
    const over = new AbortController();
    await new Promise((resolve) => {
      setTimeout(resolve, milliseconds);
      this.ended.signal.addEventListener("abort", resolve, { signal: over.signal });
    });
    over.abort();
  }
}
