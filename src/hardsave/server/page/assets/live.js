// What happens, as it happens. A browser has six connections to a host: of all tabs that show one
// project, one listens to the server and tells the others.

import { address, chosen } from "./api.js";

const listeners = new Set();
let current = null;

/** Calls `listener({ kind, ... })` for each message from now on; what comes back ends it. Kinds:
 * `events` (items), `reload` (read everything anew), `projects` (items), `state` (connected). */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(message) {
  for (const listener of [...listeners]) listener(message);
}

/** Listens to the chosen project from now on. */
export function follow() {
  current?.end();
  current = new Following(chosen.project ?? "");
}

class Following {
  constructor(project) {
    this.name = `hardsave ${new URL(".", document.baseURI).pathname} ${project}`;
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = ({ data }) => tell(data);
    this.ended = new AbortController();
    if (navigator.locks) {
      const options = { signal: this.ended.signal };
      navigator.locks.request(this.name, options, () => this.lead()).catch(() => {});
    } else {
      this.lead(); // a page over plain HTTP of another machine has no locks: each tab listens itself
    }
  }

  end() {
    this.ended.abort();
    this.source?.close();
    this.release?.();
    this.channel.close();
  }

  /** Listens for all tabs, until this one is closed or shows another project. */
  lead() {
    const source = new EventSource(address("events"));
    this.source = source;
    const pass = (message) => {
      tell(message);
      if (navigator.locks) this.channel.postMessage(message);
    };
    for (const kind of ["events", "reload", "projects"])
      source.addEventListener(kind, ({ data }) => pass({ kind, ...JSON.parse(data) }));
    source.addEventListener("hello", () => pass({ kind: "state", connected: true }));
    source.onerror = () => {
      pass({ kind: "state", connected: false });
      if (source.readyState === EventSource.CLOSED) this.again();
    };
    return new Promise((resolve) => {
      this.release = resolve;
    });
  }

  /** A server that has stopped may come back. */
  again() {
    setTimeout(() => {
      if (this.ended.signal.aborted) return;
      this.release?.();
      tell({ kind: "reload", reason: "reconnected" });
      this.lead();
    }, 3000);
  }
}
