"""Opens files for reading so that this process keeps the POSIX locks that it has on them.

A process loses every POSIX lock that it has on a file as soon as it closes any descriptor of it.
To read a database that is open in the same process, as every capture of its directory does, would
leave it unlocked in the middle of a transaction. So a file that other code of this process has open
is not closed: our descriptor is kept, and used again, until ours is the only one.
"""

import os
import stat
import threading
import time

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTS = ("/proc/self/fd", "/dev/fd")
_FRESH_SECONDS = 0.01  # a capture reads many files: the list is not read after each

Inode = tuple[int, int]  # device and inode


class reading:
    """`with reading(name, directory) as file:` a file in an open directory, at its beginning.

    No link is followed, and no pipe waited for. `status` is how it looked when it was opened.
    """

    __slots__ = ("_directory", "_file", "_name", "status")

    def __init__(self, name: bytes, directory: int) -> None:
        self._name = name
        self._directory = directory

    def __enter__(self) -> int:
        self._file, self.status = opened(self._name, self._directory)
        return self._file

    def __exit__(self, *_: object) -> None:
        closed(self._file, self.status)


class _Descriptors:
    """The descriptors of this module, and which files are open elsewhere in this process.

    Threads share it.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._ours: set[int] = set()  # also those that are kept
        self._kept: dict[Inode, list[int]] = {}
        self._others: frozenset[Inode] = frozenset()
        self._looked = float("-inf")  # when

    def open(self, name: bytes, directory: int) -> tuple[int, os.stat_result]:
        """Open a file, or take the descriptor that was kept of it; with its status."""
        file = self._kept_of(name, directory) if self._kept else None
        if file is None:
            file = os.open(name, _FLAGS, dir_fd=directory)
            self._ours.add(file)
        try:
            return file, os.fstat(file)
        except OSError:  # a network file system has lost it, and all locks on it
            self.drop(file)
            raise

    def _kept_of(self, name: bytes, directory: int) -> int | None:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        with self._mutex:
            files = self._kept.get((status.st_dev, status.st_ino))
            file = files.pop() if files else None
        if file is not None:
            os.lseek(file, 0, os.SEEK_SET)
        return file

    def close(self, file: int, status: os.stat_result) -> None:
        """Close a file, or keep it open if other code of this process has it open."""
        if time.monotonic() - self._looked > _FRESH_SECONDS:
            self._look()
        inode = (status.st_dev, status.st_ino)
        if inode not in self._others:  # where only plain files are
            self.drop(file)
            return
        with self._mutex:
            self._kept.setdefault(inode, []).append(file)

    def _look(self) -> None:
        """List what is open elsewhere; kept files that are not any more are closed."""
        with self._mutex:
            others = {_inode(file) for file in _all_open() if file not in self._ours}
            self._others, self._looked = frozenset(filter(None, others)), time.monotonic()
            for inode in self._kept.keys() - self._others:
                for file in self._kept.pop(inode):
                    self.drop(file)

    def drop(self, file: int) -> None:
        """Close a file, even if this process has locks on it."""
        self._ours.discard(file)
        os.close(file)


def _all_open() -> list[int]:
    for place in _LISTS:
        try:
            return [int(name) for name in os.listdir(place)]
        except OSError:
            continue
    return []


def _inode(file: int) -> Inode | None:
    """None: it is closed by now, or no regular file, so that no lock could be lost."""
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


_known = _Descriptors()
opened, closed = _known.open, _known.close  # as `reading` does it, for callers with many
