"""Small old packs become few large ones: less room, and a state is read from fewer places.

Neighbours are put together under the highest of their ids, as merging does, so the rows of
the index stay as they are: each means the first pack at or above its own.
"""

from collections import Counter
from typing import Any

import apsw

from hardsave.objects.hashing import Hash
from hardsave.progress import Total, meter
from hardsave.stores.sqlite import packs
from hardsave.stores.sqlite.gc.collect import Change, Files, read_pack, swept_once_more, unindex
from hardsave.stores.sqlite.gc.merge import PackRow, put_in_place
from hardsave.stores.sqlite.read.object_index import bounds, indexed_upto

TARGET_BYTES = 1024 * 1024  # of objects, uncompressed


def choose(standing: list[PackRow]) -> list[list[PackRow]]:
    """Which neighbours become one pack. `standing` is in the order of ids.

    What comes out of it chooses nothing when it is asked again: two neighbours are together
    larger than the target, or they would be one.
    """
    groups: list[list[PackRow]] = []
    room = 0
    for row in standing:
        if row.size > room:
            groups.append([])
            room = TARGET_BYTES
        groups[-1].append(row)
        room -= row.size
    return [group for group in groups if len(group) > 1]


def compact(files: Files, user: int, *, compress: bool = True) -> None:
    """Put a user's indexed packs together, a group at a time."""
    with files.reading() as connection:
        standing = _standing(connection, user)
        groups = choose(standing)
        if compress:
            groups += _left_over(connection, standing, groups)
    done = meter("compacting", "packs", lambda: _total(groups))
    for group in groups:
        with files.reading() as connection:
            parts = [read_pack(connection, row.id) for row in group]
        if all(parts):  # otherwise somebody has removed one
            files.apply(_swap(user, group, parts, compress=compress))
        done.add(len(group), sum(row.size for row in group))


def _total(groups: list[list[PackRow]]) -> Total:
    rows = [row for group in groups for row in group]
    return Total(len(rows), sum(row.size for row in rows))


def _left_over(
    connection: apsw.Connection, standing: list[PackRow], groups: list[list[PackRow]]
) -> list[list[PackRow]]:
    """The newest pack as a group of its own, if it has no neighbours to go with and is
    compressed, but not as well as it can be."""
    newest = standing[-1:]
    if not newest or newest[0] in (group[-1] for group in groups):
        return []
    sql = "SELECT size, directory, body FROM packs WHERE id = ?"
    rows: list[Any] = connection.execute(sql, (newest[0].id,)).fetchall()
    made = [packs.Pack._make(row) for row in rows]
    return [newest for pack in made if len(pack.body) < pack.size and not packs.is_dense(pack)]


def _swap(
    user: int, group: list[PackRow], parts: list[dict[Hash, bytes]], *, compress: bool
) -> Change:
    """One transaction that puts the parts together, unless somebody has changed them.

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


def _standing(connection: apsw.Connection, user: int) -> list[PackRow]:
    rows: list[Any] = connection.execute(
        "SELECT id, size FROM packs WHERE id > ? AND id <= ? ORDER BY id",
        (bounds(user)[0], indexed_upto(connection, user)),
    ).fetchall()
    return [PackRow(*row) for row in rows]
