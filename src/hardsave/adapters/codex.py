"""Where Codex keeps transcripts: `sessions/YEAR/MONTH/DAY/rollout-MOMENT-ID.jsonl`.

It finds a session by the id at the end of the name. Its databases are derived from these files and
are none of our business.
"""

import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from hardsave.adapters.lines import Unknown

_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
RESUME = "codex resume"


def original(path: str, session: str, folder: Path) -> Path:
    home = Path(os.path.realpath(folder / "sessions"))
    real = Path(os.path.realpath(path))
    is_rollout = real.name.startswith("rollout-") and real.name.endswith(f"-{session}.jsonl")
    if len(real.parents) < 4 or real.parents[3] != home or not is_rollout:
        raise Unknown(f"{path!r} is not where Codex keeps its transcripts")
    return real


def transcripts(folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
    """Of any directory: only the first line of each says which."""
    for path in (folder / "sessions").glob("*/*/*/rollout-*.jsonl"):
        if found := _SESSION.search(path.stem):
            yield found[0], path


def beside(source: Path, new: str, folder: Path, moment: datetime) -> Path:
    """In the folder of the day, in local time, as Codex itself would have begun it."""
    local = moment.astimezone()
    return folder / f"sessions/{local:%Y/%m/%d}/rollout-{local:%Y-%m-%dT%H-%M-%S}-{new}.jsonl"


def take_along(folder: Path, old: str, new: str) -> None:
    """Nothing: a transcript has all."""
