// A new timeline that starts at a checkpoint, with its files in a new directory if that is wanted.

import { act } from "./api.js";
import { fill, form, h, pathText, shown } from "./dom.js";
import { dialog } from "./notices.js";
import { short } from "./sessions.js";

/** Asks for a name, and forks; gives the server's answer, or nothing if it was left. */
export function fork(timeline, checkpoint) {
  return dialog(`Fork from :${checkpoint.seq}`, (close) => content(timeline, checkpoint, close));
}

function content(timeline, checkpoint, close) {
  const canCopy = typeof checkpoint.workspace === "string" && checkpoint.host === null;
  const { seq, workspace } = checkpoint;
  const named = { id: "fork-name", required: true, autofocus: true, maxlength: 200 };
  const name = h("input", { ...named, value: `${short(timeline).slice(0, 60)}-from-${seq}` });
  const beside = canCopy ? `${workspace.split("/").at(-1)}-${seq}` : "";
  const directory = h("input", { id: "fork-directory", maxlength: 255, disabled: true, required: true, value: beside });
  const turn = () => {
    directory.disabled = !wants.checked;
  };
  const wants = h("input", { type: "checkbox", onchange: turn });
  const trouble = h("div", { role: "alert" });
  const go = h("button", { class: "primary", type: "submit" }, "Fork");
  const submit = async () => {
    go.disabled = true;
    const body = { timeline, ref: checkpoint.id, name: name.value.trim() };
    if (wants.checked) body.directory = directory.value.trim();
    try {
      close(await act("fork", body));
    } catch (problem) {
      go.disabled = false;
      fill(trouble, h("p", { class: "broke" }, shown(problem.message)));
      name.focus();
    }
  };
  return form(
    { class: "form" },
    submit,
    h("p", {}, "A new timeline begins here; this one stays as it is."),
    h("label", { for: "fork-name" }, "Name"),
    name,
    canCopy && h("label", { class: "pick" }, wants, ` with its files, in a new directory beside ${pathText(workspace)}`),
    canCopy && h("label", { for: "fork-directory" }, "Name of the directory"),
    canCopy && directory,
    trouble,
    h("div", { class: "acts end" }, h("button", { type: "button", onclick: () => close() }, "Cancel"), go),
  );
}
