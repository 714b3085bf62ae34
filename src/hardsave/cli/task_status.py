"""What happens to tasks, in lines for people: on stderr, and in a file."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave import wording
from hardsave.cli.session import Session

if TYPE_CHECKING:
    from hardsave import RecoveryReport, Task, Vault

KINDS = ("claimed", "completed", "failed", "asked", "handed_back", "interrupted")


class Status:
    """Tells people what happens, on stderr and in a file, and counts it."""

    def __init__(self, session: Session, path: str | None) -> None:
        self.happened: Counter[str] = Counter()
        self._session = session
        self._path = None if path is None else Path(path)

    def begun(self, report: "RecoveryReport") -> None:
        """After a crash the runner has reported that on stderr."""
        if report.was_clean:
            self._session.out.say(str(report))
        self._write(str(report))

    def tell(self, kind: str, task: "Task") -> None:
        self.happened[kind] += 1
        if kind == "failed" and task.state == "failed":
            self.happened["given_up"] += 1
        self.say(status_line(kind, task))

    def say(self, line: str) -> None:
        self._session.out.say(f"{datetime.now():%H:%M:%S}  {line}")  # noqa: DTZ005 # the user's clock
        self._write(line)

    def _write(self, text: str) -> None:
        """Opened for each line: the file may be rotated meanwhile."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {wording.passage(text)}\n")


@contextlib.contextmanager
def telling(vault: "Vault", status: Status, kinds: Sequence[str] = KINDS) -> Iterator[None]:
    with contextlib.ExitStack() as listening:
        for kind in kinds:
            listening.callback(vault.on(f"task_{kind}", partial(status.tell, kind)))  # type: ignore[arg-type] # each is the name of an event
        yield


def status_line(kind: str, task: "Task") -> str:
    """What has happened to a task, in a line for people."""
    return f"{wording.shown(task.id)}: {_said(kind, task)}"


def _said(kind: str, task: "Task") -> str:
    error = wording.line(task.error or "", 200)
    if kind == "claimed":
        text = f", {wording.line(task.text, 60)}" if task.text else ""
        return f"attempt {task.attempts} of {task.max_attempts}{text}"
    if kind == "failed":
        return f"failed, {error}" if task.state == "failed" else f"is tried again, {error}"
    if kind == "asked":
        return f"asks, {wording.line(task.question or '', 200)}"
    if kind == "interrupted":
        left = "it is put back to work"
        spent = "it has no attempt left, and counts as failed"
        return f"its process has died; {spent if task.state == 'failed' else left}"
    return "handed back; the attempt does not count" if kind == "handed_back" else kind
