// Lists that are walked with keys: focus moves from one entry's link to the next one's.

/** Moves the focus so many entries on, and has that one in view. */
export function step(list, by, links = "a.name") {
  const every = [...list.querySelectorAll(links)];
  if (!every.length) return;
  const at = every.indexOf(document.activeElement);
  const next = every[at < 0 ? (by > 0 ? 0 : every.length - 1) : Math.max(0, Math.min(every.length - 1, at + by))];
  next.focus({ preventScroll: true });
  next.closest("li, article")?.scrollIntoView({ block: "nearest" });
}
