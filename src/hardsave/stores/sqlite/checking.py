"""Whether the index and the packs agree: every object has a row, every row an object."""

from collections.abc import Iterator
from typing import Any

import apsw

from hardsave.stores.sqlite import packs
from hardsave.stores.sqlite.index import USER_SHIFT, prefix

MOST_LINES = 20  # of one kind of fault

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


def index_faults(connection: apsw.Connection, name: str = "main") -> list[str]:
    """What is wrong with the index of a database, attached as `name`."""
    connection.execute("DROP TABLE IF EXISTS temp.listed")
    connection.execute(_LISTED)
    try:
        sql = f"SELECT id, directory FROM {name}.packs"  # noqa: S608 # a name of ours
        for pack, directory in connection.execute(sql):
            rows = [(pack >> USER_SHIFT, prefix(a), pack, a) for a in packs.hashes(directory)]
            sql = "INSERT OR IGNORE INTO temp.listed VALUES (?, ?, ?, ?)"
            connection.executemany(sql, rows)
        return [
            *_lines(connection, _NOT_INDEXED.format(name), _say_not_indexed),
            *_lines(connection, _DANGLING.format(name), _say_dangling),
        ]
    finally:
        connection.execute("DROP TABLE temp.listed")


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
