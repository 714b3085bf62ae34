// Where the page is: a name and parameters behind the `#`, so that every state has an address that
// can be copied, and no server has to know the names of screens. Where a server has several projects,
// every address says which one it is about.

import { chosen } from "./api.js";

/** { name, params } of an address such as `#/session?timeline=main&at=chk_1`. */
export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?", 2);
  return { name: path || "home", params: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

export function href(name, params = {}) {
  const named = chosen.isOneOfSeveral ? { project: chosen.project, ...params } : params;
  const given = Object.entries(named).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return `#/${name === "home" ? "" : name}${query ? `?${query}` : ""}`;
}

export function here() {
  return parse(location.hash);
}

/** Goes there; `replace` leaves no step behind for the browser's back button. */
export function go(name, params = {}, { replace = false } = {}) {
  const address = href(name, params);
  if (address === (location.hash || "#/")) return;
  if (replace) {
    const at = here();
    const isSame = at.name === name && at.params.timeline === params.timeline;
    history.replaceState(isSame ? history.state : null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = address;
  }
}

/** Changes parameters of where the page is, without another screen. */
export function amend(params, { replace = true } = {}) {
  const at = here();
  go(at.name, { ...at.params, ...params }, { replace });
}

/** Keeps how a screen is looked at, beside its address: there after a reload, and after a way back. */
export function keep(looks) {
  history.replaceState({ ...history.state, ...looks }, "");
}

export function kept() {
  return history.state ?? {};
}

/** Keeps a value for this tab, or where it is told to. */
export function remember(key, value, place = sessionStorage) {
  try {
    place.setItem(`hardsave:${key}`, JSON.stringify(value));
  } catch {
    // a browser that keeps nothing forgets it
  }
}

export function remembered(key, place = sessionStorage) {
  try {
    return JSON.parse(place.getItem(`hardsave:${key}`));
  } catch {
    return null;
  }
}
