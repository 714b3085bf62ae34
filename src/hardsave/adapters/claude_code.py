"""Where Claude Code keeps transcripts, and what goes along with one."""

import os
import shutil
from datetime import datetime
from pathlib import Path

from hardsave.adapters.lines import Unknown

RESUME = "claude --resume"


def original(path: str, session: str, folder: Path) -> Path:
    home = Path(os.path.realpath(folder / "projects"))
    real = Path(os.path.realpath(path))
    if real.parent.parent != home or real.name != f"{session}.jsonl":
        raise Unknown(f"{path!r} is not where Claude Code keeps its transcripts")
    return real


def beside(source: Path, new: str, folder: Path, moment: datetime) -> Path:
    return source.with_name(f"{new}.jsonl")


def take_along(folder: Path, old: str, new: str) -> None:
    """What Claude Code keeps for its own undo."""
    history = folder / "file-history" / old
    if history.is_dir():
        shutil.copytree(history, history.with_name(new), symlinks=True)
