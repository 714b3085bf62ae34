"""Objects of a store, read by packs: what was saved together is mostly wanted together.

A pack that is read for one object brings the others in it along, and they are kept in mind. A
conversation that was saved turn by turn lies in one pack a turn, and refers back: a read brings the
packs before it along, and the more the further reads go back, so a long one is few round trips.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.object_cache import ObjectCache
from hardsave.stores.postgres.connections import Connections, Row
from hardsave.tuples import NamedTuple

_FIRST_AHEAD = 64 * 1024  # bytes of packs that are read before they are asked for
_MORE_AHEAD = 4  # times as many, by each read that goes further back
_MOST_AHEAD = 4 * 1024 * 1024
_LEAST_PACK = 256  # bytes, of which there may be many
_PART_BYTES = 1 << 20  # of packs that a scan has in memory

# The packs of what is asked for, and older ones within a bound of bytes: conversations refer back.
# These go on from `front`, down to which all was read before, if the newest pack asked for lies not
# too far behind it (`reach`), and begin at that pack otherwise. The last column is the oldest.
READ = """
    WITH wanted AS (
        SELECT DISTINCT pack FROM objects
        WHERE "user" = %(user)s AND hash = ANY (%(hashes)b::bytea[])
    ), start AS (
        SELECT CASE WHEN max(pack) BETWEEN %(reach)s AND %(front)s - 1
                    THEN %(front)s ELSE max(pack) END AS id,
               CASE WHEN max(pack) < %(front)s THEN %(ahead)s ELSE %(first)s END AS most
        FROM wanted
    ), before AS (
        SELECT id FROM (
            SELECT id, sum(size) OVER (ORDER BY id DESC) AS bytes FROM packs
            WHERE "user" = %(user)s AND id < (SELECT id FROM start)
            ORDER BY id DESC LIMIT %(packs)s) AS p
        WHERE bytes <= (SELECT most FROM start)
    )
    SELECT id, size, directory, body, (SELECT min(id) FROM before) FROM packs
    WHERE "user" = %(user)s AND id IN (SELECT pack FROM wanted UNION SELECT id FROM before)
    ORDER BY id DESC
"""
OF_OBJECTS = """
    SELECT o.hash, p.size, p.directory, p.body FROM objects AS o
    JOIN packs AS p ON p."user" = o."user" AND p.id = o.pack
    WHERE o."user" = %(user)s AND o.hash = ANY (%(hashes)b::bytea[])
"""
MISSING = """
    SELECT wanted.hash FROM unnest(%(hashes)b::bytea[]) AS wanted (hash)
    WHERE NOT EXISTS (
        SELECT 1 FROM objects AS o WHERE o."user" = %(user)s AND o.hash = wanted.hash)
"""
NEXT_PACKS = """
    SELECT p.id, p.size, p.directory, p.body FROM packs AS p JOIN (
        SELECT id, sum(size) OVER (ORDER BY id) - size AS before FROM packs
        WHERE "user" = %(user)s AND id > %(after)s AND id <= %(upto)s ORDER BY id LIMIT 100
    ) AS part ON p."user" = %(user)s AND p.id = part.id AND part.before < %(bytes)s
    ORDER BY p.id
"""
LAST_PACK = 'SELECT packs FROM heads WHERE "user" = %(user)s'


class StoredPack(NamedTuple):
    """One pack as it was read."""

    id: int
    objects: dict[Hash, bytes]


class _Seen(NamedTuple):
    """How far reads of a user went back, and how much the next one that goes back brings along."""

    front: int = 0  # the oldest pack of those that were read before they were asked for
    ahead: int = _FIRST_AHEAD  # bytes
    pack_bytes: int = _LEAST_PACK  # on average

    @property
    def reach(self) -> int:
        """The oldest pack that a few more reads from the front would come to, about."""
        return self.front - _MOST_AHEAD // self.pack_bytes


def _next(seen: _Seen, rows: Sequence[Row]) -> _Seen:
    """What is known after a read of so many packs, the newest first."""
    before = seen.ahead if rows[0][0] < seen.front else _FIRST_AHEAD
    average = max(_LEAST_PACK, sum([row[1] for row in rows]) // len(rows))
    return _Seen(rows[0][4] or rows[0][0], min(_MOST_AHEAD, before * _MORE_AHEAD), average)


class ObjectReader:
    """Reads objects of all users, and keeps in mind what came along."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._cache = ObjectCache()
        self._seen: dict[int, _Seen] = {}  # by user

    def read(self, user: int, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        found = self._cache.get(user, hashes)
        wanted = [address for address in hashes if address not in found]
        if not wanted:
            return found
        seen = self._seen.get(user, _Seen())
        values = {"user": user, "hashes": wanted, "first": _FIRST_AHEAD, "reach": seen.reach}
        values |= {"packs": seen.ahead // _LEAST_PACK, "front": seen.front, "ahead": seen.ahead}
        rows = self._connections.ask(READ, values)
        came = self._unpacked(rows)
        if rows:
            self._seen[user] = _next(seen, rows)
        self._cache.put(user, came)
        found.update((address, came[address]) for address in wanted if address in came)
        return found

    def _unpacked(self, rows: list[Row]) -> dict[Hash, bytes]:
        """The newest pack comes first: of what lies in two, the older one is right."""
        came: dict[Hash, bytes] = {}
        for _, size, directory, body, _ in rows:
            came |= packs.unpack(directory, body, size)
        return came

    def missing(self, user: int, hashes: Collection[Hash]) -> set[Hash]:
        if not hashes:
            return set()
        values = {"user": user, "hashes": list(hashes)}
        return {row[0] for row in self._connections.ask(MISSING, values)}

    def scan(self, user: int) -> Iterator[StoredPack]:
        """Packs in order, up to the last there is now. What is rewritten meanwhile keeps its id."""
        rows: list[Row] = self._connections.ask(LAST_PACK, {"user": user})
        at, upto = 0, rows[0][0] if rows else 0
        while at < upto:
            values = {"user": user, "after": at, "upto": upto, "bytes": _PART_BYTES}
            rows = self._connections.ask(NEXT_PACKS, values)
            if not rows:
                return
            for id, size, directory, body in rows:
                yield StoredPack(id, packs.unpack(directory, body, size))
            at = rows[-1][0]

    def drop(self, user: int) -> None:
        """Keep nothing of a user in mind: some of it is stored no longer."""
        self._cache.drop(user)

    def forget(self) -> None:
        self._cache = ObjectCache()


def of_rows(rows: list[Any]) -> dict[Hash, bytes]:
    """Those of `OF_OBJECTS`, each from the pack that it lies in."""
    return {row[0]: packs.unpack(row[2], row[3], row[1])[row[0]] for row in rows}
