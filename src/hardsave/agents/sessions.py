"""What is remembered of sessions beside their transcripts: small files among the user's data.

A session that goes on from a rewind saves on the timeline that was rewound. The copy of a
transcript that a rewind has made serves the next rewind to the same checkpoint, too.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from hardsave import config
from hardsave.agents.transcripts import Mark
from hardsave.errors import Unavailable


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


def _timeline_file(environment: Mapping[str, str], session: str) -> Path:
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in session)[:150]
    return config.data_directory(environment, sys.platform) / "sessions" / plain


def _copy_file(environment: Mapping[str, str], key: str) -> Path:
    return config.data_directory(environment, sys.platform) / "sessions" / "copies" / key


def _write(path: Path, text: str) -> None:
    config.make_folder(path.parent)
    with open(path, "w", encoding="utf-8", opener=_for_this_user) as file:
        file.write(text)


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
