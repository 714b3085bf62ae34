"""Small packs become larger ones, off the path of commits.

One save makes one small pack; compressed and stored together, thirty of them take much less
room and are read at once. A merged pack takes the *highest* id of those it replaces, and an
object is looked up in the first pack at or above the id in its index row: so the index is
not touched, and an id that was given out never comes to mean something else.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

import apsw

from hardsave.errors import HardsaveError
from hardsave.stores.sqlite import packs
from hardsave.stores.sqlite.writer import USER_SHIFT, Writer

ENOUGH_PACKS = 32
SMALL_BYTES = 64 * 1024  # a pack at least this large is left as it is
ENOUGH_BYTES = 256 * 1024

_log = logging.getLogger(__name__)


class PackRow(NamedTuple):
    id: int
    size: int


def choose(tail: list[PackRow]) -> list[PackRow]:
    """Which of a user's newest packs to merge: the first neighbours that are small and enough.

    `tail` is in the order of ids. Empty: nothing is worth it yet.
    """
    run: list[PackRow] = []
    size = 0
    for row in tail:
        if row.size >= SMALL_BYTES:
            run, size = [], 0
            continue
        run.append(row)
        size += row.size
        if len(run) >= ENOUGH_PACKS or size >= ENOUGH_BYTES:
            return run
    return []


class Merger:
    """Merges in a thread of its own, which starts when there is first something to merge."""

    def __init__(self, writer: Writer, read: Callable[[], apsw.Connection]) -> None:
        self._writer = writer
        self._connect = read
        self._mutex = threading.Lock()
        self._fresh: dict[int, int] = {}  # packs made since the last look, by user
        self._due: SimpleQueue[int | None] = SimpleQueue()  # users; None: stop
        self._thread: threading.Thread | None = None
        self._stopping = False

    def saw(self, user: int) -> None:
        """A commit has made a pack. Cheap: it happens on every save."""
        with self._mutex:
            made = self._fresh.get(user, 0) + 1
            self._fresh[user] = made % ENOUGH_PACKS
            if made < ENOUGH_PACKS or self._stopping:
                return
            self._due.put(user)
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._work, name="hardsave-merge", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for a merge under way; begin no other."""
        with self._mutex:
            self._stopping = True
            thread = self._thread
        if thread is not None:
            self._due.put(None)
            thread.join()

    def _work(self) -> None:
        connection = None
        try:
            while (user := self._due.get()) is not None:
                connection = connection or self._connect()
                self._merge_all(connection, user)
        finally:
            if connection is not None:
                connection.close()

    def _merge_all(self, connection: apsw.Connection, user: int) -> None:
        try:
            while not self._stopping and self.merge(connection, user):
                pass
        except (HardsaveError, apsw.Error):
            # Nothing is lost: the packs stay small, and the next round tries again.
            _log.warning("small packs of %s could not be merged", self._writer.path, exc_info=True)

    def merge(self, connection: apsw.Connection, user: int) -> bool:
        """Merge one run of a user's small packs; False if there was none."""
        rows = choose(_tail(connection, user))
        if not rows:
            return False
        objects: dict[bytes, bytes] = {}
        for row in rows:
            found = connection.execute(
                "SELECT directory, body, size FROM packs WHERE id = ?", (row.id,)
            ).fetchone()
            if found is None:
                return True  # another process was faster: look again
            objects.update(packs.unpack(*found))
        (merged,) = packs.pack(objects.items(), target=None)

        def swap(connection: apsw.Connection) -> int:
            return _swap(connection, rows, merged)

        self._writer.apply(swap)
        return True


def _tail(connection: apsw.Connection, user: int) -> list[PackRow]:
    """A user's packs from the newest large one on."""
    low, high = user << USER_SHIFT, (user + 1) << USER_SHIFT
    rows: list[PackRow] = []
    found = connection.execute(
        "SELECT id, size FROM packs WHERE id > ? AND id < ? ORDER BY id DESC", (low, high)
    )
    for row in found:
        if row[1] >= SMALL_BYTES:
            break
        rows.append(PackRow(*row))
    found.close()
    return rows[::-1]


def _swap(connection: apsw.Connection, rows: list[PackRow], merged: packs.Pack) -> int:
    """Put the merged pack in the place of the last, and take the others away."""
    first, last = rows[0].id, rows[-1].id
    standing = connection.execute(
        "SELECT id, size FROM packs WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
    ).fetchall()
    if standing != rows:
        return 0  # another process merged them meanwhile
    connection.execute("DELETE FROM packs WHERE id BETWEEN ? AND ?", (first, last - 1))
    connection.execute(
        "UPDATE packs SET size = ?, directory = ?, body = ? WHERE id = ?", (*merged, last)
    )
    return 0
