"""What is remembered of sessions beside their transcripts: small files among the user's data.

A session that goes on from a rewind saves on the timeline that was rewound. The copy of a
transcript that a rewind has made serves the next rewind to the same checkpoint, too. And an agent
that is still in a conversation which a rewind has left must not move the head back there when it
ends.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hardsave import config
from hardsave.agents.transcripts import Mark
from hardsave.errors import Unavailable
from hardsave.tuples import NamedTuple

ENDING_SECONDS = 300.0  # that a rewind inside of an agent may take, and the agent to end


def remember_timeline(environment: Mapping[str, str], session: str, timeline: str) -> None:
    """Where a session that is about to begin shall save."""
    _write(_timeline_file(environment, session), timeline)


def timeline(environment: Mapping[str, str], session: str) -> str | None:
    """Where a session was told to save; None if no rewind has told it."""
    try:
        return _timeline_file(environment, session).read_text(encoding="utf-8")
    except (OSError, Unavailable):
        return None


def remember_copy(
    environment: Mapping[str, str], key: str, session: str, path: Path, mark: Mark
) -> None:
    """A copy of a transcript, as it was made."""
    told = {"session": session, "path": os.fsdecode(path), **mark.told()}
    _write(_copy_file(environment, key), json.dumps(told))


def copy(environment: Mapping[str, str], key: str) -> tuple[str, str, Mark] | None:
    """The session of a copy, its path, and its mark; None if none was made."""
    try:
        told = json.loads(_copy_file(environment, key).read_text(encoding="utf-8"))
        session, path, mark = told["session"], told["path"], Mark.of(told)
    except (OSError, ValueError, KeyError, TypeError, Unavailable):
        return None
    return None if mark is None else (str(session), str(path), mark)


def leave(
    environment: Mapping[str, str], session: str, process: tuple[int, int] | None = None
) -> None:
    """A rewind has taken the user away from a session, which may still be open; `process` is its
    agent, by number and when it began, if that is about to be ended."""
    text = "" if process is None else f"{process[0]} {process[1]}"
    _write(_left_file(environment, session), text)


def come_back(environment: Mapping[str, str], session: str) -> None:
    """A session is gone on with, though it was left."""
    with suppress(OSError, Unavailable):
        _left_file(environment, session).unlink()


class Left(NamedTuple):
    """A session that was left."""

    process: tuple[int, int] | None


def left(environment: Mapping[str, str], session: str) -> Left | None:
    """Whether a session was left, and which agent is ended with it. An agent that was to be ended
    long ago goes on: the process that was to end it was killed."""
    try:
        file = _left_file(environment, session)
        words = file.read_text(encoding="utf-8").split()
        is_due = time.time() - file.stat().st_mtime < ENDING_SECONDS
        return Left((int(words[0]), int(words[1])) if words and is_due else None)
    except (OSError, ValueError, IndexError, Unavailable):
        return None


def _left_file(environment: Mapping[str, str], session: str) -> Path:
    return _folder(environment) / "left" / _plain(session)


def _timeline_file(environment: Mapping[str, str], session: str) -> Path:
    return _folder(environment) / _plain(session)


def _copy_file(environment: Mapping[str, str], key: str) -> Path:
    return _folder(environment) / "copies" / key


def _folder(environment: Mapping[str, str]) -> Path:
    return config.data_directory(environment, sys.platform) / "sessions"


def _plain(session: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in session)[:150]


def _write(path: Path, text: str) -> None:
    config.make_folder(path.parent)
    with open(path, "w", encoding="utf-8", opener=_for_this_user) as file:
        file.write(text)


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
