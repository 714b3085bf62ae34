// Calls the server. Addresses are relative to the page: it may be served under a prefix.

const BASE = new URL("api/v1", document.baseURI).href;

/** What the server has refused, with its next step. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? "the server does not answer; is `hardsave serve` still running?");
    this.status = status;
    this.code = body.code ?? "unreachable";
    this.requestId = body.request_id ?? null;
  }
}

/** Who this browser is to the server; set by `begin`. */
export const me = { scope: "read", form_token: null, version: "", host: "" };

/** The project that all calls are about; null: the server's only one. */
export const chosen = { project: null, isOneOfSeveral: false };

export async function begin() {
  Object.assign(me, await get(""));
  return me;
}

export function may(scope) {
  const scopes = ["read", "act", "admin"];
  return scopes.indexOf(scope) <= scopes.indexOf(me.scope);
}

export function address(path, query = {}) {
  const url = new URL(path ? `${BASE}/${path}` : BASE);
  const asked = chosen.project === null ? query : { project: chosen.project, ...query };
  for (const [name, value] of Object.entries(asked))
    if (value !== undefined && value !== null && value !== "" && value !== false)
      url.searchParams.set(name, typeof value === "object" ? JSON.stringify(value) : value);
  return url.href;
}

export async function get(path, query = {}, { signal } = {}) {
  return (await sent(address(path, query), { signal })).json();
}

/** All that a list has, page by page; once it is so many, with the cursor of what is left. */
export async function every(path, query, most = Infinity) {
  const found = { items: [], next: null };
  do {
    const { items, next } = await get(path, { ...query, cursor: found.next });
    found.items.push(...items);
    found.next = next;
  } while (found.next && found.items.length < most);
  return found;
}

/** A part of a file, and how many bytes the whole of it has. */
export async function readPart(query, [first, end], { signal } = {}) {
  const headers = { Range: `bytes=${first}-${end - 1}` };
  const answer = await sent(address("file", query), { signal, headers });
  const total = Number(answer.headers.get("Content-Range")?.split("/")[1]);
  return { bytes: new Uint8Array(await answer.arrayBuffer()), total };
}

/** The beginning of an answer that may be of any length, as text. */
export async function readSome(path, query, most, { signal } = {}) {
  const reader = (await sent(address(path, query), { signal })).body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (text.length <= most) {
    const { done, value } = await reader.read();
    if (done) return { text, isCut: false };
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return { text: text.slice(0, most), isCut: true };
}

/** Does something, once: a request that is repeated because no answer came has the same key. */
export async function act(path, body = {}, { method = "POST", query = {}, match } = {}) {
  const headers = { "X-Hardsave-Form": me.form_token ?? "", "Idempotency-Key": crypto.randomUUID?.() ?? random() };
  if (match) headers["If-Match"] = match === "*" ? "*" : `"${match}"`;
  const options = { method, headers };
  if (method !== "DELETE") {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  for (let tries = 0; ; tries += 1) {
    try {
      return await (await sent(address(path, query), options)).json();
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status !== 0 || tries === 2) throw problem;
      await new Promise((resolve) => setTimeout(resolve, 300 * (tries + 1)));
    }
  }
}

function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** To the login, and from there back to where the page is. */
function logIn() {
  try {
    sessionStorage.setItem("hardsave:wanted", location.hash);
  } catch {
    // home, then
  }
  location.assign(new URL("login", document.baseURI));
}

async function sent(url, options) {
  let answer;
  try {
    answer = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {});
  }
  if (answer.ok) return answer;
  if (answer.status === 401) logIn();
  let body = {};
  try {
    body = await answer.json();
  } catch {
    body = { detail: `the server answered ${answer.status}` };
  }
  throw new Problem(answer.status, body);
}
