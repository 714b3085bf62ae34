"""The JSON file that CodeAgent's users look at. The store is the truth, this is its picture.

It is written whole, beside its place, and renamed; the picture before it stays as `.backup`.
A file that is missing or damaged is written anew. One that is there before there is a store
is taken in, or its backup if it cannot be read; if neither can, both are set aside, loudly.
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hardsave.compat.code_agent.records import TaskState
from hardsave.errors import Corrupt, Unavailable

KEYS = {"version", "server_state", "tasks", "current_task", "session_id", "last_update"}


class Mirror:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.backup = path.with_name(path.name + ".backup")
        self._last: str | None = None
        self._mutex = threading.Lock()

    def write(self, draw: Callable[[], Mapping[str, Any]]) -> None:
        """Show what is, unless that is what the file shows already.

        It is drawn under a lock: of two pictures the older one must not come last.
        """
        with self._mutex:
            self._write(draw())

    def _write(self, picture: Mapping[str, Any]) -> None:
        about = {key: value for key, value in picture.items() if key != "last_update"}
        text = json.dumps(about, ensure_ascii=False, indent=2, default=str)
        if text == self._last and self.path.exists():
            return
        whole = json.dumps(picture, ensure_ascii=False, indent=2, default=str)
        if _read(self.path) is not None:
            os.replace(self.path, self.backup)
        temporary = self.path.with_name(f"{self.path.name}.tmp{os.getpid()}")
        with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(whole + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)
        self._last = text

    def found(self) -> dict[str, Any] | None:
        """What a file from before says; None if there is none. Both damaged is `Corrupt`."""
        for path in (self.path, self.backup):
            try:
                known = _read(path)
            except OSError as error:
                raise Unavailable(f"{path} cannot be read: {error.strerror}") from error
            if known is not None:
                return known
        damaged = [path for path in (self.path, self.backup) if path.exists()]
        if not damaged:
            return None
        for path in damaged:
            os.replace(path, _free(path))
        names = " and ".join(str(path) for path in damaged)
        raise Corrupt(
            f"{names} cannot be read, and there is no store behind them; they were set aside as "
            "*.damaged. Put back a copy, or begin anew by calling again"
        )


def _read(path: Path) -> dict[str, Any] | None:
    """What a file says, if all of it can be understood: nothing is taken in by halves."""
    with suppress(FileNotFoundError, ValueError, UnicodeDecodeError, RecursionError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.keys() >= KEYS and isinstance(found["tasks"], list):
            return found if all(map(_is_task, found["tasks"])) else None
    return None


def _is_task(task: Any) -> bool:
    return (
        isinstance(task, dict)
        and all(isinstance(task.get(key), str) for key in ("task_id", "task_text"))
        and bool(task["task_id"])
        and task["task_id"].isprintable()
        and task.get("state") in [state.value for state in TaskState]
        and isinstance(task.get("attempts") or 0, int)
        and isinstance(task.get("metadata") or {}, dict)
    )


def _free(path: Path) -> Path:
    for number in range(10_000):
        aside = path.with_name(f"{path.name}.damaged{number or ''}")
        if not aside.exists():
            return aside
    raise Corrupt(f"{path} cannot be set aside: too many damaged files are there already")
