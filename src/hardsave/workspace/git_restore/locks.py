"""Git's own locks, taken as git takes them: a file of the same name with `.lock` behind it.

The process that has made the lock may change the file. Ours say which restore they belong to and
are there whole or not at all, so after a crash the restore recognises them and goes on. Locks of
other processes are never removed.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from hardsave.errors import Unavailable
from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.bounded_read import open_directory, read_beneath

LOCK = b"lock"
"""What every lock is a link to: a file in a directory of ours, synced before any is taken."""

ATTEMPTS = 40
_PAUSE_SECONDS = 0.025
_WORDS = b"A restore by hardsave is under way here: "
_LIMIT = 4096


class Waiting(NamedTuple):
    """How often a lock is tried, and how to pause between."""

    attempts: int
    sleep: Callable[[float], None]


class Locks:
    """The locks of one restore. `source` is a directory of ours on the same disk."""

    def __init__(self, source: int, id: str, waiting: Waiting) -> None:
        self._source = source
        self._words = _WORDS + id.encode() + b"\n"
        self._waiting = waiting
        self._taken: list[tuple[int, bytes]] = []

    def __enter__(self) -> "Locks":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def words(self) -> bytes:
        """The content of each lock file."""
        return self._words

    def adopt(self, places: Iterable[tuple[int, bytes]]) -> None:
        """Take over the locks that a process of the same restore has left when it died."""
        for base, path in places:
            lock = path + b".lock"
            if read_beneath(base, lock, limit=_LIMIT).data == self._words:
                self._taken.append((base, lock))

    def take(self, base: int, path: bytes) -> None:
        """Lock a file beneath a directory. `Unavailable` if another process has it locked."""
        lock = path + b".lock"
        for attempt in range(self._waiting.attempts):
            if attempt:
                self._waiting.sleep(_PAUSE_SECONDS)
            if self._take(base, lock):
                self._taken.append((base, lock))
                return
        raise Unavailable(_held(read_beneath(base, lock, limit=_LIMIT).data, lock))

    def _take(self, base: int, lock: bytes) -> bool:
        """Made by a link: so it is whole at once, and never replaces another lock."""
        with making_parents(base, lock) as (parent, name):
            try:
                os.link(
                    *(LOCK, name),
                    src_dir_fd=self._source,
                    dst_dir_fd=parent,
                    follow_symlinks=False,
                )
            except FileExistsError:
                return read_beneath(base, lock, limit=_LIMIT).data == self._words
        return True

    def release(self) -> None:
        while self._taken:
            base, lock = self._taken.pop()
            if read_beneath(base, lock, limit=_LIMIT).data == self._words:
                with making_parents(base, lock) as (parent, name), suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=parent)


def refuse_held(base: int, path: bytes) -> None:
    """Raise `Unavailable` if a process holds the lock of a file right now."""
    lock = path + b".lock"
    found = read_beneath(base, lock, limit=_LIMIT)
    if found != (None, ""):
        raise Unavailable(_held(found.data, lock))


def _held(words: bytes | None, lock: bytes) -> str:
    name = os.fsdecode(lock)
    if words is not None and words.startswith(_WORDS):
        other = os.fsdecode(words[len(_WORDS) :].strip())
        return f"{name!r} is left of a restore that was interrupted ({other}): recover that first"
    return (
        f"{name!r} is there: git is at work in this repository, or was stopped in the middle. "
        "Wait for it; if no git is running, remove the file, then repeat"
    )


@contextmanager
def making_parents(base: int, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The directory that a path lies in, made if it is not there, and the last name."""
    *above, name = path.split(b"/")
    here = os.dup(base)
    try:
        for each in above:
            below = _entered(here, each)
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)


def _entered(parent: int, name: bytes) -> int:
    if name in (b"", b".", b".."):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
    with suppress(FileExistsError):
        os.mkdir(name, 0o777, dir_fd=parent)
    return open_directory(name, parent=parent)
