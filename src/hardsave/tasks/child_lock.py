"""A child lock: by it a program that an attempt has started is known to be still there.

A program may outlive the process that started it, and works on. So it is given a descriptor of a
locked file: the lock is the open file's, all that the program starts inherits it, and it is gone
with the last of them. Whether any of them is left is a question to the kernel, on every system that
has `flock`. A program that closes what it inherits, as ssh does, is known by its number and when it
began, where the system tells.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import digest
from hardsave.objects.records import TaskRecord
from hardsave.record import Record
from hardsave.stores.base import Store
from hardsave.stores.host import processes

_ROOM = "child-lock-"
_NOTE = re.compile(rb"(\d+) (\d+)\n")  # without its end, its writer has died in the middle of it

_log = log(__name__)


class Survivors(Record):
    """Processes that an attempt has started and that are still there; none is named where the
    system cannot tell which."""

    pids: tuple[int, ...]

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.pids)) or "of its own"
        return f"process{'' if len(self.pids) == 1 else 'es'} {numbers}"


def child_lock(store: Store, task: TaskRecord, check: Callable[[], None]) -> "ChildLock":
    """For one program of the attempt that is under way. `check` raises if it is not any more."""
    return ChildLock(store.local(f"{_ROOM}{_attempt(task)}-{os.urandom(4).hex()}"), check)


def _attempt(task: TaskRecord) -> str:
    """No other attempt has ever had this name."""
    return digest(b"%s %d %s" % (task.owner or b"", task.epoch, task.name.encode())).hex()


class ChildLock:
    """Our end of it. It is let go once the program has its own."""

    def __init__(self, path: str | None, check: Callable[[], None]) -> None:
        self._path = path
        self._check = check
        self._file: int | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the program is to inherit: `subprocess.Popen(…, pass_fds=lock.descriptors)`.
        Empty if the store is in memory: no other process could take the task."""
        return () if self._file is None else (self._file,)

    def started(self, pid: int) -> None:
        """The program was started, with this number. It may outlive this process from here on."""
        if self._file is not None:
            line = f"{pid} {processes.started(pid) or 0}\n"
            try:
                os.write(self._file, line.encode())
            except OSError as error:  # a full disk: the program is there, and has the lock
                _log.warning("process %d cannot be noted in %r: %s", pid, self._path, error)
            self._let_go()

    def _let_go(self) -> None:
        # Closed, not unlocked: to unlock it would take it from the program that has inherited it.
        file, self._file = self._file, None  # first: Ctrl-C must not leave it to be closed twice
        if file is not None:
            os.close(file)

    def __enter__(self) -> "ChildLock":
        if self._path is not None:
            self._file = _locked(self._path)
        try:
            self._check()  # only now: who takes the task away from here on sees the lock
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The program is not asked for any more: it has ended, or it does not matter."""
        if self._path is not None:
            _remove(self._path)
            self._let_go()


def _locked(path: str) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"{path!r} cannot be made: {error}; see to the disk") from error
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


# Asking


class ChildLocks:
    """All that this host has of a store right now, by the attempts that they belong to: programs
    on other hosts cannot be seen from here."""

    def __init__(self, store: Store) -> None:
        self._paths: dict[str, list[str]] = {}
        local = store.local(_ROOM)
        if local is not None:
            folder, begins = os.path.split(local)
            for name in os.listdir(folder or "."):
                if name.startswith(begins):
                    attempt = name.removeprefix(begins).partition("-")[0]
                    self._paths.setdefault(attempt, []).append(os.path.join(folder, name))

    def survivors(self, tasks: Iterable[TaskRecord]) -> Mapping[str, Survivors]:
        """The tasks whose programs are still there, by name, and who they are."""
        if not self._paths:
            return {}
        asked = ((task.name, _left(self._of(task))) for task in tasks)
        return {name: left for name, left in asked if left is not None}

    def remove(self, tasks: Iterable[TaskRecord]) -> None:
        """Those of attempts that are over."""
        for task in tasks:
            for path in self._of(task):
                _remove(path)

    def _of(self, task: TaskRecord) -> Sequence[str]:
        return self._paths.get(_attempt(task), ()) if self._paths else ()


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _left(paths: Sequence[str]) -> Survivors | None:
    """The processes that hold the other ends; None if there are none."""
    found = [pids for pids in map(_at, paths) if pids is not None]
    return Survivors(tuple(sorted({pid for pids in found for pid in pids}))) if found else None


def _at(path: str) -> list[int] | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        pid, began = _tied(file)
        if began and processes.started(pid) == began:
            return [pid]
        return None if _is_free(file) else list(_holders(os.fstat(file))) or _there(pid)
    finally:
        os.close(file)


def _tied(file: int) -> tuple[int, int]:
    """The process that was started, and when it began; 0: not known."""
    noted = _NOTE.fullmatch(os.pread(file, 100, 0))
    return (int(noted[1]), int(noted[2])) if noted else (0, 0)


def _there(pid: int) -> list[int]:
    """Where nothing else is known: the process that has the number now is most likely the one."""
    return [pid] if pid and processes.is_there(pid) else []


def _is_free(file: int) -> bool:
    """Whether no process holds it. The lock is shared, so that two that ask do not get in each
    other's way."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holders(file: os.stat_result) -> Iterator[int]:
    """Who has it open, as far as we may look; but for this process, which asks."""
    for place in Path("/proc").glob("[0-9]*/fd"):
        pid = int(place.parent.name)
        with contextlib.suppress(OSError):  # another user's, or gone meanwhile
            if pid != os.getpid() and any(_is_same(each, file) for each in place.iterdir()):
                yield pid


def _is_same(descriptor: Path, file: os.stat_result) -> bool:
    try:
        found = descriptor.stat()
    except OSError:
        return False  # closed meanwhile
    return os.path.samestat(found, file)
