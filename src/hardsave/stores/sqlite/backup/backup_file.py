"""The live backup: a second file beside the store, as it is read.

It has the tables that cannot be made again: users, timelines, checkpoints, tombstones, log,
tasks, ledger, packs, labels, notes and workspaces, without their indexes, and one row that says
how far it has come. `row_feed` makes it.
"""

# ruff: noqa: S608 # names of tables and of attached databases are our own

import os
from typing import Any

import apsw

from hardsave.defaults import BUSY_SECONDS
from hardsave.errors import Corrupt, HardsaveError, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.local.database import CHECKSUM_VFS, in_our_words, is_failing, load_checksums
from hardsave.stores.sqlite import counts, schema
from hardsave.stores.sqlite.connection import wal_bytes
from hardsave.stores.sqlite.open import read_only
from hardsave.stores.sqlite.read.object_index import bounds
from hardsave.tuples import NamedTuple

APPLICATION_ID = 0x48534142  # "HSAB": it cannot be opened as a store
VERSION = 1 << 16 | schema.VERSION  # of the backup's own shape, and of the store's
SCHEMA_BITS = 0xFFFF

KEYS = {
    "users": "id",
    "timelines": "id",
    "checkpoints": "number",
    "tombstones": "number",
    "log": "number",
    "tasks": "id",
    "ledger": "number",
    "packs": "id",
    "labels": "id",
    "notes": "id",
    "workspaces": "number",
}
"""The tables that are copied, each with the integer that its rows go by."""

NUMBERED = ("checkpoints", "tombstones", "log", "ledger")
_EVENT = """
    SELECT id FROM {0}.checkpoints WHERE number = ?1
    UNION ALL SELECT id FROM {0}.tombstones WHERE number = ?1
    UNION ALL SELECT id FROM {0}.log WHERE number = ?1
    UNION ALL SELECT id FROM {0}.ledger WHERE number = ?1
"""
OF_THIS_FILE = ("indexed", "swept", *counts.OF_THIS_FILE)
CHANGED_TASKS = "SELECT task FROM {0}.ledger WHERE number > ?1"


class Copied(NamedTuple):
    """How far a backup has come: the last commit, and the last row of `changes`."""

    number: int
    change: int


def path_of(store: str) -> str:
    return store + "-backup"


def peek(store: str, *, must_answer: bool = False, only_reads: bool = False) -> Copied | None:
    """How far the backup of a store has come; None if there is none that can be used.

    `must_answer`: a disk that fails is an error, not a backup that is of no use.
    """
    try:
        connection = look(store, only_reads=only_reads)
    except Corrupt:
        return None
    if connection is None:
        return None
    try:
        return copied(connection)
    except (apsw.Error, Corrupt) as error:
        if must_answer and is_failing(error):
            raise
        return None
    finally:
        connection.close()


def look(store: str, *, only_reads: bool = False) -> apsw.Connection | None:
    """A connection that reads the backup of a store, and leaves its file alone; None: there
    is none. With `only_reads` nothing is made beside it either."""
    path = path_of(store)
    try:
        return None if os.path.getsize(path) == 0 else _opened(path, only_reads=only_reads)
    except FileNotFoundError:  # perhaps it is being replaced right now
        return None
    except Unavailable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _opened(path: str, *, only_reads: bool) -> apsw.Connection:
    load_checksums()
    if only_reads or read_only.read_only(path) is not None:
        with in_our_words(path):
            return _checked(read_only.connect(path), path)
    try:
        with in_our_words(path):
            connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=CHECKSUM_VFS)
            return _checked(connection, path)
    except Unavailable as error:
        if not read_only.is_disk_full(error):
            raise
    with in_our_words(path):
        return _checked(read_only.connect(path), path)


def _checked(connection: apsw.Connection, path: str) -> apsw.Connection:
    try:
        # A process that closes it, or recovers its WAL, locks it for a moment.
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if connection.pragma("application_id") != APPLICATION_ID:
            raise Corrupt(f"{path} is no backup of a store, or its header is damaged")
    except BaseException:
        connection.close()
        raise
    return connection


def is_current(connection: apsw.Connection) -> bool:
    """Whether it is a backup as this version makes them."""
    found = connection.pragma("application_id"), connection.pragma("user_version")
    return found == (APPLICATION_ID, VERSION)


def rescue(
    store: str, user: int, wanted: set[Hash], *, only_reads: bool = False
) -> dict[Hash, bytes]:
    """Objects by hash, from the packs of the backup that can be read. Nothing is checked."""
    found: dict[Hash, bytes] = {}
    connection = look(store, only_reads=only_reads)
    if connection is None:
        return found
    try:
        low, high = bounds(user)
        sql = "SELECT id, directory FROM packs WHERE id > ? AND id < ? ORDER BY id"
        holders: list[int] = []
        for pack, directory in connection.execute(sql, (low, high)):
            if any(packs.holds(directory, address) for address in wanted):
                holders.append(pack)
        for pack in holders:
            sql = "SELECT directory, body, size FROM packs WHERE id = ?"
            row: Any = connection.execute(sql, (pack,)).fetchone()
            objects = packs.unpack(*row)
            found.update({address: objects[address] for address in wanted & objects.keys()})
    except (apsw.Error, Corrupt):
        log(__name__).exception("the backup of %s cannot be read in full", store)
    finally:
        connection.close()
    return found


# Rows


def copy_rows(
    connection: apsw.Connection, table: str, source: str, where: str, values: tuple[Any, ...]
) -> None:
    """Copy rows from an attached database, in C. Those that are there are replaced."""
    names = columns(connection, table, source)
    insert(connection, "REPLACE", table, names, source, where, values)


def columns(connection: apsw.Connection, table: str, source: str) -> str:
    """Those that both databases have, but for what speaks of this file's index and packs alone."""
    sql = (
        "SELECT name FROM pragma_table_info(?1, ?2) WHERE name IN "
        "(SELECT name FROM pragma_table_info(?1, 'main'))"
    )
    names: list[Any] = connection.execute(sql, (table, source)).fetchall()
    return ", ".join(name for (name,) in names if name not in OF_THIS_FILE)


def insert(
    connection: apsw.Connection,
    conflict: str,
    table: str,
    names: str,
    source: str,
    where: str,
    values: tuple[Any, ...],
) -> None:
    connection.execute(
        f"INSERT OR {conflict} INTO main.{table} ({names}) "
        f"SELECT {names} FROM {source}.{table} WHERE {where}",
        values,
    )


def copied(connection: apsw.Connection) -> Copied:
    """How far a backup has come."""
    row = connection.execute("SELECT number, change FROM main.marks").fetchone()
    if row is None:
        raise Corrupt("a backup has lost its marks")
    return Copied(*row)


def event_id(connection: apsw.Connection, name: str, number: int) -> bytes | None:
    """The id of a commit's event."""
    found: Any = connection.execute(_EVENT.format(name), (number,)).get
    return None if found is None else bytes(found)


def standing(connection: apsw.Connection, store: str = "store") -> Copied:
    """How far a store has come: its last commit, and the last row of `changes` it ever had."""
    sql = f"SELECT seq FROM {store}.sqlite_sequence WHERE name = 'changes'"
    change = int(connection.execute(sql).get or 0)
    return Copied(schema.last_number(connection, store), change)


def lacks_some(store: str, connection: apsw.Connection) -> bool:
    """Whether the WAL of a store may hold what its backup, if it has one, does not have yet."""
    try:
        if wal_bytes(store) == 0 or not os.path.exists(path_of(store)):
            return False
        return peek(store) != standing(connection, "main")
    except (HardsaveError, apsw.Error, OSError):  # if it cannot be compared, the backup stays
        return True
