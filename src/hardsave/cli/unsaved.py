"""What nobody could save here, told to whoever looks: before it is needed, and not when.

Hooks and the process beside an agent leave notes of it. Once a later checkpoint has the files, a
note says nothing about them any more.
"""

import os
from collections.abc import Sequence
from typing import Any

from hardsave import Checkpoint
from hardsave.adapters import spool
from hardsave.adapters.spool import Note
from hardsave.cli import words
from hardsave.cli.session import Session
from hardsave.errors import Unavailable


def say(session: Session) -> None:
    """Say it, if there is anything."""
    if notes := standing(session):
        session.out.say(sentence(notes, session.workspace.last))


def standing(session: Session) -> list[Note]:
    """What was missed in this workspace since its last checkpoint."""
    try:
        notes = spool.missed(spool.folder(os.environ, session.directory))
    except (OSError, Unavailable):
        return []  # who has no home, or may not look there, has no notes
    last = session.workspace.last if notes else None
    return [note for note in notes if last is None or is_later(note, last)]


def is_later(note: Note, last: Checkpoint) -> bool:
    """Whether a note is about what the last checkpoint does not have."""
    saved, at = note.about.get("saved"), note.about.get("at")
    if isinstance(saved, str):
        return saved == last.id
    return isinstance(at, int | float) and at > last.created_at.timestamp()


def sentence(notes: Sequence[Note], last: Checkpoint | None) -> str:
    since = "" if last is None else f" since {words.shown(f'{last.timeline}:{last.seq}')}"
    return (
        f"what has changed here{since} is NOT saved: {words.shown(notes[-1].why)}; "
        "'hardsave doctor' says more"
    )


def listed(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """For programs."""
    found: list[dict[str, Any]] = spool.listed(notes).get("missed", [])
    return found
