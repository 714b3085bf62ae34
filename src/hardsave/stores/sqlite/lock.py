"""Who may write, across processes: a blocking `flock` that gives up in the end.

SQLite waits for its own lock by polling, which starves; a blocking flock is served in
turn. It has no time-out of its own, and a process that was stopped (SIGSTOP) while it held
the lock would hang everybody, so a contended wait happens in a thread that the caller
stops listening to when its time is up.
"""

import fcntl
import os
import threading

from hardsave.errors import Unavailable


class FileLock:
    """An exclusive lock on `path`. One holder at a time per instance: callers serialise."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: int | None = None

    def acquire(self, timeout_seconds: float) -> None:
        """Take the lock, or raise `Unavailable` with the holder's process id."""
        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(file, timeout_seconds)

    def release(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._file

    def _wait(self, file: int, timeout_seconds: float) -> None:
        # The thread has a description of its own: if nobody waits for it any more, it takes
        # the lock, closes the file, and so gives it back.
        self._file = None
        waiter = _Waiter(file)
        if waiter.wait(timeout_seconds):
            self._file = file
            return
        raise Unavailable(
            f"another process has held {self.path} for {timeout_seconds:.0f} s; "
            "it may be stopped (see 'lsof' or 'fuser' on that file)"
        )


class _Waiter(threading.Thread):
    def __init__(self, file: int) -> None:
        super().__init__(name="hardsave-lock", daemon=True)
        self._descriptor = file
        self._handover = threading.Lock()
        self._locked = threading.Event()
        self._abandoned = False
        self.start()

    def run(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._handover:
            if self._abandoned:
                os.close(self._descriptor)
            else:
                self._locked.set()

    def wait(self, timeout_seconds: float) -> bool:
        try:
            if self._locked.wait(timeout_seconds):
                return True
        except BaseException:
            if not self._abandon():
                os.close(self._descriptor)
            raise
        return not self._abandon()

    def _abandon(self) -> bool:
        """Stop listening; False if the lock had been taken in the meantime."""
        with self._handover:
            if self._locked.is_set():
                return False
            self._abandoned = True
            return True
