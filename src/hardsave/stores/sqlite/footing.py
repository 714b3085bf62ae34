"""Whether a file, its WAL and that one's index are where this process left them, and as long.

SQLite goes on with the files that it has open, wherever these have gone, and would commit to
ones that nobody can ever open again. So every commit looks first.
"""

import os

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.stores.sqlite.connection import check_wal, wal_bytes
from hardsave.stores.sqlite.wal import is_cut


class WalGone(Unavailable):
    """The WAL is not where it belongs."""


class IndexGone(Unavailable):
    """The memory that processes share to find their way in the WAL is not where it belongs.

    Who comes later shares another one, and neither sees where in the WAL the other writes.
    """


class Shorter(Exception):
    """The file or its WAL is shorter than it was: room was given back, or somebody has cut it."""


class Footing:
    """Of one file that is open."""

    def __init__(self, path: str) -> None:
        self._path = path
        found = status_of(path)
        self._file = _identity(found)
        self._bytes = 0 if found is None else found.st_size  # when this process last looked
        self._index = _identity(status_of(path + "-shm"))
        self._wal: tuple[int, int] | None = None  # its identity, once it is known
        self._wal_bytes = 0  # how long it was at least, when this process last looked

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return _identity(status_of(self._path)) == self._file

    def check(self) -> None:
        """To be called inside the transaction that is to be committed."""
        file = status_of(self._path)
        if file is None or _identity(file) != self._file:
            raise Unavailable(
                f"{self._path} was removed or replaced while it was open; nothing was saved. "
                "Put it back, or open the store again"
            )
        found = status_of(self._path + "-wal")
        wal = _identity(found)
        if found is None or wal != (self._wal or wal):
            raise WalGone(
                f"{self._path}-wal was removed or replaced while it was open; nothing was saved. "
                "What was saved before has been moved into the store: close it everywhere, and "
                "open it again"
            )
        index = _identity(status_of(self._path + "-shm"))
        if index is None or index != (self._index or index):
            raise IndexGone(
                f"{self._path}-shm was removed or replaced while it was open; nothing was saved. "
                "Close it everywhere, and open it again"
            )
        self._index = index
        if file.st_size < self._bytes or found.st_size < self._wal_bytes:
            raise Shorter
        self._wal = wal
        self._bytes, self._wal_bytes = file.st_size, found.st_size

    def committed(self) -> None:
        """As long as they are now, but not shorter than they were before: who has cut them in this
        very moment is found out at the next look."""
        self._bytes = max(self._bytes, _bytes(self._path))
        self._wal_bytes = max(self._wal_bytes, wal_bytes(self._path))

    def shortened(self, connection: apsw.Connection) -> None:
        """Accept files that gave room back as they should; one that was cut is `Corrupt`."""
        check_wal(connection, self._path)
        size = _bytes(self._path)
        if size < self._bytes and is_cut(connection, self._path):
            raise Corrupt(
                f"{self._path} was cut while it was open; nothing was saved. Close it everywhere "
                "and open it again, which takes over from its backup"
            )
        self._bytes, self._wal_bytes = size, 0

    def reopened(self, connection: apsw.Connection) -> None:
        """The connection is a new one, and so may be the WAL."""
        self._wal = self._index = None
        self.shortened(connection)


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return None if found is None else (found.st_dev, found.st_ino)


def _bytes(path: str) -> int:
    found = status_of(path)
    return 0 if found is None else found.st_size


def status_of(path: str) -> os.stat_result | None:
    """None if there is no such file."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
