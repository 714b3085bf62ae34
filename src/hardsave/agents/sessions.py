"""Which timeline a session saves on, if that is not its own.

A session that goes on from a rewind saves on the timeline that was rewound. Kept as small files
among the user's data.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from hardsave import config
from hardsave.errors import Unavailable


def remember_timeline(environment: Mapping[str, str], session: str, timeline: str) -> None:
    """Where a session that is about to begin shall save."""
    path = _timeline_file(environment, session)
    config.make_folder(path.parent)
    with open(path, "w", encoding="utf-8", opener=_for_this_user) as file:
        file.write(timeline)


def timeline(environment: Mapping[str, str], session: str) -> str | None:
    """Where a session was told to save; None if no rewind has told it."""
    try:
        return _timeline_file(environment, session).read_text(encoding="utf-8")
    except (OSError, Unavailable):
        return None


def _timeline_file(environment: Mapping[str, str], session: str) -> Path:
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in session)[:150]
    return config.data_directory(environment, sys.platform) / "sessions" / plain


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
