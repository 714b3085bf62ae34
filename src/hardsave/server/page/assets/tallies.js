// How many files sessions have changed since they began. Each is a comparison, so only sessions that
// are seen are asked about, few at a time.

import { get } from "./api.js";

const AT_ONCE = 2;

export class Tallies {
  /** `tell()` is called when some have come. */
  constructor(tell) {
    this.tell = tell;
    this.known = new Map(); // by timeline: { head, files }
    this.wanted = [];
    this.asking = 0;
    this.asked = new AbortController();
  }

  end() {
    this.wanted = [];
    this.asked.abort();
  }

  /** What is known of a session, perhaps of a moment ago; null if nothing is. */
  of(session) {
    return this.known.get(session.timeline)?.files ?? null;
  }

  /** These are seen now, and no others. */
  want(sessions) {
    this.wanted = sessions.filter((each) => each.head?.workspace && this.known.get(each.timeline)?.head !== each.head.id);
    while (this.asking < AT_ONCE && this.wanted.length) this.ask(this.wanted.shift());
  }

  async ask({ timeline, head }) {
    this.asking += 1;
    this.known.set(timeline, { head: head.id, files: this.known.get(timeline)?.files ?? null });
    try {
      const { files } = await get("timeline/files", { timeline }, { signal: this.asked.signal });
      this.known.set(timeline, { head: head.id, files });
      this.tell();
    } catch {
      // a row goes without: what is wrong is said by the list itself
    } finally {
      this.asking -= 1;
      if (this.wanted.length) this.want(this.wanted);
    }
  }
}
