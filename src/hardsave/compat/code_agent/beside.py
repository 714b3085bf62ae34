"""What stands beside the manager: a status file, a session's id, logs of tasks, a to-do list."""

import logging
import re
import uuid
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

_log = logging.getLogger(__name__)

_OPEN = re.compile(r"^(\s*(?:[-*+]|\d+[.)])\s+)\[ \](\s+)(.*?)(\s*)$")


class StatusManager:
    """Appends lines to a file that people read."""

    def __init__(self, status_file: str | Path) -> None:
        self.status_file = Path(status_file)

    def append_status(self, text: str, level: int = 1) -> None:
        """`level` is that of a heading; 0 is plain text."""
        line = f"{'#' * level} {text}" if level else text
        with self.status_file.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n\n{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n\n")


class SessionTracker:
    """Knows the id of this run."""

    def __init__(self, session_id: str | None = None) -> None:
        self.current_session_id = session_id or f"session_{uuid.uuid4().hex[:12]}"


class TaskLogger:
    """Lines about one task, in a file of its own or in the log of the program."""

    def __init__(self, task_id: str, task_text: str, directory: str | Path | None = None) -> None:
        self.task_id = task_id
        self.task_text = task_text
        name = task_id.replace("/", "_")  # an id is no path
        self._file = None if directory is None else Path(directory) / f"{name}.log"
        self.log_info(f"task: {task_text}")

    def log_info(self, text: str) -> None:
        self._write("INFO", text)

    def log_error(self, text: str) -> None:
        self._write("ERROR", text)

    def _write(self, level: str, text: str) -> None:
        if self._file is None:
            _log.log(logging.getLevelNamesMapping()[level], "%s: %s", self.task_id, text)
            return
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC).isoformat()} {level} {text}\n")


def tick_off(todo: str, done: Collection[str]) -> str:
    """A to-do list in which the items of these texts are done; everything else as it was."""
    lines = todo.splitlines(keepends=True)
    for at, line in enumerate(lines):
        body = line.rstrip("\r\n")
        match = _OPEN.match(body)
        if match and match[3] in done:
            lines[at] = f"{match[1]}[x]{match[2]}{match[3]}{match[4]}" + line[len(body) :]
    return "".join(lines)
