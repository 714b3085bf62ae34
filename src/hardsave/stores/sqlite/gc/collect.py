"""Removing what no checkpoint leads to, beside any number of writers.

First a plan is made in one read transaction: which packs go, and which are to be written
anew without some of their objects. Then it is carried out in small transactions, from the
newest pack to the oldest: an object goes after or with all that refer to it, so that no reader
ever meets an object that lacks one of its own, also after a crash in the middle of the work.

Others go on meanwhile. What they have committed since the plan may refer to something that
is to go: it is taken out of the plan, with all that it leads to. Under the lock each of
these transactions looks once more, and gives up its turn if there is anything new; also if
a process stores ahead of a checkpoint (a pin), or has removed or compacted objects.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, Literal, Protocol

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.objects.hashing import Hash, digest
from hardsave.progress import Total, meter
from hardsave.stores import packs
from hardsave.stores.sqlite.connection import zeroing
from hardsave.stores.sqlite.gc import vacuum
from hardsave.stores.sqlite.gc.reachability import Reachability, Refs
from hardsave.stores.sqlite.read.object_index import bounds, indexed_upto, prefix
from hardsave.stores.sqlite.write import pins
from hardsave.stores.sqlite.write.operations import note
from hardsave.tuples import NamedTuple

PLANS = 20  # for one user; more only if others collect or compact all the time
TURNS = 100  # given up in a row; others would have to commit between any two looks
STEP_OBJECTS = 4_000  # removed in one transaction, or
STEP_BYTES = 4 * 1024 * 1024  # so many bytes rewritten
FREE_PAGES = 4_096  # of the main file, that may wait until the end: vacuuming many is slow


class Files(Protocol):
    """What is done to the store's files, each call for a short while."""

    def reading(self) -> AbstractContextManager[apsw.Connection]:
        """A read transaction."""

    def apply(self, change: "Change") -> None:
        """Run a change in a transaction, in turn with the commits."""


class Change(Protocol):
    def __call__(self, connection: apsw.Connection, /) -> None: ...


class Doomed(NamedTuple):
    """A pack that goes, or is written anew without some of its objects."""

    id: int
    size: int
    dead: bytes  # of each object, in the order of the directory, whether it goes


class Seen(NamedTuple):
    """Up to where everything committed is known to refer to nothing that goes."""

    pack: int
    number: int


class Plan(NamedTuple):
    user: int
    swept: int
    seen: Seen
    doomed: dict[int, Doomed]  # by pack, newest first; becomes smaller


class Removed(NamedTuple):
    objects: int = 0
    object_bytes: int = 0
    is_pinned: bool = False  # a process stores ahead of a checkpoint: some may be left

    def and_also(self, other: "Removed") -> "Removed":
        return Removed(self.objects + other.objects, self.object_bytes + other.object_bytes)


Outcome = Literal["done", "late", "changed", "pinned"]


# Planning


def plan(connection: apsw.Connection, user: int, refs: Refs, *, exact: bool) -> Plan:
    """What can go. To be called inside a read transaction."""
    again: set[Hash] = set()
    while True:
        marking = Reachability(chain(_roots(connection, user), again), refs, exact=exact)
        doomed = {pack.id: pack for pack in _judged(connection, user, marking)}
        # Writers keep to the order of packs. If one did not, what is needed and was not met
        # lies in a pack that was passed already: it counts as a root.
        late = {a for a in marking.waiting if _fate(connection, user, a, doomed) == "goes"}
        if not late:
            return Plan(user, swept(connection, user), _newest(connection, user), doomed)
        again |= late


def _roots(connection: apsw.Connection, user: int) -> Iterator[Hash]:
    """What checkpoints point at, one after the other: all of their rows would take much memory."""
    sql = "SELECT root, snapshot FROM checkpoints WHERE user = ?"
    for root, snapshot in connection.execute(sql, (user,)):
        yield root
        if snapshot is not None:
            yield snapshot


def _judged(connection: apsw.Connection, user: int, marking: Reachability) -> Iterator[Doomed]:
    low, high = bounds(user)
    indexed = indexed_upto(connection, user)
    total = "SELECT count(*), sum(size) FROM packs WHERE id > ? AND id < ?"
    looked = meter("looking", "packs", lambda: Total(*connection.execute(total, (low, high)).get))
    sql = "SELECT id, size, directory FROM packs WHERE id > ? AND id < ? ORDER BY id DESC"
    for pack, size, directory in connection.execute(sql, (low, high)):
        looked.add(1, size)
        hashes = packs.hashes(directory)
        if pack <= indexed and marking.wants_none(hashes):
            yield Doomed(pack, size, b"\1" * len(hashes))
            continue
        objects = _checked(read_pack(connection, pack))
        gone = marking.visit(objects, stays=pack > indexed)
        if gone:
            yield Doomed(pack, size, bytes(address in gone for address in hashes))


def read_pack(connection: apsw.Connection, pack: int) -> dict[Hash, bytes]:
    """The objects of a pack; none if it is not there."""
    sql = "SELECT directory, body, size FROM packs WHERE id = ?"
    row = connection.execute(sql, (pack,)).fetchone()
    return packs.unpack(*row) if row is not None else {}


def _checked(objects: dict[Hash, bytes]) -> dict[Hash, bytes]:
    """What a damaged object refers to is not known, and must not be lost on top of it."""
    for address, data in objects.items():
        if digest(data) != address:
            raise Corrupt(f"object {address.hex()} does not match its hash; run verify before gc")
    return objects


def _fate(
    connection: apsw.Connection, user: int, address: Hash, doomed: dict[int, Doomed]
) -> Literal["stays", "goes"]:
    """What becomes of an object. `Corrupt` if it is not there."""
    fate: Literal["goes"] | None = None
    for pack, directory in _places(connection, user, address):
        if pack not in doomed:
            return "stays"
        if not doomed[pack].dead[packs.hashes(directory).index(address)]:
            return "stays"
        fate = "goes"
    if fate is None:
        raise Corrupt(f"object {address.hex()} is missing; run verify before gc")
    return fate


def _places(connection: apsw.Connection, user: int, address: Hash) -> Iterator[tuple[int, bytes]]:
    """The packs that list an object, with their directories."""
    rows: list[Any] = connection.execute(
        "SELECT DISTINCT p.id, p.directory FROM objects AS o "
        "JOIN packs AS p ON p.id = (SELECT min(id) FROM packs WHERE id >= o.pack) "
        "WHERE o.user = ? AND o.prefix = ?",
        (user, prefix(address)),
    ).fetchall()
    yield from [row for row in rows if packs.holds(row[1], address)]
    sql = "SELECT id, directory FROM packs WHERE id > ? AND id < ?"
    for row in connection.execute(sql, (indexed_upto(connection, user), bounds(user)[1])):
        if packs.holds(row[1], address):
            yield row


def swept(connection: apsw.Connection, user: int) -> int:
    """How often packs of a user that were indexed have been rewritten or removed."""
    return int(connection.execute("SELECT swept FROM users WHERE id = ?", (user,)).get)


def swept_once_more(connection: apsw.Connection, user: int) -> None:
    """Void what processes have in mind of a user's packs, and the plans of other collectors."""
    connection.execute("UPDATE users SET swept = swept + 1 WHERE id = ?", (user,))


def _newest(connection: apsw.Connection, user: int) -> Seen:
    pack = connection.execute("SELECT max(id) FROM packs WHERE id < ?", (bounds(user)[1],)).get
    number = connection.execute("SELECT max(number) FROM checkpoints").get
    return Seen(int(pack or 0), int(number or 0))


# Keeping a plan up to date


def referred(connection: apsw.Connection, plan: Plan, refs: Refs) -> set[Hash]:
    """What goes by the plan, and is referred to by something committed since."""
    high = bounds(plan.user)[1]
    sql = "SELECT root, snapshot FROM checkpoints WHERE number > ? AND user = ?"
    rows: list[Any] = connection.execute(sql, (plan.seen.number, plan.user)).fetchall()
    found: set[Hash] = {root for row in rows for root in row if root is not None}
    sql = "SELECT directory, body, size FROM packs WHERE id > ? AND id < ?"
    for row in connection.execute(sql, (plan.seen.pack, high)):
        found.update(ref for data in packs.unpack(*row).values() for ref in refs(data))
    sql = "SELECT directory FROM packs WHERE id > ? AND id < ?"
    for row in connection.execute(sql, (indexed_upto(connection, plan.user), high)):
        found.difference_update(packs.hashes(row[0]))  # no plan touches what is not indexed
    return {a for a in found if _fate(connection, plan.user, a, plan.doomed) == "goes"}


def revised(connection: apsw.Connection, plan: Plan, refs: Refs) -> Plan:
    """The plan for what is there now: what is needed again is taken out of it."""
    unpacked: dict[int, dict[Hash, bytes]] = {}
    stack = list(referred(connection, plan, refs))
    while stack:
        address = stack.pop()
        if _fate(connection, plan.user, address, plan.doomed) == "stays":
            continue
        pack, directory = next(_places(connection, plan.user, address))
        _spare(plan.doomed, pack, packs.hashes(directory).index(address))
        if pack not in unpacked:
            unpacked = {pack: read_pack(connection, pack)}  # mostly the next is in it, too
        stack += refs(unpacked[pack][address])
    return plan._replace(seen=_newest(connection, plan.user))


def _spare(doomed: dict[int, Doomed], pack: int, at: int) -> None:
    dead = bytearray(doomed[pack].dead)
    dead[at] = 0
    doomed[pack] = doomed[pack]._replace(dead=bytes(dead))
    if not any(dead):
        del doomed[pack]


# Carrying a plan out


class Replacement(NamedTuple):
    """What comes into the place of a doomed pack."""

    doomed: Doomed
    pack: packs.Pack | None  # None: nothing
    gone: list[Hash]
    kept: list[Hash]
    gone_bytes: int


def collect(files: Files, user: int, refs: Refs, *, exact: bool) -> Removed:
    """Remove what can go of one user's."""
    removed = Removed()
    for _ in range(PLANS):
        with files.reading() as connection:
            if pins.is_pinned(connection, user):
                return removed._replace(is_pinned=True)
            made = plan(connection, user, refs, exact=exact)
        outcome, some = _carry_out(files, made, refs, exact=exact)
        removed = removed.and_also(some)
        if outcome != "changed":
            return removed._replace(is_pinned=outcome == "pinned")
    if exact:
        raise Unavailable("others collect or compact this store all the time; repeat later")
    return removed


def _carry_out(files: Files, made: Plan, refs: Refs, *, exact: bool) -> tuple[Outcome, Removed]:
    removed = Removed()
    late = 0
    swept_away = meter("removing", "packs", lambda: Total(len(made.doomed)))
    while made.doomed:
        with files.reading() as connection:
            if swept(connection, made.user) != made.swept:
                return "changed", removed
            # Most of what is new is looked at here, while no writer waits.
            made = revised(connection, made, refs)
            step = [_replacement(connection, pack) for pack in _step(made.doomed.values())]
        sweep = _Sweep(made, refs, step, exact)
        files.apply(sweep)
        late = late + 1 if sweep.outcome == "late" else 0
        if late == TURNS or sweep.outcome in ("changed", "pinned"):
            return "changed" if late else sweep.outcome, removed
        if not late:
            made = made._replace(swept=made.swept + 1)
            for replacement in step:
                del made.doomed[replacement.doomed.id]
            removed = removed.and_also(_sum(step))
            swept_away.add(len(step))
            vacuum.give_back(files.apply, upto=FREE_PAGES)
    return "done", removed


def _step(doomed: Iterable[Doomed]) -> list[Doomed]:
    """As much as may keep others waiting."""
    step: list[Doomed] = []
    objects = size = 0
    for pack in doomed:
        step.append(pack)
        objects += len(pack.dead)
        size += pack.size if 0 in pack.dead else 0
        if objects >= STEP_OBJECTS or size >= STEP_BYTES:
            break
    return step


def _replacement(connection: apsw.Connection, doomed: Doomed) -> Replacement:
    """Made before the transaction, while no writer waits."""
    sql = "SELECT directory FROM packs WHERE id = ?"
    directory: Any = connection.execute(sql, (doomed.id,)).get
    listed = list(zip(packs.hashes(directory), packs.lengths(directory), doomed.dead, strict=True))
    gone = [address for address, _, is_dead in listed if is_dead]
    kept = [address for address, _, is_dead in listed if not is_dead]
    gone_bytes = sum(length for _, length, is_dead in listed if is_dead)
    if not kept:
        return Replacement(doomed, None, gone, kept, gone_bytes)
    sql = "SELECT size, directory, body FROM packs WHERE id = ?"
    before = packs.Pack._make(connection.execute(sql, (doomed.id,)).fetchall()[0])
    objects = packs.unpack(before.directory, before.body, before.size)
    left = [(address, objects[address]) for address in kept]
    if packs.is_dense(before):
        made = packs.pack_densely(left)
    else:
        made = next(packs.pack(left, None, compress=lambda: packs.is_compressed(before)))
    return Replacement(doomed, made, gone, kept, gone_bytes)


def _sum(replacements: Iterable[Replacement]) -> Removed:
    total = Removed()
    for one in replacements:
        total = total.and_also(Removed(len(one.gone), one.gone_bytes))
    return total


class _Sweep:
    """One transaction, which may have to be tried more than once."""

    def __init__(
        self, plan: Plan, refs: Refs, replacements: list[Replacement], exact: bool
    ) -> None:
        self._plan = plan
        self._refs = refs
        self._replacements = replacements
        self._exact = exact
        self.outcome: Outcome = "changed"

    def __call__(self, connection: apsw.Connection) -> None:
        self.outcome = self._look(connection)
        if self.outcome != "done":
            return
        for replacement in self._replacements:
            self._replace(connection, replacement)
        note(connection, "packs", [one.doomed.id for one in self._replacements])
        swept_once_more(connection, self._plan.user)

    def _look(self, connection: apsw.Connection) -> Outcome:
        if pins.is_pinned(connection, self._plan.user):
            return "pinned"
        if swept(connection, self._plan.user) != self._plan.swept:
            return "changed"
        return "late" if referred(connection, self._plan, self._refs) else "done"

    def _replace(self, connection: apsw.Connection, one: Replacement) -> None:
        user, pack = self._plan.user, one.doomed.id
        with zeroing(connection) if self._exact or one.pack else nullcontext():
            if one.pack is None:
                connection.execute("DELETE FROM packs WHERE id = ?", (pack,))
            else:
                connection.execute(
                    "UPDATE packs SET size = ?, directory = ?, body = ? WHERE id = ?",
                    (*one.pack, pack),
                )
        unindex(connection, user, pack, one.gone, one.kept)


def unindex(
    connection: apsw.Connection,
    user: int,
    pack: int,
    gone: Collection[Hash],
    kept: Collection[Hash],
) -> None:
    """Take away the index rows of objects that a pack does not hold any more.

    Rows above the pack before it mean this pack. An object that is kept may share its prefix
    with one that is gone, and needs a row.
    """
    below = pack_before(connection, user, pack)
    prefixes = sorted({prefix(address) for address in gone})
    connection.executemany(
        "DELETE FROM objects WHERE user = ? AND prefix = ? AND pack > ? AND pack <= ?",
        [(user, number, below, pack) for number in prefixes],
    )
    shared = {prefix(address) for address in kept}.intersection(prefixes)
    connection.executemany(
        "INSERT INTO objects (user, prefix, pack) VALUES (?, ?, ?)",
        [(user, number, pack) for number in sorted(shared)],
    )


def pack_before(connection: apsw.Connection, user: int, pack: int) -> int:
    """The id of the pack before one: rows of the index above it mean the one."""
    sql = "SELECT max(id) FROM packs WHERE id > ? AND id < ?"
    return int(connection.execute(sql, (bounds(user)[0], pack)).get or bounds(user)[0])
