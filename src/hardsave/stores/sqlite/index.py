"""Where an object lies.

Packs are indexed when they are merged, many at a time and sorted, off the path of commits:
`users.indexed` says up to which pack. The few newer ones are known by their directories,
which every process reads once and keeps. So a commit touches no index page, and what was
saved last is found without asking the file.

The index holds 63 bits of a hash; the whole hash lies in the pack's directory and decides,
because 63 bits can be made to collide on purpose.
"""

import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import apsw

from hardsave.objects.hashing import Hash
from hardsave.stores.sqlite import packs

USER_SHIFT = 40  # a pack's id is user << USER_SHIFT | a rising number
MAX_IN_MIND = 50_000  # hashes a user; past it, the directories are read again
_IN_LIST = 256
_PREFIXES = [
    f"SELECT prefix FROM objects WHERE user = ? AND prefix IN ({','.join('?' * (1 << width))})"  # noqa: S608 # question marks
    for width in range(_IN_LIST.bit_length())
]
_SINCE = """
    SELECT id, size, directory, CASE WHEN size < ? THEN body END FROM packs
    WHERE id > ? AND id < ?
    UNION ALL SELECT -1, (SELECT swept FROM users WHERE id = ?), NULL, NULL
"""


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
    """The objects of one user's packs that were not indexed when they were read."""

    def __init__(self, indexed: int) -> None:
        self.packs: dict[Hash, int] = {}
        self.upto = indexed  # the newest pack whose directory is known
        self.swept = 0  # what was removed after that is still in mind


class Index:
    """The index of one store, as one process knows it. Threads share it.

    What it has in mind becomes wrong only when objects are removed, which raises `swept`: then
    it is all forgotten. A pack that was merged is found under the id of the merged one, which
    is the first at or above its own. `on_sweep` is told the user of whom objects are gone.
    """

    def __init__(self, on_sweep: Callable[[int], None] = lambda user: None) -> None:
        self._on_sweep = on_sweep
        self._lock = threading.Lock()
        self._recent: dict[int, _Recent] = {}

    def refresh(self, connection: apsw.Connection, user: int) -> list[RecentPack]:
        """Read the directories of packs made since the last look; all, if objects were removed.

        To be called inside the transaction that is to rely on it.
        """
        with self._lock:
            recent = self._recent.get(user)
            if recent is None:
                return self._start_anew(connection, user)
            rows, swept = _since(connection, user, recent.upto)
            if swept < recent.swept:
                # This transaction is older than what another thread has seen meanwhile.
                # What it has besides is found by asking the file.
                return []
            if swept == recent.swept and len(recent.packs) <= MAX_IN_MIND:
                self._learn_all(recent, rows)
                return rows
            if swept > recent.swept:
                self._on_sweep(user)
            return self._start_anew(connection, user)

    def _start_anew(self, connection: apsw.Connection, user: int) -> list[RecentPack]:
        fresh = _Recent(indexed_upto(connection, user))
        rows, fresh.swept = _since(connection, user, fresh.upto)
        self._learn_all(fresh, rows)
        recent = self._recent.get(user)
        if recent is None or (fresh.swept, fresh.upto) >= (recent.swept, recent.upto):
            self._recent[user] = fresh  # only when it is complete: others look without the lock
        return rows

    def _learn_all(self, recent: _Recent, rows: list[RecentPack]) -> None:
        for row in rows:
            self._learn(recent, row.id, packs.hashes(row.directory))

    def learn(self, user: int, pack: int, hashes: Collection[Hash]) -> bool:
        """Note a pack that this process has just committed; whether it is known now."""
        with self._lock:
            recent = self._recent.get(user)
            if recent is None:
                return False
            # With a gap before it, other processes' packs would be taken as known.
            if pack == recent.upto + 1:
                self._learn(recent, pack, hashes)
            return pack <= recent.upto

    def _learn(self, recent: _Recent, pack: int, hashes: Collection[Hash]) -> None:
        recent.packs.update(dict.fromkeys(hashes, pack))
        recent.upto = pack

    def packs(self, connection: apsw.Connection, user: int, address: Hash) -> Iterator[int]:
        """Where `address` may lie, most likely first. To be called inside a transaction."""
        recent = self._recent.get(user)
        known = None if recent is None else recent.packs.get(address)
        if known is not None:
            yield known
        rows: list[Any] = connection.execute(
            "SELECT pack FROM objects WHERE user = ? AND prefix = ?", (user, prefix(address))
        ).fetchall()
        for row in rows:
            yield row[0]
        # Another thread may have read the directories at a later moment than this
        # transaction's, when packs that it does not see as indexed were indexed already.
        for row in _since(connection, user, indexed_upto(connection, user))[0]:
            if packs.holds(row.directory, address):
                yield row.id

    def unknown(
        self, connection: apsw.Connection, user: int, hashes: Collection[Hash]
    ) -> list[Hash]:
        """Those of `hashes` that neither a recent pack nor an index row speaks of."""
        recent = self._recent.get(user)
        known = {} if recent is None else recent.packs
        left = [address for address in hashes if address not in known]
        return _not_indexed(connection, user, left) if left else left

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


def _since(connection: apsw.Connection, user: int, after: int) -> tuple[list[RecentPack], int]:
    """The packs from `after` on, and `users.swept`, in one query: every read and save asks it."""
    values = (packs.COMPRESSED_FROM, after, bounds(user)[1], user)
    rows: list[Any] = connection.execute(_SINCE, values).fetchall()
    (_, swept, _, _), *made = sorted(rows)
    return [RecentPack._make(row) for row in made], swept or 0


def _not_indexed(connection: apsw.Connection, user: int, hashes: list[Hash]) -> list[Hash]:
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
