"""Which processes have the store open: a `flock` that every one of them holds shared.

A process that must replace the file itself needs it exclusively: one that went on with a file
that was set aside would acknowledge saves that are never found again. Sharing and seizing both
happen under the writer's lock, so that two processes that begin at once do not meet half way.
"""

import fcntl
import os

from hardsave.errors import Unavailable

_PROC_LOCKS = "/proc/locks"


class Presence:
    """The lock at `path`. One holder an instance; the kernel gives it back with the process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._store = path.removesuffix("-open")
        self._file: int | None = None

    def share(self) -> None:
        """Be one of the processes that have the store open; also after `seize`."""
        self._take(fcntl.LOCK_SH)

    def seize(self, what_for: str = "mended") -> None:
        """Be the only one, or raise `Unavailable` that names another. Evictable daemons end
        first."""
        from hardsave.stores.local import daemon_lock  # few have to be alone

        daemon_lock.evict(self._store)
        self._take(fcntl.LOCK_EX, what_for)

    def is_alone(self) -> bool:
        """Whether no other process has the store open. To be asked under the writer's lock: none
        comes meanwhile."""
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        finally:
            self.share()  # to ask for more gives up what was held

    def _take(self, how: int, what_for: str = "mended") -> None:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(self._file)
            raise Unavailable(
                f"{self._store} has to be {what_for}, and {holder} has it open; "
                "close it there, then open it again"
            ) from None

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        file, self._file = self._file, None  # first: Ctrl-C must not leave it to be closed twice
        if file is not None:
            os.close(file)


def _holder(file: int) -> str:
    try:
        with open(_PROC_LOCKS) as file_of_locks:
            text = file_of_locks.read()
    except OSError:
        text = ""  # not on this system
    pid = pid_of_holder(text, os.fstat(file).st_ino)
    return "another process" if pid is None else f"process {pid}"


def pid_of_holder(text: str, inode: int) -> int | None:
    """Which process holds a flock, by the lines of /proc/locks.

    Devices are left out of the comparison: on some file systems the kernel names another one
    here than `stat` does. A holder outside this container has no number that means anything.
    """
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK":  # also the lines of processes that wait ("->")
            continue
        if words[5].rpartition(":")[2] == str(inode) and int(words[4]) > 0:
            return int(words[4])
    return None
