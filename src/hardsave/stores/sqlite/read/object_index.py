"""Where an object lies.

Packs are indexed when they are merged, many at a time and sorted, off the path of commits:
`users.indexed` says up to which pack. The few newer ones are known by their directories,
which every process reads once and keeps. So a commit touches no index page, and what was
saved last is found without asking the file. Whether something new is stored already, of long ago,
is asked by every save: a writer that asks again and again keeps the rows in memory, too, if few.

The index holds 63 bits of a hash; the whole hash lies in the pack's directory and decides,
because 63 bits can be made to collide on purpose.
"""

import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any

import apsw

from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.tuples import NamedTuple

USER_SHIFT = 40  # a pack's id is user << USER_SHIFT | a rising number
MAX_IN_MIND = 50_000  # hashes a user; past it, the directories are read again
MAX_IN_ALL = 500_000  # hashes; past it, users are forgotten
FEW_USERS, MANY_USERS = 16, 10_000  # never fewer, for they may be at work; and never more
BUSY_QUESTIONS = 64  # by one writer, about one user: from then on the rows are in mind, too
MAX_ROWS = 10_000  # a user; more are asked for each time
_IN_LIST = 256
_PREFIXES = [
    f"SELECT prefix FROM objects WHERE user = ? AND prefix IN ({','.join('?' * (1 << width))})"  # noqa: S608 # question marks
    for width in range(_IN_LIST.bit_length())
]
_SINCE = """
    SELECT id, size, directory, CASE WHEN size < ? THEN body END FROM packs
    WHERE id > ? AND id < ? ORDER BY id
"""
_STANDING = "SELECT indexed, swept FROM users WHERE id = ?"
_ROWS = "SELECT prefix FROM objects WHERE user = ? LIMIT ?"


def prefix(address: Hash) -> int:
    """The first 63 bits of a hash: what the index is sorted by."""
    return int.from_bytes(address[:8]) >> 1


def bounds(user: int) -> tuple[int, int]:
    """The ids of a user's packs lie between these two."""
    return user << USER_SHIFT, (user + 1) << USER_SHIFT


class RecentPack(NamedTuple):
    id: int
    size: int
    directory: bytes
    body: bytes | None  # None: too long to lie beside the directory


class _Recent:
    """The objects of one user's packs that were not indexed when they were read.

    A reader looks for a few objects in a few directories; a writer asks again and again. So
    directories are taken apart when a writer first asks.
    """

    def __init__(self, indexed: int, swept: int) -> None:
        self.upto = indexed  # the newest pack whose directory is known
        self.swept = swept  # what was removed after that is still in mind
        self.count = 0  # of objects
        self._rows: set[int] | None = None  # the prefixes of all others
        self._questions = 0  # of writers, about others
        self._packs: dict[Hash, int] = {}
        self._whole: list[tuple[int, bytes]] = []  # packs whose directory is not taken apart

    def add(self, pack: int, directory: bytes) -> None:
        self._whole.append((pack, directory))
        self.count += packs.count(directory)
        self.upto = pack

    def pack_of(self, address: Hash) -> int | None:
        for pack, directory in self._whole:
            if packs.holds(directory, address):
                return pack
        return self._packs.get(address)

    def rows(self, connection: apsw.Connection, user: int) -> set[int] | None:
        """The prefixes of all that is stored and not known here; None: they are to be asked for.

        Only for a writer: rows that are added after its transaction began are of packs that are
        known here, which cannot be said of what a reader of an earlier state of the file finds.
        """
        self._questions += 1
        if self._questions == BUSY_QUESTIONS:
            found: list[Any] = connection.execute(_ROWS, (user, MAX_ROWS + 1)).fetchall()
            self._rows = {row[0] for row in found} if len(found) <= MAX_ROWS else None
        return self._rows

    def all(self) -> dict[Hash, int]:
        for pack, directory in self._whole:
            self._packs.update(dict.fromkeys(packs.hashes(directory), pack))
        self._whole.clear()
        return self._packs


class ObjectIndex:
    """The index of one store, as one process knows it. Threads share it.

    What it has in mind becomes wrong only when objects are removed, which raises `swept`: then
    it is all forgotten. A pack that was merged is found under the id of the merged one, which
    is the first at or above its own. `on_sweep` is told the user of whom objects are gone.
    """

    def __init__(self, on_sweep: Callable[[int], None] = lambda user: None) -> None:
        self._on_sweep = on_sweep
        self._lock = threading.RLock()  # a signal handler may read, too
        self._recent: dict[int, _Recent] = {}  # the user who was asked about last is the last
        self._count = 0  # of their objects

    def knows(self, user: int) -> bool:
        """Whether anything is in mind of a user; it stays so for a while."""
        with self._lock:
            recent = self._recent.get(user)
            if recent is not None:
                self._keep(user, recent, recent.count)
            return recent is not None

    def refresh(self, connection: apsw.Connection, user: int) -> list[RecentPack]:
        """Read the directories of packs made since the last look; all, if objects were removed.

        To be called inside the transaction that is to rely on it.
        """
        with self._lock:
            recent = self._recent.get(user)
            indexed, swept = connection.execute(_STANDING, (user,)).fetchone() or (0, 0)
            if recent is not None:
                if swept < recent.swept:
                    # This transaction is older than what another thread has seen meanwhile.
                    # What it has besides is found by asking the file.
                    return []
                if swept == recent.swept and recent.count <= MAX_IN_MIND:
                    before = recent.count
                    rows = _read_into(recent, connection, user)
                    self._keep(user, recent, before)
                    return rows
                if swept > recent.swept:
                    self._on_sweep(user)
            return self._start_anew(connection, user, indexed, swept)

    def _start_anew(
        self, connection: apsw.Connection, user: int, indexed: int, swept: int
    ) -> list[RecentPack]:
        fresh = _Recent(max(indexed, bounds(user)[0]), swept)
        rows = _read_into(fresh, connection, user)
        recent = self._recent.get(user)
        if recent is None or (fresh.swept, fresh.upto) >= (recent.swept, recent.upto):
            self._keep(user, fresh, 0 if recent is None else recent.count)
        return rows

    def _keep(self, user: int, recent: _Recent, before: int) -> None:
        """Cache a user, of whom so many objects were `before`; there may be many users, and those
        that are not asked about any more are evicted."""
        self._recent.pop(user, None)
        self._recent[user] = recent
        self._count += recent.count - before
        while len(self._recent) > (FEW_USERS if self._count > MAX_IN_ALL else MANY_USERS):
            self._count -= self._recent.pop(next(iter(self._recent))).count

    def learn(self, user: int, pack: int, directory: bytes) -> bool:
        """Note a pack that this process has just committed; whether it is known now."""
        with self._lock:
            recent = self._recent.get(user)
            if recent is None:
                return False
            # With a gap before it, other processes' packs would be taken as known.
            if pack == recent.upto + 1:
                recent.add(pack, directory)
                self._count += packs.count(directory)
            return pack <= recent.upto

    def packs(self, connection: apsw.Connection, user: int, address: Hash) -> Iterator[int]:
        """Where `address` may lie, most likely first. To be called inside a transaction."""
        with self._lock:
            recent = self._recent.get(user)
            known = None if recent is None else recent.pack_of(address)
        if known is not None:
            yield known
        rows: list[Any] = connection.execute(
            "SELECT pack FROM objects WHERE user = ? AND prefix = ?", (user, prefix(address))
        ).fetchall()
        for row in rows:
            yield row[0]
        # Another thread may have read the directories at a later moment than this
        # transaction's, when packs that it does not see as indexed were indexed already.
        for row in _since(connection, user, indexed_upto(connection, user)):
            if packs.holds(row.directory, address):
                yield row.id

    def unknown(
        self,
        connection: apsw.Connection,
        user: int,
        hashes: Collection[Hash],
        *,
        is_writing: bool = False,
    ) -> list[Hash]:
        """Those of `hashes` that neither a recent pack nor an index row speaks of."""
        with self._lock:
            recent = self._recent.get(user)
            known = {} if recent is None else recent.all()
            left = [address for address in hashes if address not in known]
            if not left or recent is None or not is_writing:
                rows = None
            else:
                rows = recent.rows(connection, user)
        if rows is not None:
            return [address for address in left if int.from_bytes(address[:8]) >> 1 not in rows]
        return not_indexed(connection, user, left) if left else left

    def is_stored(self, connection: apsw.Connection, user: int, address: Hash) -> bool:
        """Whether a pack lists the whole hash. To be called inside a transaction."""
        for pack in self.packs(connection, user, address):
            row = connection.execute(
                "SELECT directory FROM packs WHERE id >= ? ORDER BY id LIMIT 1", (pack,)
            ).fetchone()
            if row is not None and packs.holds(row[0], address):
                return True
        return False


def indexed_upto(connection: apsw.Connection, user: int) -> int:
    """The newest pack of a user whose objects have index rows."""
    found = connection.execute("SELECT indexed FROM users WHERE id = ?", (user,)).get
    return max(int(found or 0), bounds(user)[0])


def add_rows(
    connection: apsw.Connection, user: int, made: Collection[tuple[int, Hash]], upto: int
) -> None:
    """Index the objects of packs up to `upto`: (pack, hash) of each."""
    rows = sorted((user, prefix(address), pack) for pack, address in made)
    connection.executemany(
        "INSERT OR IGNORE INTO objects (user, prefix, pack) VALUES (?, ?, ?)", rows
    )
    connection.execute("UPDATE users SET indexed = ? WHERE id = ?", (upto, user))


def _since(connection: apsw.Connection, user: int, after: int) -> list[RecentPack]:
    """The packs of a user from `after` on."""
    values = (packs.COMPRESSED_FROM, after, bounds(user)[1])
    rows: list[Any] = connection.execute(_SINCE, values).fetchall()
    return [RecentPack._make(row) for row in rows]


def _read_into(recent: _Recent, connection: apsw.Connection, user: int) -> list[RecentPack]:
    rows = _since(connection, user, recent.upto)
    for row in rows:
        recent.add(row.id, row.directory)
    return rows


def not_indexed(connection: apsw.Connection, user: int, hashes: list[Hash]) -> list[Hash]:
    """Those that no row speaks of, by their prefixes."""
    wanted = [int.from_bytes(address[:8]) >> 1 for address in hashes]
    found: set[Any] = set()
    for start in range(0, len(wanted), _IN_LIST):
        some = wanted[start : start + _IN_LIST]
        # A list of as many values as a power of two: few statements, prepared once.
        width = (len(some) - 1).bit_length()
        some += some[-1:] * ((1 << width) - len(some))
        found.update([row[0] for row in connection.execute(_PREFIXES[width], (user, *some))])
    if not found:
        return hashes
    return [address for address in hashes if prefix(address) not in found]
