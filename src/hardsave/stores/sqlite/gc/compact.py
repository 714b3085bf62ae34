"""Packs are put in order by timeline: less space, and a state is read from fewer places.

`by_timeline` decides where objects go. A window of packs is written anew in one transaction, with
the index rows of its objects; other writers wait for that, some tenths of a second in a large
store. `users.compacted` says up to which pack this was done. Below it adjacent small packs, of
which gc has left little, are put together under the highest of their ids, as merging does, so the
rows of the index stay as they are: each means the first pack at or above its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import apsw

from hardsave.objects.hashing import Hash
from hardsave.progress import Total, meter
from hardsave.stores import packs
from hardsave.stores.sqlite import counts
from hardsave.stores.sqlite.connection import zeroing
from hardsave.stores.sqlite.gc import by_timeline
from hardsave.stores.sqlite.gc.collect import (
    Change,
    Files,
    pack_before,
    read_pack,
    swept_once_more,
    unindex,
)
from hardsave.stores.sqlite.gc.merge import PackRow, put_in_place
from hardsave.stores.sqlite.gc.reachability import Refs
from hardsave.stores.sqlite.read.object_index import bounds, indexed_upto, prefix
from hardsave.stores.sqlite.write.operations import note


def choose(standing: list[PackRow]) -> list[list[PackRow]]:
    """Which adjacent packs become one. `standing` is in the order of ids.

    Of its own result it chooses nothing more: two adjacent packs are together larger than the
    target, or they would be one.
    """
    groups: list[list[PackRow]] = []
    free = 0
    for row in standing:
        if row.size > free:
            groups.append([])
            free = by_timeline.MIXED_BYTES
        groups[-1].append(row)
        free -= row.size
    return [group for group in groups if len(group) > 1]


def compact(files: Files, user: int, refs: Refs, *, compress: bool = True) -> None:
    """Put a user's indexed packs in order, a window at a time."""
    with files.reading() as connection:
        standing = _standing(connection, user)
        upto = _compacted(connection, user)
        windows = by_timeline.windows(standing, upto)
        first = windows[0][0].id if windows else upto + 1
        groups = choose([row for row in standing if row.id < first])
        timelines = _timelines(connection, user) if windows else {}
    done = meter("compacting", "packs", lambda: _total(groups + windows))
    for group in groups:
        with files.reading() as connection:
            parts = [read_pack(connection, row.id) for row in group]
        if all(parts):  # otherwise another process has removed one
            files.apply(_swap(user, group, parts, compress=compress))
        done.add(len(group), sum(row.size for row in group))
    for window in windows:
        with files.reading() as connection:
            rewrite = _Rewrite(connection, user, window)
        rewrite.prepare(timelines, refs, compress=compress)
        files.apply(rewrite)
        if not rewrite.is_done:
            return  # another process was at it; the next call begins here
        done.add(len(window), sum(row.size for row in window))


def _total(groups: list[list[PackRow]]) -> Total:
    rows = [row for group in groups for row in group]
    return Total(len(rows), sum(row.size for row in rows))


def _timelines(connection: apsw.Connection, user: int) -> dict[Hash, int]:
    """Which timeline a root is of; the first, if it is of several."""
    found: dict[Hash, int] = {}
    same: dict[int, int] = {}  # one object for each number: there are many more roots
    sql = "SELECT root, snapshot, timeline FROM checkpoints WHERE user = ?"
    for root, snapshot, timeline in connection.execute(sql, (user,)):
        number = same.setdefault(timeline, timeline)
        for address in (root, snapshot):
            if address is not None and found.get(address, number) >= number:
                found[address] = number
    return found


class _Rewrite:
    """One transaction that puts a window in order, unless another process has changed it."""

    def __init__(self, connection: apsw.Connection, user: int, window: list[PackRow]) -> None:
        self.is_done = False
        self._user = user
        self._first, self._last = window[0].id, window[-1].id
        self._free = self._last - pack_before(connection, user, self._first)  # ids
        self._directories: list[bytes] = []
        self._objects: dict[Hash, bytes] = {}
        self._made: list[packs.Pack] = []
        sql = "SELECT directory, body, size FROM packs WHERE id BETWEEN ? AND ? ORDER BY id"
        for directory, body, size in connection.execute(sql, (self._first, self._last)):
            self._directories.append(directory)
            self._objects.update(packs.unpack(directory, body, size))

    def prepare(self, timelines: Mapping[Hash, int], refs: Refs, *, compress: bool) -> None:
        """What takes long, before other writers have to wait."""
        objects = self._objects
        placed = by_timeline.in_order(objects, timelines, refs)
        for batch in by_timeline.cut(placed, objects, self._free):
            items = [(address, objects.pop(address)) for address in batch]
            if compress:
                self._made.append(packs.pack_densely(items))
            else:
                self._made += packs.pack(items, None, compress=lambda: False)

    def __call__(self, connection: apsw.Connection, /) -> None:
        sql = "SELECT directory FROM packs WHERE id BETWEEN ? AND ? ORDER BY id"
        rows = connection.execute(sql, (self._first, self._last)).fetchall()
        self.is_done = bool(rows) and [row[0] for row in rows] == self._directories
        if not self.is_done:
            return
        ids = range(self._last - len(self._made) + 1, self._last + 1)
        with zeroing(connection):
            sql = "DELETE FROM packs WHERE id BETWEEN ? AND ?"
            connection.execute(sql, (self._first, self._last))
            sql = "INSERT INTO packs (id, size, directory, body) VALUES (?, ?, ?, ?)"
            connection.executemany(
                sql, [(id, *made) for id, made in zip(ids, self._made, strict=True)]
            )
        counts.add_packs(connection, self._user, ids[0], self._last)
        self._index(connection, ids)
        note(connection, "packs", range(min(self._first, ids[0]), self._last + 1))
        swept_once_more(connection, self._user)
        sql = "UPDATE users SET compacted = max(compacted, ?) WHERE id = ?"
        connection.execute(sql, (self._last, self._user))

    def _index(self, connection: apsw.Connection, ids: Iterable[int]) -> None:
        """Sorted, so that each page of the index is touched once."""
        user = self._user
        below = pack_before(connection, user, self._first)
        rows = sorted(
            (user, prefix(address), id)
            for id, made in zip(ids, self._made, strict=True)
            for address in packs.hashes(made.directory)
        )
        connection.executemany(
            "DELETE FROM objects WHERE user = ? AND prefix = ? AND pack > ? AND pack <= ?",
            ((user, number, below, self._last) for _, number, _ in rows),
        )
        sql = "INSERT OR IGNORE INTO objects (user, prefix, pack) VALUES (?, ?, ?)"
        connection.executemany(sql, rows)


def _swap(
    user: int, group: list[PackRow], parts: list[dict[Hash, bytes]], *, compress: bool
) -> Change:
    """One transaction that puts the parts together, unless another writer has changed them.

    Between two looks objects may go and others come, so that a pack is as large as before:
    what it lists decides.
    """
    objects = {address: data for part in parts for address, data in part.items()}
    if compress:
        made = packs.pack_densely(objects.items())
    else:
        made = next(packs.pack(objects.items(), None, compress=lambda: False))
    times = Counter(address for part in parts for address in part)
    twice = [address for address, count in times.items() if count > 1]
    first, last = group[0].id, group[-1].id

    def swap(connection: apsw.Connection, /) -> None:
        rows = connection.execute(
            "SELECT directory FROM packs WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
        )
        if [packs.hashes(row[0]) for row in rows] != [list(part) for part in parts]:
            return
        put_in_place(connection, group, made)
        swept_once_more(connection, user)
        if twice:  # by another tool: one row each is enough, and verify counts them
            unindex(connection, user, last, twice, objects)

    return swap


def _compacted(connection: apsw.Connection, user: int) -> int:
    return int(connection.execute("SELECT compacted FROM users WHERE id = ?", (user,)).get)


def _standing(connection: apsw.Connection, user: int) -> list[PackRow]:
    rows: list[Any] = connection.execute(
        "SELECT id, size FROM packs WHERE id > ? AND id <= ? ORDER BY id",
        (bounds(user)[0], indexed_upto(connection, user)),
    ).fetchall()
    return [PackRow(*row) for row in rows]
