"""Removing objects that no checkpoint leads to, beside writers.

All packs of a user are read once, in order, while others write. Then the user's row is locked: what
was committed meanwhile is followed, too, and what nothing leads to goes: its rows, in one
transaction. The packs that it lay in are rewritten after that, some at a time, so that no writer
waits for long. A pack keeps its id, so a scan that is under way misses nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import psycopg

from hardsave.errors import Corrupt
from hardsave.logs import log
from hardsave.objects.hashing import Hash, digest
from hardsave.progress import check_deadline
from hardsave.stores import packs
from hardsave.stores.postgres.connections import Connection, Connections
from hardsave.stores.postgres.objects import OF_OBJECTS, ObjectReader, of_rows
from hardsave.stores.postgres.translation import raise_ours
from hardsave.stores.results import Collected
from hardsave.tuples import NamedTuple

Refs = Callable[[bytes], Collection[Hash]]

_ROOTS = """
    SELECT root, snapshot FROM checkpoints WHERE "user" = %(user)s AND number > %(after)s
"""
_STANDING = 'SELECT number, replaced FROM heads WHERE "user" = %(user)s'
_WHERE = 'SELECT hash, pack FROM objects WHERE "user" = %(user)s'
_IS_PINNED = """
    SELECT EXISTS (SELECT 1 FROM pins WHERE "user" = %(user)s AND until > moment_1())
"""
_FORGET_PINS = 'DELETE FROM pins WHERE "user" = %(user)s AND until <= moment_1()'
_LOCK = 'SELECT number, replaced FROM heads WHERE "user" = %(user)s FOR UPDATE'
_PACK = 'SELECT id, size, directory, body FROM packs WHERE "user" = %(user)s AND id = %(id)s'
_REMOVE = """
    WITH gone AS (
        DELETE FROM objects WHERE "user" = %(user)s AND hash = ANY (%(hashes)b::bytea[])
        RETURNING size)
    SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone
"""
_LIES_IN = """
    SELECT hash, pack FROM objects WHERE "user" = %(user)s AND hash = ANY (%(hashes)b::bytea[])
"""
_DROP_PACK = 'DELETE FROM packs WHERE "user" = %(user)s AND id = %(id)s'
_REWRITE = """
    UPDATE packs SET size = %(size)s, directory = %(directory)s, body = %(body)s
    WHERE "user" = %(user)s AND id = %(id)s
"""
_COUNT = """
    UPDATE heads SET objects = objects - %(objects)s, object_bytes = object_bytes - %(bytes)s,
                     pack_bytes = pack_bytes - %(freed)s
    WHERE "user" = %(user)s
"""
_USERS = "SELECT id, name FROM users ORDER BY id"
_PACKS_AT_ONCE = 100  # that are rewritten while the user's row is locked
_ONE_AT_A_TIME = "SELECT pg_advisory_lock(hashtextextended('a collection of objects', %s))"


class Removed(NamedTuple):
    objects: int = 0
    bytes: int = 0
    freed: int = 0


class Marked(NamedTuple):
    """What one pass over the packs of a user has found."""

    number: int  # of the last commit before it
    replaced: int
    refs: dict[Hash, tuple[Hash, ...]]  # of objects that refer to others
    packs: dict[int, list[Hash]]  # what lies in each
    owner: dict[Hash, int]  # the pack that counts, of objects that were there before
    damaged: set[Hash]

    def may_shrink(self, pack: int, dead: set[Hash]) -> bool:
        """Whether something in a pack was dead, or has no row that says so, when it was read."""
        return any(self.owner.get(each) != pack or each in dead for each in self.packs[pack])


class Collector:
    """One collection of one store."""

    def __init__(
        self,
        connections: Connections,
        reader: ObjectReader,
        refs: Refs,
        compress: Callable[[], bool],
    ) -> None:
        self._connections = connections
        self._reader = reader
        self._refs = refs
        self._compress = compress

    def run(self, clock: int, *, exact: bool) -> Collected:
        """`clock` tells apart stores of one database: of each, one collection runs at a time."""
        connection = self._connections.connect()
        try:
            connection.execute(_ONE_AT_A_TIME, (clock,))
            left: list[str | None] = []
            every: list[Removed] = []
            for user, name in connection.execute(_USERS).fetchall():
                removed = self._collect(connection, user)
                every.append(removed or Removed())
                if removed is None:
                    left.append(name)
            objects, size, freed = map(sum, zip(*every, strict=True))
            if exact and freed:
                self._vacuum(connection)
            return Collected(objects, size, freed, tuple(left))
        except psycopg.Error as error:
            raise_ours(error, self._connections.shown)
        finally:
            connection.close()

    def _collect(self, connection: Connection, user: int) -> Removed | None:
        """What was removed of a user's; None if a process holds a pin."""
        if _one(connection, _IS_PINNED, user=user):
            return None
        marked = self._mark(connection, user)
        reached = self._reach(connection, user, marked, self._roots(connection, user, 0), set())
        with connection.transaction():
            number, replaced = _row(connection, _LOCK, user=user)
            if _one(connection, _IS_PINNED, user=user):
                return None
            connection.execute(_FORGET_PINS, {"user": user})
            if (number, replaced) != (marked.number, marked.replaced):
                after = marked.number if replaced == marked.replaced else 0
                roots = self._roots(connection, user, after)
                reached = self._reach(connection, user, marked, roots, reached)
            dead = marked.owner.keys() - reached
            removed = self._forget(connection, user, dead)
        try:
            for some in _parts([pack for pack in marked.packs if marked.may_shrink(pack, dead)]):
                with connection.transaction():
                    _row(connection, _LOCK, user=user)
                    freed = self._shrink(connection, user, marked, some)
                removed = removed._replace(freed=removed.freed + freed)
        finally:
            self._reader.drop(user)
        return removed

    def _mark(self, connection: Connection, user: int) -> Marked:
        number, replaced = _row(connection, _STANDING, user=user)
        rows: list[Any] = connection.cursor(binary=True).execute(_WHERE, {"user": user}).fetchall()
        marked = Marked(number, replaced, {}, {}, dict(rows), set())
        for pack in self._reader.scan(user):
            check_deadline()
            marked.packs[pack.id] = list(pack.objects)
            for address, data in pack.objects.items():
                self._look(marked, address, data)
        return marked

    def _look(self, marked: Marked, address: Hash, data: bytes) -> tuple[Hash, ...]:
        if digest(data) != address:
            marked.damaged.add(address)
            return ()
        marked.damaged.discard(address)  # it lies in two packs, and one of them is sound
        refs = tuple(self._refs(data))
        if refs:
            marked.refs[address] = refs
        return refs

    def _roots(self, connection: Connection, user: int, after: int) -> set[Hash]:
        cursor = connection.cursor(binary=True)
        rows: list[Any] = cursor.execute(_ROOTS, {"user": user, "after": after}).fetchall()
        return {address for row in rows for address in row if address is not None}

    def _reach(
        self,
        connection: Connection,
        user: int,
        marked: Marked,
        roots: Iterable[Hash],
        reached: set[Hash],
    ) -> set[Hash]:
        """All that checkpoints lead to. `Corrupt` if some of it is missing or damaged."""
        frontier = set(roots) - reached
        while frontier:
            reached |= frontier
            new = [address for address in frontier if address not in marked.owner]
            self._look_up(connection, user, marked, new)
            for address in frontier & marked.damaged:
                raise Corrupt(f"object {address.hex()} is damaged; run verify before gc")
            frontier = {ref for each in frontier for ref in marked.refs.get(each, ())} - reached
        return reached

    def _look_up(
        self, connection: Connection, user: int, marked: Marked, hashes: list[Hash]
    ) -> None:
        """Objects that were stored since the pass began."""
        if not hashes:
            return
        values = {"user": user, "hashes": hashes}
        rows = connection.cursor(binary=True).execute(OF_OBJECTS, values).fetchall()
        found = of_rows(rows)
        for address in hashes:
            if address not in found:
                raise Corrupt(f"object {address.hex()} is missing; run verify before gc")
            self._look(marked, address, found[address])

    def _forget(self, connection: Connection, user: int, dead: set[Hash]) -> Removed:
        """Rows of objects, all in one transaction: one that is there has all that it refers to."""
        if not dead:
            return Removed()
        objects, size = _row(connection, _REMOVE, user=user, hashes=list(dead))
        self._count(connection, user, Removed(objects, size))
        return Removed(objects, size)

    def _shrink(
        self, connection: Connection, user: int, marked: Marked, some: Sequence[int]
    ) -> int:
        """Let packs keep what a row says to lie in them, and nothing else: by how many bytes they
        are shorter. What is left of it if this is interrupted goes with the next collection."""
        hashes = list({each for pack in some for each in marked.packs[pack]})
        cursor = connection.cursor(binary=True)
        rows: list[Any] = cursor.execute(_LIES_IN, {"user": user, "hashes": hashes}).fetchall()
        lies_in, freed = dict(rows), 0
        for pack in some:
            inside = marked.packs[pack]
            kept = {each for each in inside if lies_in.get(each) == pack}
            if len(kept) < len(inside):
                freed += self._rewrite(connection, user, pack, kept)
        self._count(connection, user, Removed(freed=freed))
        return freed

    def _count(self, connection: Connection, user: int, removed: Removed) -> None:
        connection.execute(_COUNT, {"user": user, **removed._asdict()})

    def _rewrite(self, connection: Connection, user: int, pack: int, kept: set[Hash]) -> int:
        """Keep these objects of a pack alone; how many bytes shorter it is."""
        check_deadline()
        _, size, directory, body = _row(connection, _PACK, user=user, id=pack)
        before = len(directory) + len(body)
        if not kept:
            connection.execute(_DROP_PACK, {"user": user, "id": pack})
            return before
        objects = packs.unpack(directory, body, size)
        items = [(address, data) for address, data in objects.items() if address in kept]
        (made,) = packs.pack(items, None, compress=self._compress)
        connection.execute(_REWRITE, {"user": user, "id": pack, **made._asdict()})
        return before - len(made.directory) - len(made.body)

    def _vacuum(self, connection: Connection) -> None:
        """So that no row of what went is left. Only its owner may: others leave it to the server,
        which does the same before long."""
        try:
            for table in ("packs", "objects"):
                connection.execute(f"VACUUM {table}")
        except psycopg.errors.InsufficientPrivilege:
            log(__name__).warning("%s: only its owner may vacuum it", self._connections.shown)


def _parts(packs: Collection[int]) -> Iterator[Sequence[int]]:
    every = list(packs)
    return (every[at : at + _PACKS_AT_ONCE] for at in range(0, len(every), _PACKS_AT_ONCE))


def _row(connection: Connection, sql: str, **values: Any) -> Any:
    text: Any = sql  # put together from constants
    found = connection.cursor(binary=True).execute(text, values).fetchone()
    assert found is not None
    return found


def _one(connection: Connection, sql: str, **values: Any) -> Any:
    return _row(connection, sql, **values)[0]
