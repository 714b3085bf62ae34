// Makes and changes elements. What agents wrote only ever becomes text: nothing here parses HTML.

/** An element. Properties that begin with `on` are listeners, `class` and `aria-…` are attributes;
 * children are elements, texts, or nothing. */
export function h(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) set(made, name, value);
  made.append(...nodes(children));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "value" || name === "checked" || name === "hidden") element[name] = value;
  else element.setAttribute(name, value === true ? "" : value);
}

function nodes(children) {
  return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false);
}

/** What a screen is called, with what stands beside that. */
export function heading(text, ...children) {
  return h("div", { class: "heading" }, h("h1", {}, text), ...children);
}

/** A form: `sent()` is called where a browser would send it. */
export function form(properties, sent, ...children) {
  const onsubmit = (event) => (event.preventDefault(), sent());
  return h("form", { ...properties, onsubmit }, ...children);
}

/** Puts children in the place of those that are there. */
export function fill(parent, ...children) {
  parent.replaceChildren(...nodes(children));
  return parent;
}

/** Makes the children of `parent` those of `items`: elements of keys that stay are kept, so focus,
 * selection and scroll position in them are. `make(item)` gives an element; if it has a method
 * `update`, that gets the item when it changes. */
export function keyed(parent, items, keyOf, make) {
  const old = parent.keyedChildren ?? new Map();
  const now = new Map();
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    if (now.has(key)) continue;
    let element = old.get(key);
    if (!element) element = make(item);
    else if (element.update) element.update(item);
    now.set(key, element);
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  for (const [key, element] of old) if (!now.has(key)) element.remove();
  parent.keyedChildren = now;
  return parent;
}

// Control characters, and those that reorder or hide text: a person decides over what is shown.
const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** A text as a person can see all of it. */
export function shown(text) {
  return String(text).replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** One line of a text. */
export function line(text, most = 200) {
  const first = shown(String(text).slice(0, most * 8)).replace(/\s+/g, " ").trim();
  return first.length > most ? `${first.slice(0, most - 1)}…` : first;
}

/** A path is a text, or an object where its name is no UTF-8. */
export function pathText(path) {
  return shown(typeof path === "string" ? path : (path.$text ?? JSON.stringify(path)));
}

/** Paths but for the directories that others of them lie in: a new directory is its files. */
export function withoutFolders(paths) {
  const above = new Set(paths.map((path) => typeof path === "string" && path.replace(/\/?[^/]*$/, "")));
  return paths.filter((path) => !above.has(path));
}

const UNITS = [
  [86400 * 365, "y"],
  [86400 * 30, "mo"],
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

export function ago(moment, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(moment)) / 1000));
  for (const [size, unit] of UNITS)
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  return "now";
}

export function bytes(number) {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let at = 0;
  let size = number;
  while (size >= 1000 && at < units.length - 1) {
    size /= 1000;
    at += 1;
  }
  return at ? `${size.toFixed(size < 10 ? 1 : 0)} ${units[at]}` : count(number, "byte");
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** What was added, changed and removed, as it is marked everywhere. */
export const SIGNS = { added: "+", changed: "~", removed: "−" };

/** How many were added, changed and removed. */
export function tally(counts) {
  return Object.entries(SIGNS).map(
    ([kind, sign]) => counts[kind] > 0 && h("span", { class: kind }, ` ${sign}${counts[kind]}`, h("span", { class: "unseen" }, ` ${kind}`)),
  );
}

/** A word for how something is, in its colour. */
export function state(name, label = name.replaceAll("_", " ")) {
  return h("span", { class: `state ${name}` }, line(label, 30));
}

/** A moment that says how long ago it was, and exactly when. */
export function when(moment) {
  return h("time", { datetime: moment, title: new Date(moment).toLocaleString() }, ago(moment));
}

/** Names and what is told of them, where there is something to tell: [name, value, class]. */
export function facts(rows, kind = "") {
  return h(
    "dl",
    { class: `facts-list ${kind}` },
    rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value, of]) =>
      h("div", {}, h("dt", {}, name), h("dd", { class: `text ${of || ""}`, dir: "auto" }, typeof value === "string" ? shown(value) : value)),
    ),
  );
}

/** After these a person scrolls. */
export const BY_HAND = ["wheel", "touchmove", "pointerdown", "keydown"];

/** Calls `act` so long after it is first asked for, once for all who ask meanwhile; `stop()` ends it. */
export function later(act, milliseconds = 300) {
  let timer = null;
  const ask = () => {
    timer ??= setTimeout(() => {
      timer = null;
      act();
    }, milliseconds);
  };
  return Object.assign(ask, { stop: () => clearTimeout(timer) });
}

/** Calls `act` once nothing has asked for it for so long. */
export function settled(act, milliseconds) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
}

/** Calls `act` at most once a frame, however often it is asked for. */
export function framed(act) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      act();
    });
  };
}
