// Arrow keys in a list whose rows come and go: the list keeps the focus, and one row is the active one.

/** `at()` is the row that is chosen, `open(row)` what Enter does, `moved(row)` what an arrow does to
 * where it leads, `fold(row, isOpen)` what the arrows to the side do; it says whether there was
 * something to do. */
export function arrows(list, { length, at, open, moved = () => {}, fold = () => false }) {
  let active = -1;
  list.active = (row) => {
    active = row;
    if (row < 0) list.removeAttribute("aria-activedescendant");
    else list.setAttribute("aria-activedescendant", `${list.classList[0]}-${row}`);
    mark();
  };
  const mark = () => {
    for (const [number, { element }] of list.rows) element.classList.toggle("active", number === active);
  };
  const move = (row) => {
    const to = Math.max(0, Math.min(length() - 1, row));
    list.reveal(to);
    list.active(to);
    moved(to);
  };
  list.addEventListener("drawn", mark);
  list.addEventListener("keydown", (event) => {
    if (event.target !== list || event.ctrlKey || event.metaKey || event.altKey || !length()) return;
    const from = active >= 0 ? active : at();
    const page = Math.max(1, Math.floor(list.clientHeight / 46) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) move(from + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") open(from);
    else if (!(event.key === "ArrowRight" || event.key === "ArrowLeft") || !fold(from, event.key === "ArrowRight")) return;
    event.preventDefault();
  });
}
