// The form that answers a question: approve, edit, deny; an answer in words; what becomes of a step.

import { form, h, shown } from "./dom.js";

export const CHOICES = {
  retry: ["Retry", "The step is taken again: what it did outside may be done twice."],
  skip: ["Skip", "The task goes on as if it was done, without what it gives."],
  fail: ["Fail", "The task is failed; it can be put back to work later."],
};

/** { element, approve?, edit?, deny?, reply?, choose? }: the form, and what keys do in it. `send(path, body,
 * said)` sends the answer. */
export function answer(one, send) {
  if (one.choices) return ofStep(one, send);
  return one.kind === "job" ? ofCall(one, send) : inWords(send);
}

/** The key that does the same. */
function hint(key) {
  return h("kbd", { "aria-hidden": "true" }, key);
}

function ofCall(one, send) {
  const call = callOf(one.question);
  const reason = h("input", { id: "reason", class: "grows", placeholder: "why not: the agent is told", "aria-label": "Reason, told the agent", maxlength: 2000 });
  const deny = () => send("jobs/deny", reason.value.trim() ? { reason: reason.value.trim() } : {}, "Denied");
  const approve = () => send("jobs/approve", {}, "Approved");
  const editor = call && Object.keys(call.args).length > 0 ? editorOf(call, (args) => send("jobs/approve", { arguments: args }, "Approved with changes")) : null;
  return {
    element: h(
      "div",
      { class: "answer" },
      h("div", { class: "acts" }, h("button", { id: "approve", class: "primary", onclick: approve }, "Approve", hint("a")), editor && h("button", { id: "edit", onclick: () => editor.open() }, "Edit…", hint("e"))),
      editor?.element,
      form({ class: "acts" }, deny, reason, h("button", { id: "deny" }, "Deny", hint("d"))),
    ),
    approve,
    edit: () => editor?.open(),
    deny: () => reason.focus(),
  };
}

/** A field for each argument; texts are edited as they are, all else as JSON. */
function editorOf({ args }, send) {
  const fields = Object.entries(args).map(([name, value], at) => {
    const isText = typeof value === "string";
    const text = isText ? value : JSON.stringify(value, null, 1);
    const area = h("textarea", { id: `argument-${at}`, class: "mono", rows: Math.min(12, text.split("\n").length + 1), value: text, spellcheck: "false" });
    return { name, isText, area };
  });
  const submit = () => {
    const made = {};
    for (const { name, isText, area } of fields)
      try {
        made[name] = isText ? area.value : JSON.parse(area.value);
        area.setCustomValidity("");
      } catch (error) {
        area.setCustomValidity(`This is no JSON: ${error.message}`);
        area.reportValidity();
        area.addEventListener("input", () => area.setCustomValidity(""), { once: true });
        return;
      }
    send(made);
  };
  const element = form(
    { class: "editor card", hidden: true },
    submit,
    fields.map(({ name, area, isText }) => h("p", { class: "field" }, h("label", { for: area.id, class: "mono" }, shown(name), !isText && h("span", { class: "quiet" }, " JSON")), area)),
    h("p", { class: "quiet" }, "The call is made with these; the agent is told that they were changed."),
    h("div", { class: "acts" }, h("button", { id: "approve-edited", class: "primary" }, "Approve with changes"), h("button", { type: "button", onclick: () => shut() }, "Not now")),
  );
  const shut = () => {
    element.hidden = true;
    document.getElementById("edit").focus();
  };
  element.addEventListener("keydown", ({ key }) => key === "Escape" && shut());
  return {
    element,
    open() {
      element.hidden = false;
      fields[0].area.focus();
    },
  };
}

function ofStep(one, send) {
  const choose = (each) => send("tasks/answer", { answer: each }, CHOICES[each]?.[0] ?? each);
  return {
    choose: (at) => one.choices[at] && choose(one.choices[at]),
    element: h(
      "div",
      { class: "answer choices" },
      one.choices.map((each, at) => {
        const [label, about] = CHOICES[each] ?? [each, ""];
        return h("p", {}, h("button", { id: each, onclick: () => choose(each) }, label, hint(at + 1)), h("span", { class: "quiet" }, about));
      }),
    ),
  };
}

/** As on the command line: JSON, or else a text. */
function inWords(send) {
  const area = h("textarea", { id: "reply", rows: 3, "aria-label": "Answer", placeholder: "a text, or JSON" });
  const reply = (given) => send("tasks/answer", { answer: given }, "Answered");
  return {
    element: form(
      {
        class: "answer",
        onkeydown: (event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) reply(valueOf(area.value));
        },
      },
      () => reply(valueOf(area.value)),
      area,
      h("div", { class: "acts" }, h("button", { id: "answer", class: "primary" }, "Answer"), h("button", { type: "button", id: "yes", onclick: () => reply("yes") }, "yes"), h("button", { type: "button", id: "no", onclick: () => reply("no") }, "no")),
    ),
    reply: () => area.focus(),
  };
}

/** What was typed: JSON if it is some, else a text. Numbers that a browser would round stay a text. */
export function valueOf(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "number" && !Number.isSafeInteger(value) && Number.isInteger(value) ? text : value;
  } catch {
    return text;
  }
}

/** { tool, args } of the question about a call; null if it is worded otherwise. Pure. */
export function callOf(text) {
  const found = /^may it call ([^\s(]+)\(([^]*)\)\?$/.exec(text);
  if (!found) return null;
  try {
    const args = JSON.parse(found[2]);
    return args && typeof args === "object" && !Array.isArray(args) ? { tool: found[1], args } : null;
  } catch {
    return null;
  }
}
