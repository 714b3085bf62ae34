"""Where Codex keeps transcripts: `sessions/YEAR/MONTH/DAY/rollout-MOMENT-ID.jsonl`.

It finds a session by the id at the end of the name. A session that its user has taken back by Codex
itself goes on in another file, `rollout-MOMENT-ID_OTHER.jsonl`, whose first line says how much of
the one before still counts. Its databases are derived from these files and are none of our
business.
"""

import glob
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from hardsave.agents import codex_lines
from hardsave.agents.lines import Unknown
from hardsave.agents.transcripts import beginning_lines

_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SESSION = re.compile(f"{_ID}(?:_{_ID})?$")
_HEAD_BYTES = 1 << 20  # in which there is a first line
_ARCHIVE = "archived_sessions"


def going_on(session: str) -> str:
    """By its first id, whichever of its files this one was."""
    return f"codex resume {session.partition('_')[0]}"


def original(path: str, session: str, folder: Path) -> Path:
    home, archive = (Path(os.path.realpath(folder / name)) for name in ("sessions", _ARCHIVE))
    real = Path(os.path.realpath(path))
    is_rollout = re.fullmatch(rf"rollout-.*-{re.escape(session)}(_{_ID})?\.jsonl", real.name)
    is_there = real.parent == archive or home in real.parents[3:4]
    if not is_there or not is_rollout:
        raise Unknown(f"{path!r} is not where Codex keeps its transcripts")
    return real


def by_now(original: Path, folder: Path) -> Path:
    """Codex puts away what its user archives, under the same name, and takes it out again."""
    if original.exists():
        return original
    return next(_kept(folder, glob.escape(original.name)), original)


def transcripts(folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
    """Of any directory: only the first line of each says which. What a session goes on in counts as
    one of its own, by both ids."""
    for path in (folder / "sessions").glob("*/*/*/rollout-*.jsonl"):
        if found := _SESSION.search(path.stem):
            yield found[0], path


def check_base(first: str, folder: Path) -> None:
    """A fork, and a session that was taken back, lead to another file, and that to the next."""
    base, seen = codex_lines.base(first), set[str]()
    while base is not None and base not in seen:
        seen.add(base)
        path = _written(folder, base)
        if path is None:
            raise Unknown(f"it goes on from the session {base!r}, which is gone")
        begun = beginning_lines(path, _HEAD_BYTES) if path.suffix == ".jsonl" else []
        base = codex_lines.base(begun[0].decode(errors="replace")) if begun else None


def _written(folder: Path, id: str) -> Path | None:
    """Where a session was written down; Codex puts some away, and compresses some."""
    if not re.fullmatch(_ID, id):
        return None
    return min(_kept(folder, f"rollout-*[-_]{id}.jsonl*"), default=None)


def _kept(folder: Path, name: str) -> Iterator[Path]:
    yield from (folder / "sessions").glob(f"*/*/*/{name}")
    yield from (folder / _ARCHIVE).glob(name)


def beside(source: Path, new: str, folder: Path, moment: datetime) -> Path:
    """In the folder of the day, in local time, as Codex itself would have begun it."""
    local = moment.astimezone()
    return folder / f"sessions/{local:%Y/%m/%d}/rollout-{local:%Y-%m-%dT%H-%M-%S}-{new}.jsonl"


def take_along(folder: Path, old: str, new: str) -> None:
    """Nothing: a transcript has all."""
