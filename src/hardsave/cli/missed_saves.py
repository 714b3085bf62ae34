"""Saves that were missed in this workspace, shown to a user before they are needed.

Hooks and the daemon leave notes of them, which stay until the metadata of a checkpoint lists
them. `log`, `status` and `doctor` say the same of them: what was missed, and whether the files here
are those of the last checkpoint all the same, on any timeline.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hardsave import Checkpoint, wording
from hardsave.cli.render import refs
from hardsave.cli.session import Session
from hardsave.daemon import spool
from hardsave.daemon.spool import Note
from hardsave.errors import HardsaveError, Unavailable
from hardsave.tuples import NamedTuple


class MissedSaves(NamedTuple):
    """What was missed in a workspace, and how that stands now."""

    notes: Sequence[Note]
    last: Checkpoint | None  # the newest one with files of this workspace
    is_changed: bool | None  # since then; None if that cannot be told


def say(session: Session) -> None:
    """Say it, if there is anything."""
    if found := find(session):
        session.out.say(f"{sentence(found)}; 'hardsave doctor' says more")


def find(session: Session) -> MissedSaves | None:
    """The saves that were missed here and that no checkpoint lists yet; None if there are none."""
    notes = notes_here(session)
    if not notes:
        return None
    try:
        found = session.workspace.status()
    except HardsaveError:  # which is not what was asked for
        return MissedSaves(notes, None, None)
    return MissedSaves(notes, found.last, found.last is None or bool(found.files))


def notes_here(session: Session) -> list[Note]:
    try:
        return spool.missed(spool.folder(os.environ, session.workspace_root))
    except (OSError, Unavailable):
        return []  # without a home, or the right to read it, there are no notes


def sentence(found: MissedSaves) -> str:
    """The whole truth in one: what is not saved, or was not for a while, and why."""
    notes, last, is_changed = found
    why = wording.shown(notes[-1].why)
    since = "" if last is None else f" since {wording.shown(refs.ref(last))}"
    if (agent := unsaved_agent(notes)) is not None:
        why = f"{why}, and the agent, process {agent}, goes on without it"
    if is_changed is None:
        return f"what has changed here may not be saved: {why}"
    if is_changed:
        return f"what has changed here{since} is NOT saved: {why}"
    count = wording.count(spool.count(notes), "save")
    return f"nothing has changed here{since}, but {count} went wrong: {why}"


@contextmanager
def recorded(session: Session) -> Iterator[dict[str, Any]]:
    """What the metadata of a checkpoint that is made here lists; then the notes are removed. That
    of an agent which lost its daemon stays: whether it is saved again is not known."""
    try:
        notes = spool.to_tell(spool.folder(os.environ, session.workspace_root))
    except (OSError, Unavailable):
        notes = []
    yield spool.listed(notes)
    for note in notes:
        with suppress(OSError):  # it is told again, then
            spool.end(note)


def unsaved_agent(notes: Sequence[Note]) -> int | None:
    """The process of an agent whose daemon has ended, if there is one: its work is not saved."""
    return next((note.left_alone for note in notes if note.left_alone is not None), None)


def listed(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """For programs."""
    found: list[dict[str, Any]] = spool.listed(notes).get("missed", [])
    return found
