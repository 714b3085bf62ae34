"""Who may write, across processes: a blocking `flock` that gives up in the end.

SQLite waits for its own lock by polling, which starves; a blocking flock is served in
turn. It has no time-out of its own, and a process that was stopped (SIGSTOP) while it held
the lock would hang every other process, so a contended wait happens in a thread that the caller
abandons when its time is up.
"""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable
from functools import partial

from hardsave.errors import Unavailable
from hardsave.progress import check_deadline, within_deadline

_POLL_SECONDS = 0.01
_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB


class FileLock:
    """An exclusive lock on `path`. One holder at a time per instance: callers serialise."""

    release: Callable[[], object]
    """Give the lock back. No function in Python: where one begins, handlers of signals are called,
    and Ctrl-C would leave the lock with a process that may not write again for hours."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: int | None = None
        self.release = _nothing

    def acquire(self, timeout_seconds: float) -> None:
        """Take the lock, or raise `Unavailable` when the time is up."""
        file = self._file
        if file is None:
            file = self._open()
        try:
            if not _take(file):
                self._wait(file, timeout_seconds)
            self.release = partial(fcntl.flock, file, fcntl.LOCK_UN)
        except BaseException:  # Ctrl-C, perhaps after it was taken
            self.release = _nothing
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            raise

    def is_in_place(self) -> bool:
        """Whether it is still the file that others lock, too; to be asked by its holder."""
        return self._file is not None and is_at(self.path, self._file)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        self.release = _nothing
        file, self._file = self._file, None  # first: Ctrl-C must not leave it to be closed twice
        if file is not None:
            os.close(file)

    def _open(self) -> int:
        self._file = file = _opened(self.path)
        return file

    def _wait(self, file: int, timeout_seconds: float) -> None:
        # The thread has a description of its own: if its caller does not wait for it any more, it
        # takes the lock, closes the file, and so gives it back.
        self._file = None
        waiter = _Waiter(file)
        try:
            waiter.start()
            is_taken = waiter.wait(within_deadline(timeout_seconds))
            self._file = file if is_taken else None
        except RuntimeError:  # no further thread can be had, as when the interpreter shuts down
            self._file = file
            is_taken = _poll(file, within_deadline(timeout_seconds))
        except BaseException:
            if self._file is None:
                waiter.give_up()
            raise
        if not is_taken:
            check_deadline()
            raise Unavailable(
                f"another process has held {self.path} for {timeout_seconds:.0f} s; "
                "it may be stopped (see 'lsof' or 'fuser' on that file)"
            )


def is_at(path: str, file: int) -> bool:
    """Whether a path leads to a file that is open. One that was removed is locked to no avail."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _nothing() -> None:
    """The `release` of a lock that is not held."""


def _opened(path: str) -> int:
    """The kernel lends locks on files that can only be read, too: who looks on a read-only disk
    needs no more."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EROFS or not os.path.exists(path):
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _take(file: int) -> bool:
    try:
        fcntl.flock(file, _AT_ONCE)
    except BlockingIOError:
        return False
    return True


def _poll(file: int, timeout_seconds: float) -> bool:
    end = time.monotonic() + timeout_seconds
    while not (is_taken := _take(file)) and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
    return is_taken


class _Waiter(threading.Thread):
    def __init__(self, file: int) -> None:
        super().__init__(name="hardsave-lock", daemon=True)
        self._descriptor = file
        self._handover = threading.Lock()
        self._locked = threading.Event()
        self._abandoned = False

    def run(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._handover:
            if self._abandoned:
                os.close(self._descriptor)
            else:
                self._locked.set()

    def wait(self, timeout_seconds: float) -> bool:
        """Whether the lock was taken in time."""
        return self._locked.wait(timeout_seconds) or not self._abandon()

    def give_up(self) -> None:
        """For a caller that was interrupted, whether the lock was taken or not."""
        if not self._abandon():
            os.close(self._descriptor)

    def _abandon(self) -> bool:
        """Stop waiting; False if the lock had been taken in the meantime."""
        with self._handover:
            if self._locked.is_set():
                return False
            self._abandoned = True
            return True
