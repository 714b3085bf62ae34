"""The live backup: a second file beside the store, fed by rows.

It has the tables that cannot be made again: users, timelines, checkpoints, tombstones, log and
packs, without their indexes, and one row that says how far it has come. One pass takes what
is new from *one* read transaction of the store, and makes it one commit of the backup: so the
backup is always the store as it was at some moment, never a mixture of two.

What was only added is found by number; what was changed or removed stands in the store's
table `changes`. Rows of `changes` that were copied are trimmed. A backup that has missed such
rows, is damaged, or belongs to another history, is built anew.
"""

# ruff: noqa: S608 # names of tables and of attached databases are our own

import contextlib
import logging
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import apsw

from hardsave.errors import Corrupt, HardsaveError
from hardsave.objects.hashing import Hash
from hardsave.stores.sqlite import packs, schema
from hardsave.stores.sqlite.connection import (
    CHECKSUM_BYTES,
    CHECKSUM_VFS,
    PAGE_BYTES,
    connect,
    in_our_words,
    load_checksums,
)
from hardsave.stores.sqlite.index import USER_SHIFT, bounds

APPLICATION_ID = 0x48534142  # "HSAB": nobody opens it as a store
VERSION = 1

KEYS = {
    "users": "id",
    "timelines": "id",
    "checkpoints": "number",
    "tombstones": "number",
    "log": "number",
    "packs": "id",
}
"""The tables that are copied, each with the integer that its rows go by."""

_NUMBERED = ("checkpoints", "tombstones", "log")
_CHANGED = {
    "packs": ("packs",),
    "checkpoints": ("checkpoints", "tombstones"),
    "timelines": ("timelines",),
    "log": ("log",),
}
_LAST_NUMBER = """
    SELECT max((SELECT coalesce(max(number), 0) FROM {0}.checkpoints),
               (SELECT coalesce(max(number), 0) FROM {0}.log))
"""
_EVENT = """
    SELECT id FROM {0}.checkpoints WHERE number = ?1
    UNION ALL SELECT id FROM {0}.tombstones WHERE number = ?1
    UNION ALL SELECT id FROM {0}.log WHERE number = ?1
"""
_NEW_TIMELINES = """
    SELECT timeline FROM store.checkpoints WHERE number > ?1
    UNION SELECT timeline FROM store.tombstones WHERE number > ?1
    UNION SELECT t.id FROM store.log AS l
          JOIN store.timelines AS t ON t.user = l.user AND t.name = l.timeline
          WHERE l.number > ?1
"""

_STEPS_BETWEEN_LOOKS = 1_000  # of SQLite, between two looks whether to go on

_log = logging.getLogger(__name__)


class Copied(NamedTuple):
    """How far a backup has come: the last commit, and the last row of `changes`."""

    number: int
    change: int


class Outdated(Exception):
    """A backup that cannot be fed any more; it has to be built anew."""


def path_of(store: str) -> str:
    return store + "-backup"


# Looking


def peek(store: str) -> Copied | None:
    """How far the backup of a store has come; None if there is none that can be used."""
    try:
        connection = look(store)
    except Corrupt:
        return None
    if connection is None:
        return None
    try:
        return _copied(connection)
    except apsw.Error:
        return None
    finally:
        connection.close()


def look(store: str) -> apsw.Connection | None:
    """A connection that reads the backup of a store, and leaves its file alone; None: there
    is none."""
    path = path_of(store)
    try:
        if os.path.getsize(path) == 0:
            return None
    except FileNotFoundError:  # perhaps it is being replaced right now
        return None
    load_checksums()
    with in_our_words(path):
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=CHECKSUM_VFS)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            if connection.pragma("application_id") != APPLICATION_ID:
                raise Corrupt(f"{path} is no backup of a store, or its header is damaged")
        except BaseException:
            connection.close()
            raise
    return connection


def rescue(store: str, user: int, wanted: set[Hash]) -> dict[Hash, bytes]:
    """Objects by hash, from whatever packs of the backup can be read. Nothing is checked."""
    found: dict[Hash, bytes] = {}
    connection = look(store)
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
        _log.exception("the backup of %s cannot be read in full", store)
    finally:
        connection.close()
    return found


def faults(store: str) -> list[str]:
    """What is wrong with a backup, by itself and beside its store; empty also if there is none."""
    try:
        connection = look(store)
        if connection is None:
            return []
        with contextlib.closing(connection), in_our_words(path_of(store)):
            lines = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            found = [f"{path_of(store)}: {line}" for line in lines if line != "ok"]
            return found or _differences(connection, store)
    except HardsaveError as error:
        return [str(error)]


def _differences(connection: apsw.Connection, store: str) -> list[str]:
    """Where a backup is not what its store was when it was copied.

    What has changed since is not known yet to the backup: then only the additions are compared.
    """
    connection.execute("ATTACH ? AS store", (store,))
    connection.execute("BEGIN")
    copied = _copied(connection)
    if copied.number > _number(connection, "store"):
        return [f"{path_of(store)} is ahead of {store}: commits are gone. Open it again"]
    if copied.change != _change(connection):
        return []
    lines = []
    for table in _NUMBERED:
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


# Feeding


def open_for_feeding(store: str, must_end: Callable[[], bool]) -> apsw.Connection:
    """A connection to a backup that is there, with its store attached."""
    connection = connect(path_of(store), "power", create=False)
    try:
        with in_our_words(path_of(store)):
            known = connection.pragma("application_id"), connection.pragma("user_version")
            if known != (APPLICATION_ID, _version()):
                raise Outdated(f"it is of another version: {known}")
            _prepare_to_feed(connection, store, must_end)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_to_feed(connection: apsw.Connection, store: str, must_end: Callable[[], bool]) -> None:
    connection.set_progress_handler(must_end, _STEPS_BETWEEN_LOOKS)
    connection.pragma("foreign_keys", 0)  # rows come in the order of tables
    connection.pragma("temp_store", 2)
    connection.execute("ATTACH ? AS store", (store,))
    connection.execute("CREATE TEMP TABLE highest (user INTEGER PRIMARY KEY, pack INTEGER)")


def waiting(connection: apsw.Connection) -> int:
    """How many commits the store is ahead."""
    return _number(connection, "store") - _copied(connection).number


def feed(connection: apsw.Connection) -> Copied:
    """One pass: what is new in the store, as of one moment, in one commit."""
    connection.execute("BEGIN")  # not IMMEDIATE: that would lock the store as well
    try:
        before = _copied(connection)
        now = Copied(_number(connection, "store"), _change(connection))
        _check_is_its_past(connection, before, now)
        _note_highest_packs(connection)
        _copy_changes(connection, before)
        _copy_additions(connection, before)
        if now != before:
            connection.execute("UPDATE marks SET number = ?, change = ?", now)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return now


def _check_is_its_past(connection: apsw.Connection, before: Copied, now: Copied) -> None:
    if now.number < before.number:
        raise Corrupt("the store has lost commits that its backup holds; close it everywhere")
    first = connection.execute("SELECT min(id) FROM store.changes").get
    trimmed = now.change if first is None else int(first) - 1
    if before.change < trimmed or before.change > now.change:
        raise Outdated("it has missed changes")
    ours = _event(connection, "main", before.number)
    theirs = _event(connection, "store", before.number)
    if ours and theirs and ours != theirs:
        raise Outdated("it belongs to another history")


def _note_highest_packs(connection: apsw.Connection) -> None:
    """Before changes are copied, which may lie above packs that were not copied yet."""
    connection.execute("DELETE FROM temp.highest")
    connection.execute(
        "INSERT INTO temp.highest SELECT id, "
        f"coalesce((SELECT max(p.id) FROM main.packs AS p WHERE p.id > u.id << {USER_SHIFT} "
        f"AND p.id < (u.id + 1) << {USER_SHIFT}), u.id << {USER_SHIFT}) FROM store.users AS u"
    )


def _copy_changes(connection: apsw.Connection, before: Copied) -> None:
    sql = "SELECT DISTINCT what, low, high FROM store.changes WHERE id > ?"
    ranges: list[Any] = connection.execute(sql, (before.change,)).fetchall()
    for what, low, high in ranges:
        for table in _CHANGED[what]:
            where = f"{KEYS[table]} BETWEEN ? AND ?"
            connection.execute(f"DELETE FROM main.{table} WHERE {where}", (low, high))
            copy_rows(connection, table, "store", where, (low, high))


def _copy_additions(connection: apsw.Connection, before: Copied) -> None:
    after = (before.number,)
    latest = connection.execute("SELECT max(id) FROM main.users").get
    copy_rows(connection, "users", "store", "id > ?", (latest,))
    for table in _NUMBERED:
        copy_rows(connection, table, "store", "number > ?", after)
    where = f"id IN ({_NEW_TIMELINES})"
    sql = f"DELETE FROM main.timelines WHERE {where}"
    connection.execute(sql, after)
    copy_rows(connection, "timelines", "store", where, after)
    connection.execute(
        "INSERT OR REPLACE INTO main.packs SELECT p.* FROM temp.highest AS h CROSS JOIN "
        f"store.packs AS p WHERE p.id > h.pack AND p.id < (h.user + 1) << {USER_SHIFT}"
    )


def copy_rows(
    connection: apsw.Connection, table: str, source: str, where: str, values: tuple[Any, ...]
) -> None:
    """Copy rows from an attached database, in C. Those that are there are replaced."""
    names = columns(connection, table, source)
    insert(connection, "REPLACE", table, names, source, where, values)


def columns(connection: apsw.Connection, table: str, source: str) -> str:
    """Those that both databases have. `indexed` and `swept` speak of this file's index alone."""
    sql = (
        "SELECT name FROM pragma_table_info(?1, ?2) WHERE name IN "
        "(SELECT name FROM pragma_table_info(?1, 'main'))"
    )
    names: list[Any] = connection.execute(sql, (table, source)).fetchall()
    return ", ".join(name for (name,) in names if name not in ("indexed", "swept"))


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


def _copied(connection: apsw.Connection) -> Copied:
    row = connection.execute("SELECT number, change FROM main.marks").fetchone()
    if row is None:
        raise Corrupt("a backup has lost its marks")
    return Copied(*row)


def _number(connection: apsw.Connection, name: str) -> int:
    return int(connection.execute(_LAST_NUMBER.format(name)).get)


def _event(connection: apsw.Connection, name: str, number: int) -> bytes | None:
    found: Any = connection.execute(_EVENT.format(name), (number,)).get
    return None if found is None else bytes(found)


def _change(connection: apsw.Connection) -> int:
    sql = "SELECT seq FROM store.sqlite_sequence WHERE name = 'changes'"
    return int(connection.execute(sql).get or 0)


# Building


def build(store: str, must_end: Callable[[], bool] = lambda: False) -> None:
    """Make a backup from nothing, beside the old one, and put it in its place."""
    path = path_of(store)
    new = path + "-new"
    connection = create(new)
    try:
        with in_our_words(new):
            _make_tables(connection)
            _prepare_to_feed(connection, store, must_end)
            _copy_all(connection)
            connection.execute("DETACH store")
            connection.pragma("journal_mode", "wal")
    finally:
        connection.close()
    _put_in_place(new, path)


def create(path: str) -> apsw.Connection:
    """A new file with page checksums that nothing relies on until it is synced and renamed."""
    load_checksums()
    for leftover in (path, path + "-wal", path + "-shm", path + "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(leftover)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    with in_our_words(path):
        connection = apsw.Connection(path, flags=flags, vfs=CHECKSUM_VFS)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.reserve_bytes(None, CHECKSUM_BYTES)
        connection.pragma("page_size", PAGE_BYTES)
        connection.pragma("auto_vacuum", 2)
        connection.pragma("journal_mode", "memory")
        connection.pragma("synchronous", 0)
        connection.pragma("temp_store", 2)
    return connection


def _make_tables(connection: apsw.Connection) -> None:
    """The store's own tables as they came to be, without what can be made again."""
    for migration in schema.MIGRATIONS:
        connection.execute(migration)
    sql = "SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    made: list[Any] = connection.execute(sql).fetchall()
    for kind, name in made:
        if kind == "index":
            connection.execute(f"DROP INDEX {name}")
    for kind, name in made:
        if kind == "table" and name not in KEYS:
            connection.execute(f"DROP TABLE {name}")
    connection.execute("CREATE TABLE marks (number INTEGER NOT NULL, change INTEGER NOT NULL)")
    connection.execute("DELETE FROM users")
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", _version())


def _version() -> int:
    """Of the backup's own shape, and of the store's."""
    return VERSION << 16 | schema.VERSION


def _copy_all(connection: apsw.Connection) -> None:
    connection.execute("BEGIN")
    for table in KEYS:
        copy_rows(connection, table, "store", "true", ())
    now = Copied(_number(connection, "store"), _change(connection))
    connection.execute("INSERT INTO marks (number, change) VALUES (?, ?)", now)
    connection.execute("COMMIT")


def _put_in_place(new: str, path: str) -> None:
    """A WAL that lay beside the old file must never meet the new one: it goes first."""
    sync(new)
    if os.path.exists(path):
        os.replace(path, path + "-old")
    for leftover in (path + "-wal", path + "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(leftover)
    sync(os.path.dirname(path))
    os.replace(new, path)
    sync(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + "-old")


def sync(path: str) -> None:
    """Make a file's bytes safe, or a folder's names."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
