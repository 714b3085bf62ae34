"""The files of a store that lies on this disk, whether it is open or not.

What they are called and hold is known here and below; callers have the path of the main file.
"""

import glob
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hardsave.tuples import NamedTuple

DAMAGED = ".damaged-"
_DATABASE = b"SQLite format 3\0"
_OF_DATABASES = ("-wal", "-shm", "-journal-wal")
_WRITTEN_BY_COMMITS = ("", "-wal", "-mark")
_TICK = 50_000_000  # nanoseconds: two writes within it may leave the same time
_SECONDS_TICK = 2_000_000_000  # where a file system keeps no fractions of a second


class Remedy(NamedTuple):
    """What keeps a store from being written, and what would help."""

    why: str
    cure: str


class Backup(NamedTuple):
    """The second copy of a store."""

    number: int | None  # of the last commit that it has; None: it cannot be read, or is not there
    is_there: bool


def why_read_only(store: str) -> Remedy | None:
    """Why a store that is there may not be written; None if it may, as far as one can see."""
    from hardsave.stores.sqlite.open import read_only  # each is loaded where it is used

    found = read_only.read_only(store)
    return None if found is None else Remedy(found.why.format(store), found.cure)


def backup(store: str) -> Backup:
    """How far the backup of a store has come."""
    from hardsave.stores.sqlite.backup import backup_file

    copied, own = backup_file.peek(store), Path(backup_file.path_of(store))
    is_there = own.exists() and own.stat().st_size > 0
    return Backup(None if copied is None else copied.number, is_there)


class Stamp(NamedTuple):
    """Another one after every commit to a store, also if that left the same time and sizes."""

    files: tuple[tuple[int, int, int] | None, ...]  # inode, time and size; None: not there, empty
    is_settled: bool  # a later commit leaves another time

    @property
    def written_at(self) -> int:
        """When the last commit was made, in nanoseconds; the mark is written after each."""
        found = [file[1] for file in self.files if file is not None]
        return found[-1] if self.files[-1] is not None else max(found)


def stamp(store: str) -> Stamp | None:
    """The stamp of a store, without opening it; None if there is none. Opening it for a look leaves
    the same one; the last process that closes it may leave another, once.

    The files are not read: to close one gives back the locks that this process has on it.
    """
    files = tuple(_stamp_of(store + end) for end in _WRITTEN_BY_COMMITS)
    if files[0] is None:
        return None
    last = max(file[1] for file in files if file is not None)
    tick = _TICK if last % 1_000_000_000 else _SECONDS_TICK
    return Stamp(files, time.time_ns() - last > tick)


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size) if found.st_size else None


@contextmanager
def alone_with(store: str, what_for: str) -> Iterator[None]:
    """A block in which no process has a store open; `Unavailable` if one has, which says that the
    store has to be `what_for`. Evictable daemons end first."""
    from hardsave.stores.sqlite.open.presence import Presence

    presence = Presence(f"{store}-open")
    try:
        presence.seize(what_for)
        yield
    finally:
        presence.close()


def set_aside(store: str) -> list[Path]:
    """Files that a takeover or a repair has set aside."""
    folder, name = os.path.split(store)
    return sorted(Path(folder).glob(f"{glob.escape(name)}{DAMAGED}*"))


def beside(store: str) -> list[Path]:
    """All other files of a store."""
    folder, name = os.path.split(store)
    return sorted(Path(folder).glob(f"{glob.escape(name)}-*"))


def beginnings(name: bytes) -> tuple[bytes, ...]:
    """How the names of all files of a store begin whose main file has this name; a NUL ends one."""
    return (name + b"\0", name + b"-", name + DAMAGED.encode())


def is_of_database(path: Path) -> bool:
    """Whether a file is a database's, by its name or its first bytes."""
    if path.name.endswith(_OF_DATABASES):
        return True
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE
