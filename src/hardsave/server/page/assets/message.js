// One message of a conversation. What an agent wrote becomes text, and no more of it at a time than
// a browser lays out at once.

import { h, line, shown } from "./dom.js";

export const REACH = 50_000; // characters of a text that are shown at a time

/** `opened` holds the names of parts that a person has opened, which begin with `name`; `more(message)`
 * shows more of it. */
export function message(one, { opened, more, number, name: named = "" }) {
  const reach = one.reach ?? REACH;
  const text = (given) => h("div", { class: "text", dir: "auto" }, shown(given.slice(0, reach)));
  const part = (name, summary, body) => {
    const details = h("details", { class: "part", open: opened.has(name) }, h("summary", {}, summary));
    const fill = () => {
      if (details.childElementCount > 1) return;
      details.append(h("pre", { class: "text", dir: "auto" }, shown(body().slice(0, reach))));
    };
    if (opened.has(name)) fill();
    details.addEventListener("toggle", () => {
      if (details.open) {
        opened.add(name);
        fill();
      } else opened.delete(name);
    });
    return details;
  };
  const canMore = (one.is_cut || longest(one) > reach) && !one.isAll;
  return [
    h("header", {}, h("span", { class: "role" }, role(one)), number),
    one.text && text(one.text),
    one.calls.map(({ tool, arguments: given }, at) =>
      part(`${named}${one.number} call ${at}`, [h("b", {}, line(tool, 60)), " ", h("code", {}, brief(given))], () => spelt(given)),
    ),
    one.results.map((each, at) => {
      const first = line(each.slice(0, 400), 120) || "(empty)";
      return part(`${named}${one.number} result ${at}`, ["Result ", h("code", {}, first)], () => each);
    }),
    canMore && h("button", { class: "small", onclick: () => more(one) }, one.isWhole ? "Show more" : "Show all"),
    one.isAll && one.is_cut && h("p", { class: "quiet small" }, "The rest is too long to be shown here: ", one.link),
  ];
}

/** How many characters the longest text of a message has. */
export function longest({ text, results, calls }) {
  const texts = [text, ...results, ...calls.map((each) => each.arguments)];
  return Math.max(...texts.map((each) => each.length));
}

function role({ role: given, text, results, calls }) {
  if (results.length && !text && !calls.length) return "result";
  return line(given || "message", 30);
}

/** The arguments of a call in a line. */
function brief(given) {
  const values = parsed(given);
  if (!values) return line(given.slice(0, 400), 120);
  return line(Object.values(values).map(word).join(" ").slice(0, 400), 120);
}

/** The arguments of a call, each with its name. */
function spelt(given) {
  const values = parsed(given);
  if (!values) return given;
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${word(value)}`)
    .join("\n");
}

function parsed(given) {
  if (given.length > REACH || !given.startsWith("{")) return null;
  try {
    return JSON.parse(given);
  } catch {
    return null;
  }
}

function word(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
