"""The JSON file that CodeAgent's users look at. The store is the truth, this is its picture.

It is written whole, beside its place, and renamed; the picture before it stays as `.backup`.
A file that is missing or damaged is written anew; what could not be understood stays beside it as
`.damaged`. One that is there before there is a store is taken in, or its backup if it cannot be
read; if neither can, both are set aside, loudly.
"""

import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hardsave.compat import foreign
from hardsave.compat.code_agent.records import TaskState
from hardsave.errors import Corrupt, Misuse, Unavailable
from hardsave.objects import depth
from hardsave.stores.host import processes
from hardsave.tasks import names
from hardsave.workspace.filesystem.bounded_read import read_path

KEYS = {"version", "server_state", "tasks", "current_task", "session_id", "last_update"}
ENDINGS = ("", ".backup*", ".tmp*", ".damaged*")  # of the file and of what lies beside it
_BEING_WRITTEN = ".tmp"  # and by which process
_LARGEST = 256 << 20
_MOST_ATTEMPTS = 1_000
_MOST_DRAWN = 3

_log = logging.getLogger(__name__)


class Mirror:
    def __init__(self, path: Path, within: Path | None = None) -> None:
        """`within` is a folder that no link on the way to the file may lead out of: a link may have
        come with the project."""
        self.path = path
        self._within = within
        self.backup = path.with_name(path.name + ".backup")
        self._last: str | None = None
        self._mutex = threading.Lock()

    def write(self, draw: Callable[[], Mapping[str, Any]]) -> None:
        """Show what is, unless that is what the file shows already.

        Of two pictures the older one must not come last. Threads draw under a lock; another
        process may have written a newer one meanwhile, so it is drawn again until nothing is new.
        """
        if not self.is_within:
            raise Unavailable(f"{self.path.parent} leads out of {self._within}")
        with self._mutex:
            if self._last is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._tidy()
            for _ in range(_MOST_DRAWN):  # others that change things all the time show them, too
                if not self._is_written(draw()):
                    return

    @property
    def is_within(self) -> bool:
        """Whether the file lies where it may."""
        folder = self.path.parent.resolve()
        return self._within is None or folder.is_relative_to(self._within.resolve())

    def _tidy(self) -> None:
        """Remove what writers who were killed have left beside it."""
        for path in self.path.parent.iterdir():
            base, _, pid = path.name.partition(_BEING_WRITTEN)
            ours = base in (self.path.name, self.backup.name) and pid.isdecimal()
            if ours and not processes.is_there(int(pid)):
                path.unlink(missing_ok=True)

    def _is_written(self, picture: Mapping[str, Any]) -> bool:
        """False if it shows nothing new."""
        about = {key: value for key, value in picture.items() if key != "last_update"}
        text = json.dumps(about, ensure_ascii=False, indent=2)
        if text == self._last and self.path.exists():
            return False
        self._replace(json.dumps(picture, ensure_ascii=False, indent=2))
        self._last = text
        return True

    def _replace(self, whole: str) -> None:
        """At every moment there is a whole picture at the path, and an older one beside it."""
        temporary = _draft(self.path)
        try:
            with temporary.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(whole + "\n")
                file.flush()
                os.fsync(file.fileno())
            if _read(self.path) is not None:
                self._back_up()
            elif self.path.exists():  # damaged, or another program's: it may be the only copy
                aside = _free(self.path)
                _copy(self.path, aside)
                _log.warning(
                    "%s could not be read: it was set aside as %s, and written anew from the store",
                    self.path,
                    aside.name,
                )
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def _back_up(self) -> None:
        spare = _draft(self.backup)
        try:
            _copy(self.path, spare)
            os.replace(spare, self.backup)
        finally:
            spare.unlink(missing_ok=True)  # it stays if it was the backup itself, by another name

    def found(self) -> dict[str, Any] | None:
        """What a file from before says; None if there is none. Both damaged is `Corrupt`."""
        for path in (self.path, self.backup):
            known = _read(path)
            if known is not None:
                if path is self.backup:
                    _log.warning("%s cannot be read; %s is taken instead", self.path, path.name)
                return known
        damaged = [path for path in (self.path, self.backup) if path.exists()]
        if not damaged:
            return None
        for path in damaged:
            os.replace(path, _free(path))
        both = " and ".join(str(path) for path in damaged)
        raise Corrupt(
            f"{both} cannot be read, and there is no store behind them; they were set aside as "
            "*.damaged. Put back a copy, or begin anew by calling again"
        )


def _draft(path: Path) -> Path:
    """Free to be made: what lies there is left from a process of this number, or came with the
    project, as a link to somewhere else may."""
    draft = path.with_name(f"{path.name}{_BEING_WRITTEN}{os.getpid()}")
    draft.unlink(missing_ok=True)
    return draft


def _copy(path: Path, to: Path) -> None:
    try:
        os.link(path, to)
    except OSError:  # not every file system has links
        with path.open("rb") as source, to.open("xb") as target:
            shutil.copyfileobj(source, target)


def _read(path: Path) -> dict[str, Any] | None:
    """What a file says, if all of it can be understood: nothing is taken in by halves."""
    data, problem = read_path(path, limit=_LARGEST)
    if problem:
        raise Unavailable(f"{path} cannot be read: {problem}")
    try:
        found = depth.loads(b"" if data is None else data)
        foreign.check(found, dict, "the file")
        for key in KEYS - found.keys():
            raise Misuse(f"the file has no {key}")
        foreign.check(found["tasks"], list, "the list of tasks")
        for task in found["tasks"]:
            _check_task(task)
    except (ValueError, Misuse):
        return None
    return dict(found)


def _check_task(task: Any) -> None:
    foreign.check(task, dict, "a task")
    names.check("the id of a task", task.get("task_id"))
    names.check_text("the text of a task", task.get("task_text"))
    attempts = task.get("attempts") or 0
    foreign.check(attempts, int, "the number of attempts")
    if not 0 <= attempts <= _MOST_ATTEMPTS:  # each of them is played again
        raise Misuse(f"a task has at most {_MOST_ATTEMPTS} attempts, not {attempts}")
    foreign.check(task.get("metadata") or {}, dict, "the metadata of a task")
    names.check_text("the error of a task", task.get("error_message") or "")
    if task.get("state") not in [state.value for state in TaskState]:
        raise Misuse(f"a task has no state {task.get('state')!r}")


def _free(path: Path) -> Path:
    for number in range(10_000):
        aside = path.with_name(f"{path.name}.damaged{number or ''}")
        if not os.path.lexists(aside):
            return aside
    raise Corrupt(f"{path} cannot be set aside: too many damaged files are there already")
