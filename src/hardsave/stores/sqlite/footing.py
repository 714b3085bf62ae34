"""Whether a file and its WAL are still where this process left them, and as long.

SQLite goes on with the files that it has open, wherever these have gone, and would commit to
ones that nobody can ever open again. So every commit looks first.
"""

import os

import apsw

from hardsave.errors import Unavailable
from hardsave.stores.sqlite.connection import check_wal, wal_bytes


class WalGone(Unavailable):
    """The WAL is not where it belongs."""


class WalShorter(Exception):
    """The WAL is shorter than it was: somebody has emptied it, or cut it."""


class Footing:
    """Of one file that is open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = identity(path)
        self._wal: tuple[int, int] | None = None  # its identity, once it is known
        self._wal_bytes = 0  # how long it was at least, when this process last looked

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return identity(self._path) == self._file

    def check(self) -> None:
        """To be called inside the transaction that is to be committed."""
        if not self.is_in_place():
            raise Unavailable(
                f"{self._path} was removed or replaced while it was open; nothing was saved. "
                "Put it back, or open the store again"
            )
        found = status_of(self._path + "-wal")
        wal = found and (found.st_dev, found.st_ino)
        if found is None or wal != (self._wal or wal):
            raise WalGone(
                f"{self._path}-wal was removed or replaced while it was open; nothing was saved. "
                "What was saved before has been moved into the store: close it everywhere, and "
                "open it again"
            )
        if found.st_size < self._wal_bytes:
            raise WalShorter
        self._wal = wal

    def committed(self) -> None:
        self._wal_bytes = wal_bytes(self._path)

    def shortened(self, connection: apsw.Connection) -> None:
        """Accept a WAL that was emptied as it should be; one that was cut is `Corrupt`."""
        check_wal(connection, self._path)
        self._wal_bytes = 0

    def reopened(self, connection: apsw.Connection) -> None:
        """The connection is a new one, and so may be the WAL."""
        self._wal = None
        self.shortened(connection)


def identity(path: str) -> tuple[int, int] | None:
    found = status_of(path)
    return None if found is None else (found.st_dev, found.st_ino)


def status_of(path: str) -> os.stat_result | None:
    """None if there is no such file."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
