"""A new file made of the rows that can still be read, from one or more damaged ones.

The sources are attached to a connection to the new file, and rows are copied by their integer
keys: where a range cannot be read it is halved, down to the single row. Nothing here writes
to a source, and nothing reads the new file before it is finished, synced and renamed. What was
copied is then checked: its objects by `object_check`, its rows by `row_repair`.
"""

# ruff: noqa: S608 # names of tables and of attached databases are our own

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import apsw

from hardsave.objects.records import Id
from hardsave.stores.local.database import is_failing
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.backup.backup_file import (
    CHANGED_TASKS,
    KEYS,
    SCHEMA_BITS,
    columns,
    insert,
)
from hardsave.stores.sqlite.backup.durable_files import ROWS, create, discard, sync
from hardsave.stores.sqlite.read.object_index import bounds
from hardsave.stores.sqlite.salvage.page_scan import gather
from hardsave.stores.sqlite.salvage.structure_check import structure_faults
from hardsave.tuples import NamedTuple

Range = tuple[int, int]
_ROWS_OF = {"store": "rows", "backup": "backup_rows"}
_BESIDE = ("labels", "notes", "workspaces")
_EVENTS = ("checkpoints", "log", "ledger")  # whose rows are the events of commits
_NEWER = {
    "tombstones",
    "tasks",
    "ledger",
    *_BESIDE,
}  # a file of an older version does not have them
_SLACK = 4096  # keys looked for past the highest that is known
_CHANGES_GAP = 1_000_000  # after it, no backup of the old file can be taken for one of the new


class Entry(NamedTuple):
    """What is written to the log of the new file."""

    number: int
    id: Id
    kind: str
    created_at: int
    data: bytes


class Rebuild:
    """The new file at `path`, while it is being made."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection = create(path)
        self._attached: set[str] = set()
        self._gathered: set[str] = set()  # sources of which nobody knows what they lack
        self._lacking: dict[str, set[str]] = {}  # tables, by source
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # of a source
        schema.migrate(self.connection)
        schema.add_indexes(self.connection)
        self.connection.execute(schema.OF_WORKSPACES)
        self.connection.execute("DELETE FROM users")

    def abandon(self) -> None:
        self.connection.close()
        os.unlink(self.path)
        self._discard_rows()

    # Sources

    def attach(
        self, name: str, path: str, *, is_checked: bool = True, must_answer: bool = False
    ) -> bool:
        """Make a file a source; False if nothing at all can be read from it. `must_answer`: if the
        disk fails under it, that is an error. One from a newer Hardsave is `Misuse`."""
        if name in self._attached:
            return True
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            return False
        vfs = "" if is_checked else f"?vfs={apsw.vfs_names()[0]}"
        try:
            self.connection.execute("ATTACH ? AS " + name, (f"file:{quote(path)}{vfs}",))
            tables = self.connection.execute(f"SELECT name FROM {name}.sqlite_schema").fetchall()
            if is_checked:
                version = int(self._one(f"PRAGMA {name}.user_version"))
                schema.check_is_known(path, version & SCHEMA_BITS)
            lacking = set(KEYS) - {row[0] for row in tables}
            if lacking <= _NEWER:
                self._lacking[name] = lacking
                self._attached.add(name)
                return True
        except apsw.Error as error:
            if must_answer and is_failing(error):
                raise
        with contextlib.suppress(apsw.Error):
            self.connection.execute("DETACH " + name)
        return False

    def attach_file(self, name: str, path: str) -> bool:
        """Make a store or a backup a source; if it cannot be opened, what can be read in it."""
        return self.attach(name, path) or self._attach_rows(name, path)

    def attach_rows(self, name: str, path: str) -> str | None:
        """What lies on sound pages of a source, however one gets to them, as another source; its
        name, or None: there is nothing, or it is that itself."""
        if name not in self._attached or name in self._gathered:
            return None
        rows = _ROWS_OF[name]
        return rows if self._attach_rows(rows, path) else None

    def _attach_rows(self, name: str, path: str) -> bool:
        target = self.path + ROWS[name]
        if not gather(path, target):
            return False
        self._gathered.add(name)
        return self.attach(name, target)

    def is_gathered(self, name: str) -> bool:
        """Whether a source is what single pages had: then nobody knows what it lacks."""
        return name in self._gathered

    def is_sound(self, name: str) -> bool:
        """Whether every page of a source can be read, and they agree with each other."""
        if name in self._gathered:
            return False
        try:
            return bool(self._one(f"PRAGMA {name}.integrity_check(1)") == "ok")
        except apsw.Error:
            return False

    def structure_faults(self, name: str) -> list[str]:
        """Whether the rows of a source agree with each other."""
        return structure_faults(self.connection, name)

    def last_number(self, name: str, top: int) -> int:
        """The last commit that can be read in a source; `top` is the highest ever heard of."""
        found = [self._highest(name, table, 0, 1 << 62) for table in _EVENTS]
        if None not in found:
            return max(number for number in found if number is not None)
        for number in range(top + _SLACK, 0, -1):
            for table in _EVENTS:
                if self._highest(name, table, number, number):
                    return number
        return 0

    def highest_change(self, name: str) -> int:
        """The last row of `changes` that a source ever had, as far as it can say."""
        found = 0
        for sql in (
            f"SELECT seq FROM {name}.sqlite_sequence WHERE name = 'changes'",
            f"SELECT change FROM {name}.marks",
        ):
            try:
                found = max(found, int(self._one(sql) or 0))
            except apsw.Error:
                continue  # it has no such table, or it cannot be read
        return found

    def event(self, name: str, number: int) -> Id | None:
        """The id of a commit's event."""
        for table in ("checkpoints", "tombstones", "log", "ledger"):
            try:
                found: Id | None = self._one(
                    f"SELECT id FROM {name}.{table} WHERE number = ?", (number,)
                )
            except apsw.Error:
                continue
            if found is not None:
                return found
        return None

    # Copying

    def copy_all(self, name: str, top: int) -> dict[str, list[Range]]:
        """Every row of a source that can be read, and the ranges of keys that cannot."""
        return {table: self.copy_table(name, table, top) for table in KEYS}

    def add_all(self, name: str, top: int) -> None:
        """Every row of another source that is not there, and was not dropped."""
        self.copy_all(name, top)
        self._keep_the_latest()

    def copy_table(self, name: str, table: str, top: int, only: str = "true") -> list[Range]:
        """One table of a source, as far as it can be read. Rows that are there already stay."""
        spans = self._spans(name, table, top)
        return [lost for span in spans for lost in self.copy(name, table, span, only=only)]

    def copy_ranges(self, name: str, wanted: Mapping[str, list[Range]]) -> None:
        """What another source could not give."""
        for table, ranges in wanted.items():
            for span in ranges:
                self.copy(name, table, span)

    def copy_hidden(self, name: str, unread: Mapping[str, list[Range]], top: int) -> None:
        """What of its tables could not be read in full by the way that leads there."""
        for table in [table for table, ranges in unread.items() if ranges]:
            self.copy_table(name, table, top)

    def copy_newer(self, name: str, after: int, top: int) -> dict[str, list[Range]]:
        """Commits of a source after number `after`, and all packs above the highest of each
        user, and what these commits did to earlier rows; the ranges that cannot be read. Timelines
        that moved on are mended later, from their checkpoints."""
        unread = {
            table: self.copy(name, table, (after + 1, top + _SLACK))
            for table in ("checkpoints", "tombstones", "log", "ledger")
        }
        self._copy_changed_tasks(name, after)
        self._copy_operations(name, after, top)
        for table in ("users", "timelines", "tasks", *_BESIDE):
            unread[table] = self.copy_table(name, table, top)
        if name != "raw":
            self.copy(name, "workspaces", (0, top + _SLACK), "REPLACE", _IS_LATER.format(name))
        unread["packs"] = []
        for user in self._users():
            low, high = bounds(user)
            known = self._one(HIGHEST_PACK, (low, high)) or low
            for span in list(self.pack_spans(name, user, top)):
                unread["packs"] += self.copy(name, "packs", (max(known + 1, span[0]), span[1]))
        return unread

    def _copy_operations(self, name: str, after: int, top: int) -> None:
        """What operations after `after` hid, showed, dropped and moved: their log entries are
        there, and have to be true. Pages that nothing vouches for do not decide about this."""
        if name == "raw" or not self._one(_HAS_NEWER_LOG, (after,)):
            return
        for table, where in _OPERATED.items():
            highest = after if table != "timelines" else self._one(_HIGHEST_TIMELINE) or 0
            self.copy(name, table, (0, highest), "REPLACE", where.format(name, after))
        for table in _RETURNED:
            where = _IS_EARLIER.format(name, table, after)
            self.copy(name, table, (after + 1, top + _SLACK), "REPLACE", where)
        self._keep_the_latest()

    def _keep_the_latest(self) -> None:
        """Of a checkpoint that was dropped and perhaps imported again: as it was last."""
        self.connection.execute(_DROP_BURIED)
        self.connection.execute(_RAISE_RETURNED)

    def _copy_changed_tasks(self, name: str, after: int) -> None:
        """Rows of tasks that something happened to since, or to what they wait for: they replace
        what is there."""
        if "tasks" in self._lacking.get(name, ()):
            return
        names = columns(self.connection, "tasks", name)
        where = f"id IN ({CHANGED_TASKS.format(name)}) OR {_LET_GO.format(name)}"
        try:
            self.connection.execute(_FORGET_REPLACED.format(name), (after,))
            insert(self.connection, "REPLACE", "tasks", names, name, where, (after,))
        except apsw.Error as error:
            _raise_if_ours(error)

    def copy(
        self, name: str, table: str, span: Range, conflict: str = "IGNORE", only: str = "true"
    ) -> list[Range]:
        """Rows with keys in a range; the ranges that cannot be read, as small as can be.

        Each statement is a transaction of its own: a page that cannot be read takes the whole
        transaction back that has met it.
        """
        unread: list[Range] = []
        left = [] if table in self._lacking.get(name, ()) else [span]
        where = f"{KEYS[table]} BETWEEN ? AND ? AND {only}"
        names = columns(self.connection, table, name)
        while left:
            low, high = left.pop()
            if low > high:
                continue
            try:
                insert(self.connection, conflict, table, names, name, where, (low, high))
            except apsw.Error as error:
                _raise_if_ours(error)
                if low == high:
                    _add(unread, low)
                else:
                    middle = (low + high) // 2
                    left += [(middle + 1, high), (low, middle)]
        return unread

    def _spans(self, name: str, table: str, top: int) -> Iterator[Range]:
        if table == "packs":
            for user in self._users():
                yield from self.pack_spans(name, user, top)
            return
        known = self._highest(name, table, 0, 1 << 62)
        yield 0, (top + _SLACK if known is None else known)

    def pack_spans(self, name: str, user: int, top: int) -> Iterator[Range]:
        """Where the packs of a user lie in a source."""
        low, high = bounds(user)
        highest = self._highest(name, "packs", low, high - 1)
        if highest is None:  # it cannot be asked: as many as there may be
            known = self._one(HIGHEST_PACK, (low, high)) or low
            highest = min(known + top + _SLACK, high - 1)
        yield low + 1, highest

    def _highest(self, name: str, table: str, low: int, high: int) -> int | None:
        if table in self._lacking.get(name, ()):
            return 0
        key = KEYS[table]
        try:
            sql = f"SELECT max({key}) FROM {name}.{table} WHERE {key} BETWEEN ? AND ?"
            return int(self._one(sql, (low, high)) or 0)
        except apsw.Error:
            return None

    def _users(self) -> list[int]:
        return [row[0] for row in self.connection.execute("SELECT id FROM main.users")]

    # Checking

    def numbers(self, after: int, upto: int) -> set[int]:
        """The commits that are there."""
        sql = (
            "SELECT number FROM main.checkpoints WHERE number BETWEEN ?1 AND ?2 UNION "
            "SELECT number FROM main.log WHERE number BETWEEN ?1 AND ?2 UNION "
            "SELECT number FROM main.ledger WHERE number BETWEEN ?1 AND ?2 UNION "
            "SELECT number FROM main.tombstones WHERE number BETWEEN ?1 AND ?2"
        )
        return {row[0] for row in self.connection.execute(sql, (after + 1, upto))}

    def missing(self, after: int, upto: int) -> list[int]:
        """The commits that are not."""
        return sorted(set(range(after + 1, upto + 1)) - self.numbers(after, upto))

    def gone(self, unread: dict[str, list[Range]], upto: int) -> list[int]:
        """Commits on pages that could not be read, and that no other source had."""
        ranges = [span for table in _EVENTS for span in unread[table]]
        numbers = {n for low, high in ranges for n in range(max(low, 1), min(high, upto) + 1)}
        return sorted(numbers - self.numbers(0, upto)) if numbers else []

    def counts(self) -> tuple[int, int]:
        """How many checkpoints and how many entries of log and ledger there are."""
        return (
            int(self._one("SELECT count(*) FROM main.checkpoints")),
            int(self._one("SELECT count(*) FROM main.log"))
            + int(self._one("SELECT count(*) FROM main.ledger")),
        )

    # Finishing

    def finish(self, event: Entry, change: int, name: str) -> None:
        """Add what happened to the log, and give the file a name when all of it is safe."""
        connection = self.connection
        schema.adopt_workspaces(connection)
        connection.execute(
            "INSERT INTO main.log (number, user, id, timeline, kind, created_at, data) "
            "VALUES (?, 0, ?, NULL, ?, ?, ?)",
            event,
        )
        connection.execute("DELETE FROM main.sqlite_sequence WHERE name = 'changes'")
        sql = "INSERT INTO main.sqlite_sequence (name, seq) VALUES ('changes', ?)"
        connection.execute(sql, (change + _CHANGES_GAP,))
        for source in [row[1] for row in connection.execute("PRAGMA database_list")][::-1]:
            if source not in ("main", "temp"):
                connection.execute(f"DETACH {source}")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.pragma("journal_mode", "wal")
        connection.close()
        self._discard_rows()
        sync(self.path)
        os.replace(self.path, name)
        sync(os.path.dirname(name))

    def _discard_rows(self) -> None:
        for rows in ROWS.values():
            discard(self.path + rows)

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        return self.connection.execute(sql, values).get


_LET_GO = """
    EXISTS (SELECT 1 FROM {0}.ledger WHERE number > ?1)
    AND EXISTS (SELECT 1 FROM main.tasks AS t WHERE t.id = {0}.tasks.id
                AND (t.state, t.epoch) = ({0}.tasks.state, {0}.tasks.epoch)
                AND t.waits_for IS NOT {0}.tasks.waits_for)
"""
# Whose row is another task's by now: it was forgotten, and its id or its name is in use again.
_FORGET_REPLACED = f"""
    DELETE FROM main.ledger WHERE number <= ?1 AND task IN (
        SELECT t.id FROM {{0}}.tasks AS s JOIN main.tasks AS t
            ON t.id = s.id OR (t.user, t.name) = (s.user, s.name)
               OR (t.user, t.key) = (s.user, s.key)
        WHERE s.id IN ({CHANGED_TASKS})
            AND (t.user, t.name, t.created_at) != (s.user, s.name, s.created_at))
"""
_HAS_NEWER_LOG = "SELECT count(*) FROM main.log WHERE number > ?"
_HIGHEST_TIMELINE = "SELECT max(id) FROM main.timelines"
_OPERATED = {
    "tombstones": (
        "EXISTS (SELECT 1 FROM main.checkpoints AS c "
        "WHERE (c.number, c.id) = ({0}.tombstones.number, {0}.tombstones.id))"
    ),
    "checkpoints": (
        "hidden != 0 AND EXISTS (SELECT 1 FROM main.checkpoints AS c "
        "WHERE (c.number, c.id) = ({0}.checkpoints.number, {0}.checkpoints.id) "
        "AND c.hidden != {0}.checkpoints.hidden)"
    ),
    # Of two rows the one with the lower number is older; none of them ever falls.
    "timelines": (
        "user IN (SELECT user FROM main.log WHERE number > {1}) "
        "AND EXISTS (SELECT 1 FROM main.timelines AS t "
        "WHERE (t.id, t.name) = ({0}.timelines.id, {0}.timelines.name) "
        "AND t.last_seq <= {0}.timelines.last_seq)"
    ),
}
# Taken over or moved since: its epoch has risen.
_IS_LATER = (
    "EXISTS (SELECT 1 FROM main.workspaces AS w WHERE (w.user, w.id) = "
    "({0}.workspaces.user, {0}.workspaces.id) AND w.epoch < {0}.workspaces.epoch)"
)
_RETURNED = ("checkpoints", "tombstones")  # an import gives what was dropped another number
_IS_EARLIER = (
    "EXISTS (SELECT 1 FROM main.{1} AS c "
    "WHERE (c.user, c.id) = ({0}.{1}.user, {0}.{1}.id) AND c.number <= {2})"
)
_DROP_BURIED = """
    DELETE FROM main.checkpoints AS c WHERE EXISTS (SELECT 1 FROM main.tombstones AS t
        WHERE (t.user, t.id) = (c.user, c.id) AND t.number >= c.number)
"""
_RAISE_RETURNED = """
    DELETE FROM main.tombstones AS t WHERE EXISTS (SELECT 1 FROM main.checkpoints AS c
        WHERE (c.user, c.id) = (t.user, t.id) AND c.number > t.number)
"""
HIGHEST_PACK = "SELECT max(id) FROM main.packs WHERE id > ? AND id < ?"


def _add(ranges: list[Range], key: int) -> None:
    """Keys come in order: neighbours make one range."""
    if ranges and ranges[-1][1] == key - 1:
        ranges[-1] = (ranges[-1][0], key)
    else:
        ranges.append((key, key))


def _raise_if_ours(error: apsw.Error) -> None:
    """What fails on the side of the new file is no damage of a source."""
    code = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.FullError | apsw.NoMemError) or code == apsw.SQLITE_IOERR_WRITE:
        raise error
