"""The least that a durable save can cost: one bare INSERT and its commit."""

from pathlib import Path

from bench.stopwatch import timed
from hardsave.stores.base import Durability
from hardsave.stores.sqlite.connection import connect

PAGES_OF_AN_INSERT = 2  # at least


class BareInsert:
    """A table of blobs, through the same library, VFS and pragmas as a store."""

    def __init__(self, path: Path, durability: Durability = "power") -> None:
        self._connection = connect(str(path), durability, create=True)
        self._connection.execute("CREATE TABLE blobs (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        self.pragmas = ", ".join(
            f"{name}={self._connection.pragma(name)}" for name in ("journal_mode", "synchronous")
        )

    def insert(self, data: bytes) -> float:
        """Seconds for one INSERT that commits by itself."""
        insert = "INSERT INTO blobs (data) VALUES (?)"
        return timed(lambda: self._connection.execute(insert, (data,)))[0]

    def warm_up(self, data: bytes) -> None:
        """Fill the WAL file once: from then on it is written over, not lengthened."""
        pages = int(self._connection.pragma("wal_autocheckpoint"))
        for _ in range(pages // PAGES_OF_AN_INSERT):
            self.insert(data)

    def close(self) -> None:
        self._connection.close()
