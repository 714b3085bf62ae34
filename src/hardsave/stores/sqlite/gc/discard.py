"""Removing what was stored ahead of a commit that was then given up.

A save that fails, because the disk is full or for any other reason, has put objects into the store
that nothing leads to. They go at once, without a look at the rest of the store: what was not there
before the first of them was put can only be referred to by what was committed since. If anything of
that refers to one of them, or might, all of them are left to the next gc.
"""

from collections.abc import Callable, Iterator
from typing import Any

import apsw

from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.sqlite.gc.collect import swept_once_more, unindex
from hardsave.stores.sqlite.gc.reachability import Refs
from hardsave.stores.sqlite.read.object_index import bounds
from hardsave.stores.sqlite.write import pins
from hardsave.stores.sqlite.write.operations import note
from hardsave.stores.sqlite.write.put_ahead import PutAhead

STEP_PACKS = 500  # removed in one transaction
MOST_BYTES = 64 << 20  # committed by others meanwhile: to look into more would take too long


class Discard:
    """One transaction: removes some of it, the newest first, as every collection does."""

    def __init__(
        self,
        user: int,
        pin: bytes,
        ahead: PutAhead,
        refs: Refs,
        forget_pins: Callable[[apsw.Connection], None],
    ) -> None:
        self._user = user
        self._pin = pin
        self._ahead = ahead
        self._refs = refs
        self._forget_pins = forget_pins  # of processes that are gone
        self.is_done = False
        self.removed = 0

    def __call__(self, connection: apsw.Connection, /) -> None:
        self.removed = 0
        doomed = [] if self._may_be_needed(connection) else self._doomed(connection)
        for pack, addresses in doomed[:STEP_PACKS]:
            connection.execute("DELETE FROM packs WHERE id = ?", (pack,))
            unindex(connection, self._user, pack, addresses, ())
            self.removed += 1
        if doomed:
            note(connection, "packs", [pack for pack, _ in doomed[:STEP_PACKS]])
            swept_once_more(connection, self._user)
        self.is_done = len(doomed) <= STEP_PACKS
        if self.is_done:
            pins.give_back(connection, self._pin)

    def _doomed(self, connection: apsw.Connection) -> list[tuple[int, list[Hash]]]:
        """Packs that hold nothing else. Small ones may have been merged with others' by now."""
        found = list(self._newer_packs(connection))
        return [each for each in found if self._ahead.objects.issuperset(each[1])]

    def _newer_packs(self, connection: apsw.Connection) -> Iterator[tuple[int, list[Hash]]]:
        low, high = bounds(self._user)
        sql = "SELECT id, directory FROM packs WHERE id > ? AND id < ? ORDER BY id DESC"
        for pack, directory in connection.execute(sql, (max(low, self._ahead.pack), high)):
            yield pack, packs.hashes(directory)

    def _may_be_needed(self, connection: apsw.Connection) -> bool:
        self._forget_pins(connection)
        return (
            pins.is_pinned(connection, self._user, but=self._pin)
            or self._was_operated_on(connection)
            or not self._ahead.objects.isdisjoint(self._roots(connection))
            or self._is_referred_to(connection)
        )

    def _was_operated_on(self, connection: apsw.Connection) -> bool:
        """A purge gives checkpoints from before other roots."""
        sql = "SELECT count(*) FROM log WHERE number > ? AND user = ?"
        return bool(connection.execute(sql, (self._ahead.number, self._user)).get)

    def _roots(self, connection: apsw.Connection) -> Iterator[Hash]:
        sql = "SELECT root, snapshot FROM checkpoints WHERE number > ? AND user = ?"
        for row in connection.execute(sql, (self._ahead.number, self._user)):
            yield from (root for root in row if root is not None)

    def _is_referred_to(self, connection: apsw.Connection) -> bool:
        """By anything in packs that others have stored since."""
        ours = self._ahead.objects
        others = [pack for pack, held in self._newer_packs(connection) if not ours.issuperset(held)]
        left = MOST_BYTES
        for pack in others:
            sql = "SELECT directory, body, size FROM packs WHERE id = ?"
            row: Any = connection.execute(sql, (pack,)).fetchone()
            left -= row[2]
            if left < 0 or self._refers(packs.unpack(*row)):
                return True
        return False

    def _refers(self, objects: dict[Hash, bytes]) -> bool:
        ours = self._ahead.objects
        fresh = [data for address, data in objects.items() if address not in ours]
        return any(not ours.isdisjoint(self._refs(data)) for data in fresh)
