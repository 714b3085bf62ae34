"""How the agent of a timeline goes on after it was taken back: the command to type, with its
conversation made ready. For directories of this machine, and the account that serves them."""

import os
import shlex
from typing import Any

from hardsave import Checkpoint, Operation, Rewind
from hardsave.agents.going_on import conversation_of
from hardsave.errors import HardsaveError
from hardsave.server.api.shapes import TEXT, Schema, or_null, shape
from hardsave.server.route import Call

SHAPE: Schema = or_null(
    shape(
        agent=TEXT,
        command=or_null(TEXT),
        directory=or_null(TEXT),
        why=TEXT,
        prompt=TEXT,
    )
)


def after_rewind(call: Call, done: Rewind) -> dict[str, Any] | None:
    if call.asked["what"] == "files" or call.asked["paths"] is not None:
        return None
    return _told(call, done.target, done.timeline, left=done.before)


def after_step(call: Call, done: Operation) -> dict[str, Any] | None:
    """After an undo or redo that has moved a head."""
    if done.timeline is None or done.about.get("of") not in ("rewind", "redo", "undo"):
        return None
    return _told(call, call.vault.timeline(done.timeline).head, done.timeline)


def after_fork(
    call: Call, source: Checkpoint, timeline: str, directory: str
) -> dict[str, Any] | None:
    return _told(call, source, timeline, origin="forked from", workspace=directory)


def _told(
    call: Call,
    one: Checkpoint | None,
    timeline: str,
    *,
    origin: str = "rewound to",
    workspace: str | None = None,
    left: Checkpoint | None = None,
) -> dict[str, Any] | None:
    """The act is done by now: what cannot be made ready is told, and fails nothing."""
    if one is None or one.files is None or one.files.host or call.vault.user is not None:
        return None
    where = workspace or one.files.workspace
    try:
        found = conversation_of(
            call.vault, os.environ, one, timeline, origin=origin, workspace=where, left=left
        )
    except (HardsaveError, OSError) as error:
        return {"agent": "", "command": None, "directory": None, "why": str(error), "prompt": ""}
    if found is None:
        return None
    command = found.command
    if command is not None and found.directory is not None:
        command = f"cd {shlex.quote(found.directory)} && {command}"
    return {
        "agent": found.agent,
        "command": command,
        "directory": found.directory,
        "why": found.why,
        "prompt": found.prompt,
    }
