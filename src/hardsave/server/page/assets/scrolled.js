// Where a person has scrolled to, kept beside the address: there after a reload, and after a way back.

import { BY_HAND, settled } from "./dom.js";
import { keep, kept } from "./router.js";

const PAUSE = 150; // milliseconds without scrolling, after which a place is kept

/** Calls `take` once an element has stood still, if the page is where it was then. */
function noting(element, take) {
  let where = "";
  const note = settled(() => where === location.hash && take(), PAUSE);
  element.addEventListener("scroll", () => ((where = location.hash), note()), { passive: true });
}

/** Keeps the place of a virtual list under a name; `key()` says what it shows. What comes back goes
 * there, if the same is shown as then. */
export function keepPlace(list, name, key = () => "") {
  noting(list, () => list.isConnected && keep({ [name]: { key: key(), ...list.anchor } }));
  return () => {
    const known = kept()[name];
    if (known?.key === key() && known.row + known.offset !== 0) list.jump(known.row, known.offset);
  };
}

/** Keeps how far an element is scrolled whose screens come one after the other. What comes back goes to
 * where a screen was, once there is so much of it, unless a person scrolls before. */
export function keepScroll(place) {
  let isReturning = false;
  let grown = null;
  const stop = () => {
    grown?.disconnect();
    isReturning = false;
  };
  noting(place, () => isReturning || keep({ scrolled: place.scrollTop }));
  for (const kind of BY_HAND) addEventListener(kind, stop, { passive: true });
  return () => {
    stop();
    const { scrolled } = kept();
    const [content] = place.children;
    if (!scrolled || !content) return;
    isReturning = true;
    grown = new ResizeObserver(() => {
      place.scrollTop = scrolled;
      if (Math.abs(place.scrollTop - scrolled) < 1) stop();
    });
    grown.observe(content);
  };
}
