"""A store's file seen from outside: how much room it takes, and what was added to it."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from hardsave.config import file_url as url
from hardsave.stores.sqlite.connection import connect

__all__ = ["Packs", "Room", "room", "url"]

QUIET_SECONDS = 0.25  # a merge takes some hundredths


class Room(NamedTuple):
    """Bytes of the main file after a WAL checkpoint: all, and those in use."""

    whole: int
    used: int


def settle(connection: apsw.Connection) -> None:
    """Wait until the packs stay as they are: no merge is under way any more."""
    look = "SELECT count(*), max(id) FROM packs"
    standing, since = connection.execute(look).fetchone(), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.01)
        now = connection.execute(look).fetchone()
        if now != standing:
            standing, since = now, time.monotonic()


def room(path: Path) -> Room:
    """The room a store takes once its merges have ended and its WAL is written back."""
    connection = connect(str(path), "power", create=False)
    try:
        settle(connection)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        page = int(connection.pragma("page_size"))
        pages = int(connection.pragma("page_count"))
        free = int(connection.pragma("freelist_count"))
    finally:
        connection.close()
    return Room(path.stat().st_size, (pages - free) * page)


class Packs:
    """The packs that are added to a store, one look after another."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(str(path), "power", create=False)
        self._last = 0
        self.fresh()

    def fresh(self) -> list[bytes]:
        """The bytes of the packs added since the last look, each directory and body together."""
        rows: list[Any] = self._connection.execute(
            "SELECT id, directory, body FROM packs WHERE id > ? ORDER BY id", (self._last,)
        ).fetchall()
        if rows:
            self._last = rows[-1][0]
        return [row[1] + row[2] for row in rows]

    def close(self) -> None:
        self._connection.close()
