"""Saving and going back: save, fork, rewind, undo, delete. What each does is the library's; here it
is decided what a caller may name."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hardsave import Checkpoint, Operation, Timeline
from hardsave.defaults import MAX_DESCRIPTION, MAX_NAME, MAX_SAVE_BYTES
from hardsave.errors import Conflict, Misuse
from hardsave.server.api import data, going_on, refs
from hardsave.server.api.conditions import (
    REPLAYED,
    check_given,
    expected,
    expected_head,
    key_of,
    key_of_act,
    noting_repeats,
    precondition,
    saved_as,
)
from hardsave.server.api.shapes import (
    CHANGES,
    OPERATION,
    PATH,
    REWIND,
    WHOLE,
    also,
    named,
    or_null,
    shape,
)
from hardsave.server.fields import Field, choice, flag, mapping, paths, text, value
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.timeline.names import KINDS
from hardsave.values.spelling import from_json, to_json
from hardsave.vault import json_data
from hardsave.vault.vault import check_key_unused
from hardsave.vault.workspaces import projects
from hardsave.vault.workspaces.places import OtherHost

_ABOUT = ("name", "kind", "description", "title")
_SAYS_NOTHING: Mapping[str, Any] = {
    "name": None,
    "status": "running",
    "description": "",
    "metadata": {},
    "labels": {},
}


# Saving


def save(call: Call) -> Answer:
    asked = call.asked
    given = [name for name in ("state", "delta") if asked[name] is not ...]
    if len(given) == 2 or (not given and asked["workspace"] is None):
        raise Misuse("send one of state and delta; a workspace may come with it, or alone")
    line = call.vault.timeline(asked["timeline"])
    options = _options(call)
    key = key_of(call)
    if key is not None:
        check_key_unused(call.vault, key)
        options["id"] = saved_as(key)
    is_known = key is not None and call.vault.knows(options["id"])
    with precondition(call):
        if not given:
            if expected(call) is not None:
                raise Misuse("files alone come beside the head there is: leave If-Match out")
            done = line.save_files(**options)
        elif given == ["state"]:
            done = line.save(from_json(asked["state"]), expect=expected_head(call), **options)
        else:
            done = line.append(_delta(asked["delta"]), expect=expected_head(call), **options)
    if key is not None:
        _check_same(line, options, done)
    headers = (REPLAYED,) if is_known else ()
    return Answer(201, data.whole_checkpoint(done), headers=headers)


def _check_same(line: Timeline, options: Mapping[str, Any], done: Checkpoint) -> None:
    """What was saved under a key before says the same of itself; its state was compared by the
    library."""
    said = {**_SAYS_NOTHING, "kind": done.kind, **options}
    asked = {name: said[name] for name in ("kind", *_SAYS_NOTHING)}
    found = {name: getattr(done, name) for name in asked}
    where = None if done.files is None else done.files.workspace
    if to_json(found) != to_json(line.as_saved(asked)) or where != options.get("workspace"):
        raise Conflict(
            f"this key is that of another save, {done.timeline}:{done.seq}; give each request its "
            "own"
        )


def _options(call: Call) -> dict[str, Any]:
    asked = call.asked
    found = {name: asked[name] for name in _ABOUT if asked[name] is not None}
    if asked["status"] is not None:
        found["status"] = asked["status"]
    for name in ("metadata", "notes"):
        if asked[name] is not None:
            found[name] = {each: from_json(item) for each, item in asked[name].items()}
    if asked["labels"] is not None:
        found["labels"] = asked["labels"]
    if asked["workspace"] is not None:
        found["workspace"] = refs.directory(call.vault, asked["workspace"], call.allowed)
    return found


def _delta(given: Any) -> Mapping[str, Any]:
    delta = from_json(given)
    if not isinstance(delta, Mapping):
        raise Misuse("delta is an object: lists in it are appended, other keys are replaced")
    return delta


# Going back


def preview(call: Call) -> Answer:
    done = _rewound(call, dry_run=True)
    return Answer(body=data.rewind(done, dry_run=True), headers=(("ETag", f'"{done.plan}"'),))


def rewind(call: Call) -> Answer:
    check_given(
        call,
        'the plan of POST /api/v1/rewind/preview in quotation marks; or "chk_…", the head that you '
        "have seen; or * to go back in any case",
    )
    with noting_repeats() as noted, precondition(call):
        done = _rewound(call, dry_run=False)
    further = {"going_on": going_on.after_rewind(call, done)}
    return noted.answered(Answer(body={**data.rewind(done, dry_run=False), **further}))


def _rewound(call: Call, *, dry_run: bool) -> Any:
    """What the ref means is left to the library: a request that is repeated is known by its key,
    also if there is nothing at its ref by then."""
    asked = call.asked
    line = call.vault.timeline(asked["timeline"])
    try:
        return line.rewind(
            asked["ref"],
            what=asked["what"],
            paths=None if asked["paths"] is None else [from_json(each) for each in asked["paths"]],
            scope=asked["scope"],
            git=asked["git"],
            tasks=asked["tasks"],
            dry_run=dry_run,
            expect=None if dry_run else expected(call),
            key=None if dry_run else key_of_act(call),
        )
    except OtherHost as error:
        command = ("rewind", line.get(asked["ref"]).id, "--timeline", line.name)
        raise refs.elsewhere(error.host, error.path, *command) from error


def undo(call: Call) -> Answer:
    return _step(call, "undo", lambda where: where.undo(key=key_of_act(call)))


def redo(call: Call) -> Answer:
    return _step(call, "redo", lambda where: where.redo(key=key_of_act(call)))


def _step(call: Call, kind: str, take: Callable[[Any], Operation]) -> Answer:
    name = call.asked["timeline"]
    where = call.vault if name is None else call.vault.timeline(name)
    with noting_repeats() as noted:
        try:
            done = take(where)
        except OtherHost as error:
            command = (kind,) if name is None else (kind, "--timeline", name)
            raise refs.elsewhere(error.host, error.path, *command) from error
    further = {
        "files": None if done.files is None else json_data.file_changes(done.files),
        "going_on": going_on.after_step(call, done),
    }
    return noted.answered(Answer(body={**data.operation(done), **further}))


def fork(call: Call) -> Answer:
    asked = call.asked
    if asked["directory"] is not None:
        return _fork_into(call, refs.find(call.vault, asked["ref"], asked["timeline"]))
    if asked["timeline"] is None:
        refs.check_whole(asked["ref"])
    with noting_repeats() as noted:
        line = call.vault.timeline(asked["timeline"] or asked["name"])
        made = line.fork(asked["ref"], name=asked["name"], key=key_of_act(call))
    session = data.session(call.vault.session(made.name))
    body = {"timeline": session, "directory": None, "going_on": None}
    return noted.answered(Answer(201, body))


def _fork_into(call: Call, source: Any) -> Answer:
    """A new directory beside the one that the files are of: a caller chooses its name, not where
    on this machine it lies."""
    refs.check_host(refs.with_files(source), "fork", source.id, call.asked["directory"])
    name, beside = call.asked["directory"], Path(source.files.workspace)
    if name in (os.curdir, os.pardir) or os.sep in name or "\0" in name:
        raise Misuse(f"directory is the name of a new one beside {beside}, not {name!r}")
    workspace = call.vault.workspace(beside)
    with noting_repeats() as noted:
        made = workspace.fork(
            source.id, beside.with_name(name), name=call.asked["name"], key=key_of_act(call)
        )
    path = str(made.workspace.path)
    if call.project is not None:  # commands that are typed there go on with this store
        projects.adopt(os.environ, made.workspace.path, call.project.store_url)
    body = {
        "timeline": data.session(call.vault.session(made.timeline.name)),
        "directory": path,
        "going_on": going_on.after_fork(call, source, made.timeline.name, path),
    }
    return noted.answered(Answer(201, body))


# Letting go


def delete_checkpoint(call: Call) -> Answer:
    ref, timeline = call.asked["ref"], call.asked["timeline"]
    if timeline is None:
        refs.check_whole(ref)
    with noting_repeats() as noted:
        gone = call.vault.delete(ref, timeline=timeline, key=key_of_act(call))
    return noted.answered(Answer(body={"deleted": data.checkpoint(gone)}))


def delete_timeline(call: Call) -> Answer:
    line = call.vault.timeline(call.asked["timeline"])
    with noting_repeats() as noted:
        count = line.delete(key=key_of_act(call))
    return noted.answered(Answer(body={"deleted": count}))


def clear_timeline(call: Call) -> Answer:
    line = call.vault.timeline(call.asked["timeline"])
    with noting_repeats() as noted:
        count = line.clear(key=key_of_act(call))
    return noted.answered(Answer(body={"cleared": count}))


_KEY = ("Idempotency-Key",)
_SAVED: tuple[Field, ...] = (
    refs.NEEDED_TIMELINE,
    value("state", "A whole state."),
    value("delta", "What is added to the head's state: lists grow, other keys are replaced."),
    text("name", "A name, by which it is found and kept.", most=MAX_NAME),
    choice("kind", "What kind it is.", *KINDS),
    text("status", "Such as running, waiting, failed, completed.", most=MAX_NAME),
    text("description", "A sentence about it.", most=MAX_DESCRIPTION),
    text("title", "Of the timeline, if it has none."),
    mapping("metadata", "Data of your own."),
    mapping("labels", "Texts by which it is found.", of_texts=True),
    mapping("notes", "Data beside it, which may be added to later."),
    text(
        "workspace", "A directory of the server's machine whose files are saved in the same commit."
    ),
)
_REWOUND: tuple[Field, ...] = (
    refs.NEEDED_TIMELINE,
    refs.NEEDED_REF,
    choice("what", "What goes back.", "all", "state", "files", default="all"),
    paths("paths", "Only these files and directories."),
    choice("scope", "Whose changes of files: those of this timeline, or all.", "mine", "everyone"),
    flag("git", "The branch and the index of the repository, too."),
    flag("tasks", "Tasks that saved what is left behind are rolled back, too."),
)
_FORKED: tuple[Field, ...] = (
    refs.NEEDED_REF,
    refs.TIMELINE,
    text("name", "What the new timeline is called.", needed=True, most=MAX_NAME),
    text("directory", "The name of a new directory beside the workspace, for its files.", most=255),
)
_FORK = shape(timeline=named("Session"), directory=or_null(PATH), going_on=going_on.SHAPE)
_STEP = also(OPERATION, files=or_null(CHANGES), going_on=going_on.SHAPE)


def _post(path: str, handler: Any, spec: Spec, **more: Any) -> Route:
    return Route("POST", f"/api/v1/{path}", handler, "act", spec=spec, **more)


ROUTES = (
    _post(
        "checkpoints",
        save,
        Spec(
            "Save a checkpoint",
            named("WholeCheckpoint"),
            body=_SAVED,
            status=201,
            headers=("If-Match", *_KEY),
            most_bytes=MAX_SAVE_BYTES,
        ),
    ),
    _post("fork", fork, Spec("Begin a timeline", _FORK, body=_FORKED, status=201, headers=_KEY)),
    _post(
        "rewind/preview",
        preview,
        Spec("What a rewind would do, and its plan", named("Rewind"), body=_REWOUND),
        lane="slow",
    ),
    _post(
        "rewind",
        rewind,
        Spec(
            "Go back",
            also(REWIND, going_on=going_on.SHAPE),
            body=_REWOUND,
            headers=("If-Match", *_KEY),
        ),
    ),
    _post(
        "undo",
        undo,
        Spec("Take the latest operation back", _STEP, body=(refs.TIMELINE,), headers=_KEY),
    ),
    _post(
        "redo",
        redo,
        Spec("Do again what was undone", _STEP, body=(refs.TIMELINE,), headers=_KEY),
    ),
    Route(
        "DELETE",
        "/api/v1/checkpoint",
        delete_checkpoint,
        "act",
        spec=Spec(
            "Delete a checkpoint; undo brings it back",
            shape(deleted=named("Checkpoint")),
            refs.AT,
            headers=_KEY,
        ),
    ),
    Route(
        "DELETE",
        "/api/v1/timeline",
        delete_timeline,
        "act",
        spec=Spec(
            "Delete a timeline; undo brings it back",
            shape(deleted=WHOLE),
            (refs.NEEDED_TIMELINE,),
            headers=_KEY,
        ),
    ),
    _post(
        "timeline/clear",
        clear_timeline,
        Spec(
            "Delete the checkpoints of a timeline; undo brings them back",
            shape(cleared=WHOLE),
            body=(refs.NEEDED_TIMELINE,),
            headers=_KEY,
        ),
    ),
)
