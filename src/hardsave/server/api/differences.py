"""What differs between two checkpoints, or between one and the files on this machine's disk."""

from collections.abc import Container
from pathlib import Path
from typing import Any

from hardsave import Checkpoint
from hardsave.agents.state import records
from hardsave.errors import Misuse, NotFound
from hardsave.objects.diff import StatePath
from hardsave.server.api import data, refs
from hardsave.server.api.caching import kept, tag_of, unchanged
from hardsave.server.api.shapes import (
    FLAG,
    ID,
    PATH,
    TEXT,
    WHOLE,
    listed,
    named,
    or_null,
    page_of,
    shape,
)
from hardsave.server.fields import PAGED, number, path, text
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.timeline import state_changes
from hardsave.timeline.diff import FileDiff
from hardsave.timeline.state_changes import MessageChange, ValueChange
from hardsave.values import messages
from hardsave.values.text import readable
from hardsave.vault import json_data
from hardsave.vault.history import file_sides

NOW = "now"
_LONGEST = 1_000_000  # characters of one file's comparison
_MOST_OF_A_VALUE = 10_000  # characters
_WORDS = {"+": "added", "~": "changed", "-": "removed"}


def show(call: Call) -> Answer:
    old, new = _ends(call)
    if new is None:
        return Answer(body=_body(call, old, None, _on_disk(call, old)))
    tag = tag_of(call, old.id, new.id)
    if same := unchanged(call, tag):
        return same
    found = call.vault.diff(old, new)
    limit = call.asked["limit"]
    state = {
        "added": [str(path) for path in found.added[:limit]],
        "removed": [str(path) for path in found.removed[:limit]],
        "changed": [str(path) for path in found.changed[:limit]],
        "is_cut": max(len(found.added), len(found.removed), len(found.changed)) > limit,
    }
    return kept(Answer(body={**_body(call, old, new, found.files), "state": state}), tag)


def show_state(call: Call) -> Answer:
    old, new = _ends(call)
    if new is None:
        raise Misuse("the disk has files and no state: compare two checkpoints")
    tag = tag_of(call, old.id, new.id)
    if same := unchanged(call, tag):
        return same
    found = state_changes.of(call.vault.diff(old, new), hidden=records(old.state, new.state))
    limit, moved = call.asked["limit"], found.moved()
    body = {
        "counts": {_WORDS[sign]: number for sign, number in found.counts().items()},
        "messages": [_message(old, new, found.key, each) for each in found.messages[:limit]],
        "values": [_value(old, new, each, moved) for each in found.values[:limit]],
        "is_cut": max(len(found.messages), len(found.values)) > limit,
    }
    return kept(Answer(body=body), tag)


def show_file(call: Call) -> Answer:
    old, new = _ends(call)
    path = call.asked["path"]
    then = file_sides.checkpoint_side(old.files)
    if new is None:
        return Answer(body=_lines(path, file_sides.patch(path, then, _disk_side(call, old, path))))
    tag = tag_of(call, old.id, new.id)
    if same := unchanged(call, tag):
        return same
    now = file_sides.checkpoint_side(new.files)
    if then(path) is None and now(path) is None:
        raise NotFound(f"neither checkpoint has {path!r}; GET /api/v1/diff lists what differs")
    return kept(Answer(body=_lines(path, file_sides.patch(path, then, now))), tag)


def file_history(call: Call) -> Answer:
    one = refs.with_files(refs.checkpoint(call))
    asked = call.asked
    found = call.vault.file_history(one, asked["path"], limit=asked["limit"], after=asked["cursor"])
    return Answer(body=data.page(found, data.version))


def _ends(call: Call) -> tuple[Checkpoint, Checkpoint | None]:
    """Both checkpoints; the second is None for the disk."""
    if call.asked["from"] == NOW:
        raise Misuse("'now' is what a checkpoint is compared with: from a checkpoint, to now")
    old = refs.checkpoint(call, "from")
    return old, None if call.asked["to"] == NOW else refs.checkpoint(call, "to")


def _on_disk(call: Call, old: Checkpoint) -> FileDiff:
    refs.check_host(refs.with_files(old), "diff", old.id, NOW)
    assert old.files is not None
    return call.vault.workspace(old.files.workspace).status(old).files


def _disk_side(call: Call, old: Checkpoint, path: str) -> file_sides.Side:
    """A caller may read of the disk what a capture would hold: no ignored or secret file. One that
    was saved and is ignored by now is gone for a capture, whether it lies there or not."""
    differing = _on_disk(call, old)
    if path in differing.removed:
        return lambda _: None
    if path not in differing.added and path not in differing.changed:
        raise NotFound(f"{path!r} does not differ from {old.timeline}:{old.seq}")
    assert old.files is not None
    return file_sides.disk_side(Path(old.files.workspace))


def _body(call: Call, old: Checkpoint, new: Checkpoint | None, files: FileDiff) -> dict[str, Any]:
    limit = call.asked["limit"]
    paths = json_data.files(files)
    return {
        "from": old.id,
        "to": None if new is None else new.id,
        "status": {"from": old.status, "to": None if new is None else new.status},
        "messages": {"from": _messages(old), "to": None if new is None else _messages(new)},
        "state": None,
        "files": {
            **{name: some[:limit] for name, some in paths.items()},
            "is_cut": any(len(some) > limit for some in paths.values()),
        },
    }


def _message(
    before: Checkpoint, after: Checkpoint, key: str, change: MessageChange
) -> dict[str, Any]:
    old = None if change.old is None else messages.read(before.read(key, change.old))
    new = None if change.new is None else messages.read(after.read(key, change.new))
    if old is not None and new is not None:
        old, new = state_changes.parted(old, new)
    sides = ((old, change.old), (new, change.new))
    told = [one and data.message(number or 0, one, most=data.CUT) for one, number in sides]
    return {"change": _WORDS[change.sign], "old": told[0], "new": told[1]}


def _value(
    before: Checkpoint, after: Checkpoint, change: ValueChange, moved: Container[StatePath]
) -> dict[str, Any]:
    then = change.old_path(moved)
    old = None if then is None else readable(before.read(*then), indent=1)
    new = None if change.sign == "-" else readable(after.read(*change.path), indent=1)
    return {
        "change": _WORDS[change.sign],
        "path": str(change.path),
        "old": old and old[:_MOST_OF_A_VALUE],
        "new": new and new[:_MOST_OF_A_VALUE],
        "is_cut": max(len(old or ""), len(new or "")) > _MOST_OF_A_VALUE,
    }


def _messages(one: Checkpoint) -> int | None:
    return None if one.summary is None else one.summary.messages


def _lines(path: str, patch: str) -> dict[str, Any]:
    return {"path": path, "unified": patch[:_LONGEST], "is_cut": len(patch) > _LONGEST}


_CHANGED = {name: listed(TEXT) for name in ("added", "removed", "changed")}
_FILES = {name: listed(PATH) for name in ("added", "removed", "changed")}
_ENDS = (
    text("from", "A checkpoint.", needed=True),
    text("to", "Another one, or 'now' for the files on the disk.", needed=True),
    refs.TIMELINE,
)
_LIMIT = number("limit", "How many paths of each kind at most.", 1, 100_000, default=2_000)

ROUTES = (
    Route(
        "GET",
        "/api/v1/diff",
        show,
        "read",
        lane="slow",
        spec=Spec(
            "What differs between two checkpoints, or from one to the disk",
            shape(
                to=or_null(ID),
                status=shape(to=or_null(TEXT), **{"from": TEXT}),
                messages=shape(to=or_null(WHOLE), **{"from": or_null(WHOLE)}),
                state=or_null(shape(**_CHANGED, is_cut=FLAG)),
                files=shape(**_FILES, is_cut=FLAG),
                **{"from": ID},
            ),
            (*_ENDS, _LIMIT),
            headers=("If-None-Match",),
        ),
    ),
    Route(
        "GET",
        "/api/v1/diff/state",
        show_state,
        "read",
        lane="slow",
        spec=Spec(
            "Which messages and values differ between two checkpoints, with what is in them",
            shape(
                counts=shape(added=WHOLE, changed=WHOLE, removed=WHOLE),
                messages=listed(
                    shape(change=TEXT, old=or_null(named("Message")), new=or_null(named("Message")))
                ),
                values=listed(
                    shape(change=TEXT, path=TEXT, old=or_null(TEXT), new=or_null(TEXT), is_cut=FLAG)
                ),
                is_cut=FLAG,
            ),
            (*_ENDS, number("limit", "How many of each at most.", 1, 1_000, default=100)),
            headers=("If-None-Match",),
        ),
    ),
    Route(
        "GET",
        "/api/v1/diff/file",
        show_file,
        "read",
        lane="slow",
        spec=Spec(
            "One file's change, as lines",
            shape(path=PATH, unified=TEXT, is_cut=FLAG),
            (*_ENDS, path("path", "A path inside of the workspace.", needed=True)),
            headers=("If-None-Match",),
        ),
    ),
    Route(
        "GET",
        "/api/v1/file/history",
        file_history,
        "read",
        lane="slow",
        spec=Spec(
            "Which checkpoints have added, changed or removed a file, newest first",
            page_of(named("FileVersion")),
            (*refs.AT, path("path", "A path inside of the workspace.", needed=True), *PAGED),
        ),
    ),
)
