"""Whether the rows of a store agree with each other, and whether store and backup do."""

# ruff: noqa: S608 # names of tables and of attached databases are our own

import contextlib
from bisect import bisect_left
from collections.abc import Iterator
from operator import add
from struct import Struct
from typing import Any

import apsw

from hardsave.errors import HardsaveError
from hardsave.objects.hashing import HASH_BYTES
from hardsave.stores import packs
from hardsave.stores.local.database import OPEN_AGAIN, in_our_words
from hardsave.stores.sqlite import counts
from hardsave.stores.sqlite.backup import backup_file
from hardsave.stores.sqlite.backup.backup_file import NUMBERED, path_of
from hardsave.stores.sqlite.read.object_index import USER_SHIFT, prefix
from hardsave.stores.sqlite.salvage.beside_check import beside_faults
from hardsave.tuples import NamedTuple

MOST_LINES = 20  # of one kind of fault
_FIRST_WORD = Struct(f">Q{HASH_BYTES - 8}x")
_LOW = 0xFFFFFFFF

_LISTED = """
    CREATE TEMP TABLE listed (
        user INTEGER, prefix INTEGER, pack INTEGER, address BLOB,
        PRIMARY KEY (user, prefix, pack, address)
    ) WITHOUT ROWID
"""
_NOT_INDEXED = """
    SELECT l.address, l.pack FROM temp.listed AS l JOIN {0}.users AS u ON u.id = l.user
    WHERE l.pack <= u.indexed AND NOT EXISTS (
        SELECT 1 FROM {0}.objects AS o
        WHERE o.user = l.user AND o.prefix = l.prefix AND o.pack <= l.pack)
"""
_DANGLING = """
    SELECT o.user, o.prefix, o.pack FROM {0}.objects AS o WHERE NOT EXISTS (
        SELECT 1 FROM temp.listed AS l WHERE l.user = o.user AND l.prefix = o.prefix
        AND l.pack = (SELECT min(p.id) FROM {0}.packs AS p WHERE p.id >= o.pack))
"""


def structure_faults(connection: apsw.Connection, name: str = "main") -> list[str]:
    """Objects without a row in the index of a database, attached as `name`, rows without an
    object, counts that are wrong, and rows beside checkpoints that are. Which rows of the index
    these are is looked for only if sums over both differ: that takes several times as long, and
    space for a second index."""
    is_indexed = _indexed_sums(connection, name) == _listed_sums(connection, name)
    rows = [] if is_indexed else _index_faults(connection, name)
    return rows + counts.faults(connection, name) + beside_faults(connection, name)


def _index_faults(connection: apsw.Connection, name: str) -> list[str]:
    connection.execute("DROP TABLE IF EXISTS temp.listed")
    connection.execute(_LISTED)
    try:
        sql = f"SELECT id, directory FROM {name}.packs"
        for pack, directory in connection.execute(sql):
            rows = [(pack >> USER_SHIFT, prefix(a), pack, a) for a in packs.hashes(directory)]
            sql = "INSERT OR IGNORE INTO temp.listed VALUES (?, ?, ?, ?)"
            connection.executemany(sql, rows)
        return [
            *_lines(connection, _NOT_INDEXED.format(name), _say_not_indexed),
            *_lines(connection, _DANGLING.format(name), _say_dangling),
        ]
    finally:
        # Damage ends the transaction, and the table with it; what is to be told is the damage.
        connection.execute("DROP TABLE IF EXISTS temp.listed")


def _listed_sums(connection: apsw.Connection, name: str) -> "dict[int, _Sums]":
    """Of the prefixes that the packs list, by pack."""
    found: dict[int, _Sums] = {}
    sql = (
        f"SELECT p.id, p.directory FROM {name}.packs AS p "
        f"JOIN {name}.users AS u ON u.id = p.id >> {USER_SHIFT} WHERE p.id <= u.indexed"
    )
    for pack, directory in connection.execute(sql):
        whole = directory[: packs.count(directory) * HASH_BYTES]
        numbers = [word >> 1 for (word,) in _FIRST_WORD.iter_unpack(whole)]
        low = sum([number & _LOW for number in numbers])
        found[pack] = _Sums(len(numbers), low, (sum(numbers) - low) >> 32)
    return found


def _indexed_sums(connection: apsw.Connection, name: str) -> "dict[int, _Sums]":
    """Of the prefixes in the index, by the pack that their rows lead to."""
    ids: list[int] = [row[0] for row in connection.execute(f"SELECT id FROM {name}.packs")]
    ids.sort()
    found: dict[int, _Sums] = {}
    sql = (
        f"SELECT user, pack, count(*), sum(prefix & {_LOW}), sum(prefix >> 32) "
        f"FROM {name}.objects GROUP BY user, pack"
    )
    for user, pack, *sums in connection.execute(sql):
        at = bisect_left(ids, pack)
        leads_to = ids[at] if at < len(ids) and ids[at] >> USER_SHIFT == user else -1
        before = found.get(leads_to, _Sums(0, 0, 0))
        found[leads_to] = _Sums._make(map(add, before, sums))
    return found


class _Sums(NamedTuple):
    """Of the prefixes of one pack's objects. As a whole they do not fit into SQLite's numbers."""

    rows: int
    low: int
    high: int


def _lines(connection: apsw.Connection, sql: str, say: Any) -> Iterator[str]:
    rows: list[Any] = connection.execute(sql).fetchall()
    for row in rows[:MOST_LINES]:
        yield say(*row)
    if len(rows) > MOST_LINES:
        yield f"the index has {len(rows) - MOST_LINES} more such rows"


def _say_not_indexed(address: bytes, pack: int) -> str:
    return f"object {address.hex()} lies in pack {pack}, and no index row says so"


def _say_dangling(user: int, number: int, pack: int) -> str:
    beginning = (number << 1).to_bytes(8).hex()[:15]
    return f"the index leads {beginning}… of user {user} to pack {pack}, which does not hold it"


def backup_faults(store: str, *, only_reads: bool = False) -> list[str]:
    """What is wrong with a backup, by itself and beside its store; empty also if there is none."""
    try:
        connection = backup_file.look(store, only_reads=only_reads)
        if connection is None:
            return []
        with contextlib.closing(connection), in_our_words(path_of(store)):
            lines = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            found = [f"{path_of(store)}: {line}" for line in lines if line != "ok"]
            if found or not backup_file.is_current(connection):
                return found  # one of another version is made anew with the next commit
            return _differences(connection, store)
    except HardsaveError as error:
        return [str(error).replace(OPEN_AGAIN, "; it is made anew with the next commit")]


def _differences(connection: apsw.Connection, store: str) -> list[str]:
    """Where a backup is not what its store was when it was copied.

    What has changed since is not known yet to the backup: then only the additions are compared.
    """
    connection.execute("ATTACH ? AS store", (store,))
    connection.execute("BEGIN")
    copied, now = backup_file.copied(connection), backup_file.standing(connection)
    if copied.number > now.number:
        return [f"{path_of(store)} is ahead of {store}: commits are gone. Open it again"]
    if copied.change != now.change:
        return []
    lines = []
    for table in NUMBERED:
        sql = f"SELECT count(*), total(number) FROM {{}}.{table} WHERE number <= ?"
        theirs = connection.execute(sql.format("store"), (copied.number,)).fetchone()
        ours = connection.execute(sql.format("main"), (1 << 62,)).fetchone()  # and no later ones
        if ours != theirs:
            lines.append(f"{path_of(store)} does not have the same {table} as {store}")
    lacking = connection.execute(
        "SELECT count(*) FROM store.packs AS s LEFT JOIN main.packs AS b USING (id) "
        "WHERE b.size IS NOT s.size AND s.id <= (SELECT coalesce(max(id), 0) FROM main.packs "
        f"WHERE id >> {USER_SHIFT} = s.id >> {USER_SHIFT})"
    ).get
    if lacking:
        lines.append(f"{path_of(store)} does not have {lacking} packs as {store} has them")
    return lines
