"""Reading objects: from what was read lately, from packs that are new, from those of the index."""

from collections.abc import Callable, Collection

import apsw

from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.object_cache import ObjectCache
from hardsave.stores.sqlite.connection import at_one_moment
from hardsave.stores.sqlite.read.object_index import ObjectIndex, RecentPack, bounds
from hardsave.tuples import NamedTuple

MANY = 20_000  # hashes: past it, reading every directory is quicker than asking for each


class Scanned(NamedTuple):
    """A pack, and what is in it."""

    pack: int
    objects: dict[Hash, bytes]


def next_pack(connection: apsw.Connection, user: int, after: int) -> Scanned | None:
    """The first pack of a user behind the pack `after`; None at the end."""
    low, high = bounds(user)
    sql = "SELECT id, directory, body, size FROM packs WHERE id > ? AND id < ? ORDER BY id LIMIT 1"
    row = connection.execute(sql, (max(low, after), high)).fetchone()
    return None if row is None else Scanned(row[0], packs.unpack(*row[1:]))


class ObjectReader:
    """The objects of one store, as one process knows them. Threads share it.

    `met` is told of whom, and how many, packs were read that were not known yet.
    """

    def __init__(self, met: Callable[[int, int], None]) -> None:
        self._met = met
        self._cache = ObjectCache()
        self.index = ObjectIndex(self._swept)

    def kept(self, user: int, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        """Those that are in memory."""
        return self._cache.get(user, hashes)

    def read(
        self, connection: apsw.Connection, user: int, hashes: Collection[Hash]
    ) -> dict[Hash, bytes]:
        """Those that are stored, and perhaps others."""
        found = self._cache.get(user, hashes)
        if len(found) < len(hashes):
            with at_one_moment(connection):  # a merge between two reads would hide a pack
                self._read_left(connection, user, hashes, found)
        return found

    def missing(
        self, connection: apsw.Connection, user: int, hashes: Collection[Hash]
    ) -> set[Hash]:
        """Those that are not stored."""
        with at_one_moment(connection):
            if len(hashes) > MANY:
                return _not_listed(connection, user, hashes)
            self._refresh(connection, user)
            missing = set(self.index.unknown(connection, user, hashes))
            for address in hashes:
                if address not in missing and not self.index.is_stored(connection, user, address):
                    missing.add(address)
        return missing

    def _swept(self, user: int) -> None:
        """Objects of a user are gone."""
        self._cache.drop(user)

    def forget(self) -> None:
        """Read everything from the file again."""
        self._cache = ObjectCache()

    def _read_left(
        self,
        connection: apsw.Connection,
        user: int,
        hashes: Collection[Hash],
        found: dict[Hash, bytes],
    ) -> None:
        """Add what is not `found` yet."""
        fresh: dict[Hash, bytes] = {}
        for row in self._refresh(connection, user):
            if row.body is not None:
                fresh |= packs.unpack(row.directory, row.body, row.size)
        if fresh:
            self._cache.put(user, fresh)
            found |= fresh
        for address in hashes:
            if address not in found:
                self._read_pack_of(connection, user, address, found)

    def _refresh(self, connection: apsw.Connection, user: int) -> list[RecentPack]:
        """Know what is stored, also by others."""
        rows = self.index.refresh(connection, user)
        if rows:
            self._met(user, len(rows))
        return rows

    def _read_pack_of(
        self, connection: apsw.Connection, user: int, address: Hash, found: dict[Hash, bytes]
    ) -> None:
        """Add the objects of the pack that holds `address`, if one does."""
        for pack in self.index.packs(connection, user, address):
            row = connection.execute(
                "SELECT directory, body, size FROM packs WHERE id >= ? ORDER BY id LIMIT 1", (pack,)
            ).fetchone()
            objects = packs.unpack(*row) if row else {}
            if address in objects:
                self._cache.put(user, objects)
                found |= objects
                return


def _not_listed(connection: apsw.Connection, user: int, hashes: Collection[Hash]) -> set[Hash]:
    """Those that no pack lists, by one look at the directories of all."""
    missing = set(hashes)
    sql = "SELECT directory FROM packs WHERE id > ? AND id < ?"
    for (directory,) in connection.execute(sql, bounds(user)):
        missing.difference_update(packs.hashes(directory))
    return missing
