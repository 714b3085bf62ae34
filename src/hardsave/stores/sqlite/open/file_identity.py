"""Whether a file, its WAL and that one's index are where this process left them, and as they were.

SQLite goes on with the files that it has open, also after they were moved or removed, and would
commit to files that no process can ever open again. So every commit looks first.
"""

import contextlib
import os
from collections.abc import Callable

import apsw

from hardsave.errors import Corrupt
from hardsave.stores.local.database import is_failing
from hardsave.stores.on_disk import Gone
from hardsave.stores.sqlite.connection import check_wal, wal_bytes_of
from hardsave.stores.sqlite.salvage.wal_reader import is_cut, use_of
from hardsave.tuples import NamedTuple

ALARMS = 3  # without a reason, and times are not looked at any more


class WalGone(Gone):
    """The WAL is not where it belongs."""


class IndexGone(Gone):
    """The memory that processes share to find their way in the WAL is not where it belongs.

    A process that comes later shares another one, and neither sees where in the WAL the other
    writes.
    """


class Changed(Exception):
    """The file was written to, or it or its WAL is shorter than it was: a store has moved its WAL
    or vacuumed it, as it should be, or another program has damaged it."""


class FileIdentity:
    """Of one file that is open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._wal_path, self._index_path = path + "-wal", path + "-shm"
        found = status_of(path)
        self._file = _identity(found)
        self._bytes = 0 if found is None else found.st_size  # when this process last looked
        self._written: int | None = None  # when it was, by the file system, as far as we know why
        self._moved: Moved | None = None  # how far its WAL had been moved by then
        self._commits = 0  # of this process
        self._false_alarms = 0
        self._index = _identity(status_of(self._index_path))
        self._wal: tuple[int, int] | None = None  # its identity, once it is known
        self._wal_bytes = 0  # how long it was at least, when this process last looked
        self.frames = 0  # that it had after this process last wrote to it

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return _identity(status_of(self._path)) == self._file

    def check(self) -> None:
        """To be called inside the transaction that is to be committed.

        Every commit does this. So it is written out, and calls few functions.
        """
        file = status_of(self._path)
        if file is None or (file.st_dev, file.st_ino) != self._file:
            raise Gone(
                f"{self._path} was removed or replaced while it was open; nothing was saved. "
                "Put it back, or open the store again"
            )
        found = status_of(self._wal_path)
        wal = None if found is None else (found.st_dev, found.st_ino)
        if found is None or wal != (self._wal or wal):
            raise WalGone(
                f"{self._path}-wal was removed or replaced while it was open; nothing was saved. "
                "What was saved before has been moved into the store: close it everywhere, and "
                "open it again"
            )
        memory = status_of(self._index_path)
        index = None if memory is None else (memory.st_dev, memory.st_ino)
        if index is None or index != (self._index or index):
            raise IndexGone(
                f"{self._path}-shm was removed or replaced while it was open; nothing was saved. "
                "Close it everywhere, and open it again"
            )
        self._index = index
        if file.st_size < self._bytes or found.st_size < self._wal_bytes:
            raise Changed
        if self._written is not None and file.st_mtime_ns != self._written:
            raise Changed
        self._wal = wal
        self._bytes, self._wal_bytes = file.st_size, found.st_size

    def follow(self, connection: apsw.Connection) -> None:
        """Know from now on how long the WAL is after each commit, without a look at it.

        SQLite tells that in place of moving the WAL into the file by itself (see `Writer`).
        """
        connection.set_wal_hook(self._wrote)

    def _wrote(self, connection: apsw.Connection, name: str, frames: int) -> int:
        self.frames = frames
        self._commits += 1
        return apsw.SQLITE_OK

    def committed(self, connection: apsw.Connection) -> None:
        """The WAL has all its frames, unless a program has cut it in this very moment: the next
        look finds that out, and which process writes to the file, from the first commit on."""
        size = wal_bytes_of(self.frames)
        if size > self._wal_bytes:
            self._wal_bytes = size
        if self._moved is None or self._moved.use == b"":  # which this commit has begun
            with contextlib.suppress(apsw.Error):  # an error here does not undo the commit
                self._has_moved(connection)

    def moved(self, connection: apsw.Connection) -> None:
        """The file may have grown by what was moved into it; it is not shorter than before."""
        file = status_of(self._path)
        if file is not None and file.st_size > self._bytes:
            self._bytes = file.st_size
        with contextlib.suppress(apsw.Error):
            self._has_moved(connection)

    def changed(self, connection: apsw.Connection, reopen: Callable[[], apsw.Connection]) -> None:
        """Accept what is as it should be; a file that was cut or written over is `Corrupt`.

        To be called outside of a transaction, under the writer's lock.
        """
        check_wal(connection, self._path)
        found = status_of(self._path)
        size = 0 if found is None else found.st_size
        if size < self._bytes and is_cut(connection, self._path):
            raise Corrupt(_DAMAGED.format(self._path, "cut"))
        is_written = self._written is not None and (
            found is None or found.st_mtime_ns != self._written
        )
        if not self._has_moved(connection) and is_written:
            if not _is_sound(reopen()):
                raise Corrupt(_DAMAGED.format(self._path, "written to by another program"))
            self._false_alarms += 1
        self._note_time()
        self._bytes, self._wal_bytes, self.frames = size, 0, 0

    def reopened(self, connection: apsw.Connection, reopen: Callable[[], apsw.Connection]) -> None:
        """The connection is a new one, and so may be the WAL."""
        self._wal = self._index = None
        self.changed(connection, reopen)

    def _has_moved(self, connection: apsw.Connection) -> bool:
        """Whether the WAL was moved since the last look, which writes to the file."""
        before, self._moved = self._moved, _moved(connection, self._path, self._commits)
        if before is not None and not self._moved.is_further_than(before):
            return False
        self._note_time()
        return True

    def _note_time(self) -> None:
        """Where a file system tells times late, a look at them would often be one at every page."""
        if self._false_alarms < ALARMS:
            found = status_of(self._path)
            self._written = None if found is None else found.st_mtime_ns
        else:
            self._written = None


class Moved(NamedTuple):
    """Which use of a WAL it is, and how many of its frames have been moved into the main file."""

    use: bytes  # empty: it was cut, or there was none yet
    frames: int
    others: int  # tells whether others have committed
    commits: int  # of this process

    def is_further_than(self, before: "Moved") -> bool:
        """A new use begins when all of the one before was moved, if there was one; and before a WAL
        is cut, all of it was. Others may have used one in between that was not seen here."""
        if self.use == b"":
            return (self.others, self.commits) != (before.others, before.commits)
        if self.use == before.use:
            return self.frames > before.frames
        return before.use != b"" or self.frames > 0 or self.others != before.others


_DAMAGED = (
    "{} was {} while it was open; nothing was saved. Close it everywhere and open it again, which "
    "takes over from its backup"
)


def _moved(connection: apsw.Connection, path: str, commits: int) -> Moved:
    _, _, frames = connection.execute("PRAGMA wal_checkpoint(NOOP)").get
    return Moved(use_of(path + "-wal"), frames, connection.data_version(), commits)


def _is_sound(connection: apsw.Connection) -> bool:
    """By a connection that has nothing of the file in memory."""
    try:
        return bool(connection.execute("PRAGMA integrity_check(1)").get == "ok")
    except apsw.Error as error:
        if is_failing(error):
            raise
        return False
    finally:
        connection.close()


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return None if found is None else (found.st_dev, found.st_ino)


def status_of(path: str) -> os.stat_result | None:
    """None if there is no such file."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
