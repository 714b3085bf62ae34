"""Where Claude Code keeps transcripts, and what goes along with one."""

import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from hardsave.agents.lines import Unknown

_LONGEST = 200  # of a folder's name; a longer one ends with a number
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def going_on(session: str) -> str:
    return f"claude --resume {session}"


def original(path: str, session: str, folder: Path) -> Path:
    home = Path(os.path.realpath(folder / "projects"))
    real = Path(os.path.realpath(path))
    if real.parent.parent != home or real.name != f"{session}.jsonl":
        raise Unknown(f"{path!r} is not where Claude Code keeps its transcripts")
    return real


def by_now(original: Path, folder: Path) -> Path:
    """In the folder of the directory that its session works in. When Claude Code enters a worktree
    in the midst of a session, that is another one, and it takes the transcript along."""
    if original.exists():
        return original
    found = list(original.parent.parent.glob(f"*/{original.name}"))
    return found[0] if len(found) == 1 else original


def transcripts(folder: Path, directory: str) -> Iterator[tuple[str, Path]]:
    name = re.sub("[^A-Za-z0-9]", lambda found: "--"[: 1 + (found[0] > "\uffff")], directory)
    is_cut = len(name) > _LONGEST
    for place in (folder / "projects").glob(f"{name[:_LONGEST]}-*" if is_cut else name):
        for path in place.glob("*.jsonl"):
            if _SESSION.fullmatch(path.stem):  # and not one of a subagent
                yield path.stem, path


def check_base(first: str, folder: Path) -> None:
    """Nothing: a transcript has all."""


def beside(source: Path, new: str, folder: Path, moment: datetime) -> Path:
    return source.with_name(f"{new}.jsonl")


def take_along(folder: Path, old: str, new: str) -> None:
    """What Claude Code keeps for its own undo."""
    history = folder / "file-history" / old
    if history.is_dir():
        shutil.copytree(history, history.with_name(new), symlinks=True)
