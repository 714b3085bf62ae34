"""Feeding the backup by rows, and building it from nothing.

One pass takes what is new from *one* read transaction of the store, and makes it one commit of
the backup: so the backup is always the store as it was at some moment, never a mixture of two.

What was only added is found by number; what was changed or removed is noted in the store's
table `changes`. Rows of `changes` that were copied are trimmed. A backup that has missed such
rows, is damaged, or belongs to another history, is built anew.
"""

# ruff: noqa: S608 # names of tables and of attached databases are our own

import contextlib
import os
import re
from collections.abc import Callable
from typing import Any

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.stores.local.database import in_our_words
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.backup import backup_file, durable_files
from hardsave.stores.sqlite.backup.backup_file import (
    CHANGED_TASKS,
    KEYS,
    NUMBERED,
    Copied,
    copy_rows,
    path_of,
)
from hardsave.stores.sqlite.connection import connect
from hardsave.stores.sqlite.read.object_index import USER_SHIFT

OLD = "-old"  # what a new backup takes the place of, until that is done
TRIM_PAGES = 65_536  # cut off at once
ENOUGH_FREE = 1024  # pages, before they are worth the work

CHANGED = {
    "packs": ("packs",),
    "checkpoints": ("checkpoints", "tombstones"),
    "timelines": ("timelines",),
    "log": ("log",),
    "tasks": ("tasks",),
    "ledger": ("ledger",),
    "users": ("users",),
    "labels": ("labels",),
    "notes": ("notes",),
    "workspaces": ("workspaces",),
}
"""Which tables a row of `changes` speaks of, by its first word."""

# NOT INDEXED: by number. SQLite would rather walk through an index that has all timelines in order.
_NEW_TIMELINES = """
    SELECT timeline FROM store.checkpoints NOT INDEXED WHERE number > ?1
    UNION SELECT timeline FROM store.tombstones NOT INDEXED WHERE number > ?1
    UNION SELECT t.id FROM store.log AS l NOT INDEXED
          JOIN store.timelines AS t ON t.user = l.user AND t.name = l.timeline
          WHERE l.number > ?1
"""

_STEPS_BETWEEN_LOOKS = 1_000  # of SQLite, between two looks whether to go on


class Outdated(Exception):
    """A backup that cannot be fed any more; it has to be built anew."""


def open_for_feeding(
    store: str, must_end: Callable[[], bool], is_ours: Callable[[], bool]
) -> apsw.Connection:
    """A connection to a backup that is there, with its store attached."""
    connection = connect(path_of(store), "power", create=False)
    try:
        with in_our_words(path_of(store)):
            if not backup_file.is_current(connection):
                raise Outdated("it is of another version")
            _prepare_to_feed(connection, store, must_end, is_ours)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_to_feed(
    connection: apsw.Connection,
    store: str,
    must_end: Callable[[], bool],
    is_ours: Callable[[], bool],
) -> None:
    connection.set_progress_handler(must_end, _STEPS_BETWEEN_LOOKS)
    connection.pragma("foreign_keys", 0)  # rows come in the order of tables
    connection.pragma("temp_store", 2)
    _attach(connection, store, is_ours)
    connection.execute("CREATE TEMP TABLE highest (user INTEGER PRIMARY KEY, pack INTEGER)")


def _attach(connection: apsw.Connection, store: str, is_ours: Callable[[], bool]) -> None:
    """Another file that was put there meanwhile is neither copied nor meets the WAL of ours, which
    closing would move into it."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.execute("ATTACH ? AS store", (store,))
    if not is_ours():
        raise Unavailable(f"{store} was removed or replaced while it was open")
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def waiting(connection: apsw.Connection) -> int:
    """How many commits the store is ahead. `Outdated`: they cannot be added to the backup."""
    before, now = backup_file.copied(connection), backup_file.standing(connection)
    if now.number >= before.number:  # otherwise the copier says what that means
        _check_is_its_past(connection, before, now)
    return now.number - before.number


def feed(connection: apsw.Connection) -> Copied:
    """One pass: what is new in the store, as of one moment, in one commit."""
    connection.execute("BEGIN")  # not IMMEDIATE: that would lock the store as well
    try:
        before = backup_file.copied(connection)
        now = backup_file.standing(connection)
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


def is_mostly_free(connection: apsw.Connection) -> bool:
    """Whether building a backup anew takes less space than it frees."""
    free = int(connection.execute("PRAGMA main.freelist_count").get)
    return free > ENOUGH_FREE and 2 * free > int(connection.execute("PRAGMA main.page_count").get)


def trim(connection: apsw.Connection) -> bool:
    """Cut what is free off the backup, and empty its WAL; False if that would take long."""
    if int(connection.execute("PRAGMA main.freelist_count").get) > TRIM_PAGES:
        return False
    connection.execute("PRAGMA main.incremental_vacuum").fetchall()
    connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchall()
    return True


def _check_is_its_past(connection: apsw.Connection, before: Copied, now: Copied) -> None:
    if now.number < before.number:
        raise Corrupt("the store has lost commits that its backup holds; close it everywhere")
    first = connection.execute("SELECT min(id) FROM store.changes").get
    trimmed = now.change if first is None else int(first) - 1
    if before.change < trimmed or before.change > now.change:
        raise Outdated("it has missed changes")
    ours = backup_file.event_id(connection, "main", before.number)
    theirs = backup_file.event_id(connection, "store", before.number)
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
        for table in CHANGED[what]:
            where = f"{KEYS[table]} BETWEEN ? AND ?"
            connection.execute(f"DELETE FROM main.{table} WHERE {where}", (low, high))
            copy_rows(connection, table, "store", where, (low, high))


def _copy_additions(connection: apsw.Connection, before: Copied) -> None:
    after = (before.number,)
    latest = connection.execute("SELECT max(id) FROM main.users").get
    copy_rows(connection, "users", "store", "id > ?", (latest,))
    for table in NUMBERED:
        copy_rows(connection, table, "store", "number > ?", after)
    copy_rows(connection, "labels", "store", f"id >= (?1 + 1) << {schema.LABEL_BITS}", after)
    where = f"id IN ({_NEW_TIMELINES})"
    sql = f"DELETE FROM main.timelines WHERE {where}"
    connection.execute(sql, after)
    copy_rows(connection, "timelines", "store", where, after)
    where = f"id IN ({CHANGED_TASKS.format('store')})"
    copy_rows(connection, "tasks", "store", where, after)
    connection.execute(
        "INSERT OR REPLACE INTO main.packs SELECT p.* FROM temp.highest AS h CROSS JOIN "
        f"store.packs AS p WHERE p.id > h.pack AND p.id < (h.user + 1) << {USER_SHIFT}"
    )


# Building


def build(store: str, must_end: Callable[[], bool], is_ours: Callable[[], bool]) -> None:
    """Make a backup from nothing, beside the old one, and put it in its place."""
    path = path_of(store)
    new = path + durable_files.BACKUP
    connection = durable_files.create(new)
    try:
        with in_our_words(new):
            make_tables(connection)
            _prepare_to_feed(connection, store, must_end, is_ours)
            _copy_all(connection)
            connection.execute("DETACH store")
            connection.pragma("journal_mode", "wal")
    except BaseException:
        connection.close()
        durable_files.discard(new)
        raise
    connection.close()
    _put_in_place(new, path)


def make_tables(connection: apsw.Connection) -> None:
    """The store's own tables as they came to be, without what can be made again.

    Without comments too, and put together: what they are lies in one page then, and no other
    page takes all of them along when it is damaged.
    """
    connection.execute("CREATE TABLE marks (number INTEGER NOT NULL, change INTEGER NOT NULL)")
    for migration in schema.MIGRATIONS:
        connection.execute(re.sub(r"\s*--[^\n]*|\s+", " ", migration))
    sql = "SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    made: list[Any] = connection.execute(sql).fetchall()
    for kind, name in made:
        if kind in ("index", "trigger"):
            connection.execute(f"DROP {kind} {name}")
    for kind, name in made:
        if kind == "table" and name not in KEYS and name != "marks":
            connection.execute(f"DROP TABLE {name}")
    connection.execute("DELETE FROM users")
    connection.execute("VACUUM")
    connection.pragma("application_id", backup_file.APPLICATION_ID)
    connection.pragma("user_version", backup_file.VERSION)


def _copy_all(connection: apsw.Connection) -> None:
    connection.execute("BEGIN")
    for table in KEYS:
        copy_rows(connection, table, "store", "true", ())
    now = backup_file.standing(connection)
    connection.execute("INSERT INTO marks (number, change) VALUES (?, ?)", now)
    connection.execute("COMMIT")


def _put_in_place(new: str, path: str) -> None:
    """A WAL that lay beside the old file must never meet the new one: it goes first."""
    durable_files.sync(new)
    if os.path.exists(path):
        os.replace(path, path + OLD)
    for leftover in (path + "-wal", path + "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(leftover)
    durable_files.sync(os.path.dirname(path))
    os.replace(new, path)
    durable_files.sync(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + OLD)
