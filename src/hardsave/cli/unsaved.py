"""What nobody could save here, told to whoever looks, before they need it.

Hooks and the process beside an agent leave notes of it, which stand until a checkpoint has told
them. `log`, `status` and `doctor` say the same of them: what was missed, and whether the files here
are those of the last checkpoint all the same, on whatever timeline that is.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hardsave import Checkpoint
from hardsave.cli import words
from hardsave.cli.session import Session
from hardsave.daemon import spool
from hardsave.daemon.spool import Note
from hardsave.errors import HardsaveError, Unavailable
from hardsave.tuples import NamedTuple


class Unsaved(NamedTuple):
    """What was missed in a workspace, and how that stands now."""

    notes: Sequence[Note]
    last: Checkpoint | None  # the newest one with files of this workspace
    is_changed: bool | None  # since then; None if that cannot be told


def say(session: Session) -> None:
    """Say it, if there is anything."""
    if found := look(session):
        session.out.say(f"{sentence(found)}; 'hardsave doctor' says more")


def look(session: Session) -> Unsaved | None:
    """What was missed here and nobody has told yet; None if nothing."""
    notes = standing(session)
    if not notes:
        return None
    try:
        found = session.workspace.status()
    except HardsaveError:  # which is not what was asked for
        return Unsaved(notes, None, None)
    return Unsaved(notes, found.last, found.last is None or bool(found.files))


def standing(session: Session) -> list[Note]:
    try:
        return spool.missed(spool.folder(os.environ, session.ground))
    except (OSError, Unavailable):
        return []  # who has no home, or may not look there, has no notes


def sentence(found: Unsaved) -> str:
    """The whole truth in one: what is not saved, or was not for a while, and why."""
    notes, last, is_changed = found
    why = words.shown(notes[-1].why)
    since = "" if last is None else f" since {words.shown(f'{last.timeline}:{last.seq}')}"
    if (agent := alone(notes)) is not None:
        why = f"{why}, and the agent, process {agent}, goes on without it"
    if is_changed is None:
        return f"what has changed here may not be saved: {why}"
    if is_changed:
        return f"what has changed here{since} is NOT saved: {why}"
    count = words.count(spool.count(notes), "save")
    return f"nothing has changed here{since}, but {count} went wrong: {why}"


@contextmanager
def told(session: Session) -> Iterator[dict[str, Any]]:
    """What the metadata of a checkpoint that is made here says of them; then they are done with.
    It is not known whether an agent is saved again that was left alone: that stands."""
    try:
        notes = spool.to_tell(spool.folder(os.environ, session.ground))
    except (OSError, Unavailable):
        notes = []
    yield spool.listed(notes)
    for note in notes:
        with suppress(OSError):  # it is told again, then
            spool.end(note)


def alone(notes: Sequence[Note]) -> int | None:
    """An agent whose work nobody saves, by its process."""
    return next((note.left_alone for note in notes if note.left_alone is not None), None)


def listed(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """For programs."""
    found: list[dict[str, Any]] = spool.listed(notes).get("missed", [])
    return found
