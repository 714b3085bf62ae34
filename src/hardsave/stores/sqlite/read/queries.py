"""What is read with one statement: checkpoints, timelines, the log, tasks."""

import sys
from collections.abc import Collection, Iterator
from typing import Any

from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    Id,
    Labels,
    LogRecord,
    Note,
    OwnerRecord,
    TaskRecord,
    TimelineRecord,
    Tombstone,
    WorkspaceRecord,
)
from hardsave.stores.base import FILES_WITHIN, Query, TimelineQuery, TimelineRow
from hardsave.stores.ledger import TaskQuery
from hardsave.stores.sqlite import attached, ledger, workspaces
from hardsave.stores.sqlite.schema import LAST_NUMBER

_CHECKPOINT = """
    SELECT c.number, c.id, t.name, c.seq, c.parent, c.created_at,
           c.name, c.kind, c.status, c.description, c.metadata, c.root,
           c.snapshot, c.workspace, c.task, c.generation, c.attempt, c.summary, c.hidden
    FROM checkpoints AS c JOIN timelines AS t ON t.id = c.timeline
"""
# For a single row a subquery takes a third of the time of a join.
_ONE_CHECKPOINT = """
    SELECT number, id, (SELECT name FROM timelines WHERE id = timeline), seq, parent, created_at,
           name, kind, status, description, metadata, root, snapshot, workspace,
           task, generation, attempt, summary, hidden
    FROM checkpoints WHERE user = ? AND id = ?
"""
_TIMELINE = "SELECT name, head, last_seq, created_at, origin, deleted, title FROM timelines"
_TOMBSTONE = """
    SELECT s.id, t.name, s.seq, s.parent
    FROM tombstones AS s JOIN timelines AS t ON t.id = s.timeline
"""
_COLUMNS = (
    "{0}.number, {0}.id, (SELECT name FROM timelines WHERE id = {0}.timeline), {0}.seq, "
    "{0}.parent, {0}.created_at, {0}.name, {0}.kind, {0}.status, {0}.description, {0}.metadata, "
    "{0}.root, {0}.snapshot, {0}.workspace, {0}.task, {0}.generation, {0}.attempt, {0}.summary, "
    "{0}.hidden"
)
# Sorted without an index: one by time would cost every save a page. What is asked of a timeline's
# own row is asked first, and if that is all, only the rows of one page are joined. Ids are sorted
# and not rows: to carry titles along takes five times as long.
_LINES = """
    SELECT t.id FROM timelines AS t
    WHERE t.user = ?1 AND (?2 OR NOT t.deleted)
      AND (?3 = '' OR substr(t.name, 1, length(?3)) = ?3)
      AND (?4 = '' OR instr(lower(t.name), lower(?4)) OR instr(lower(t.title), lower(?4)))
      AND (?5 IS NULL OR t.updated_at < ?5 OR (t.updated_at = ?5 AND t.name > ?6))
"""
_IN_ORDER = "ORDER BY t.updated_at DESC, t.name LIMIT ?7"
_JOINED = f"""
    SELECT t.name, t.head, t.last_seq, t.created_at, t.origin, t.deleted, t.title,
           t.updated_at, t.saved, {_COLUMNS.format("n")}, {_COLUMNS.format("h")}
    FROM ({{}}) AS line CROSS JOIN timelines AS t ON t.id = line.id
    LEFT JOIN checkpoints AS n ON n.number = (
        SELECT number FROM checkpoints WHERE timeline = t.id AND hidden <= 0
        ORDER BY seq DESC LIMIT 1)
    LEFT JOIN checkpoints AS h ON h.user = t.user AND h.id = t.head
"""  # noqa: S608 # put together from constants only
_RECENT = f"{_JOINED.format(f'{_LINES} {_IN_ORDER}')} {_IN_ORDER}"
_RECENT_BY_CHECKPOINT = f"""
    {_JOINED.format(_LINES)}
    WHERE (?8 IS NULL OR EXISTS (SELECT 1 FROM checkpoints WHERE user = ?1 AND workspace = ?8))
      AND (?8 IS NULL OR ?8 = coalesce(n.workspace, (
        SELECT workspace FROM (
            SELECT workspace FROM checkpoints WHERE timeline = t.id AND hidden <= 0
            ORDER BY seq DESC LIMIT ?9) WHERE workspace IS NOT NULL LIMIT 1), h.workspace))
      AND (?10 IS NULL OR n.status = ?10)
    {_IN_ORDER}
"""  # noqa: S608 # put together from constants only
# A child is the successor of its parent on the same timeline, or it has a row in the index of
# branches: a save pays for no other index by parent.
_CHILDREN = f"""
    {_CHECKPOINT} WHERE c.hidden <= 0 AND c.number IN (
        SELECT number FROM checkpoints WHERE user = ?1 AND parent = ?2 AND branch IS NOT NULL
        UNION
        SELECT s.number FROM (
            SELECT timeline, seq FROM checkpoints WHERE user = ?1 AND id = ?2
            UNION ALL SELECT timeline, seq FROM tombstones WHERE user = ?1 AND id = ?2) AS p
        JOIN checkpoints AS s ON s.timeline = p.timeline AND s.seq = p.seq + 1
        WHERE s.parent = ?2)
    ORDER BY c.number
"""  # noqa: S608 # put together from constants only
_BRANCHES = f"""
    SELECT {_COLUMNS.format("c")} FROM checkpoints AS p
    CROSS JOIN checkpoints AS c INDEXED BY checkpoints_branching
        ON c.user = p.user AND c.parent = p.id AND c.branch IS NOT NULL
    WHERE p.timeline = (SELECT id FROM timelines WHERE user = ?1 AND name = ?2)
      AND p.seq BETWEEN ?3 AND ?4 AND c.hidden <= 0
      AND NOT (c.timeline = p.timeline AND c.seq = p.seq + 1)
    ORDER BY c.number
"""  # noqa: S608 # put together from constants only
_ANCESTORS = f"""
    WITH RECURSIVE up (number, parent, steps) AS (
        SELECT number, parent, 0 FROM checkpoints WHERE user = ?1 AND id = ?2
        UNION ALL
        SELECT a.number, a.parent, up.steps + 1
        FROM up CROSS JOIN checkpoints AS a ON a.user = ?1 AND a.id = up.parent
        LIMIT ?3
    )
    SELECT {_COLUMNS.format("c")} FROM up CROSS JOIN checkpoints AS c ON c.number = up.number
    ORDER BY up.steps
"""  # noqa: S608 # put together from constants only
_LOG = "SELECT number, id, timeline, kind, created_at, data FROM log"
_TASK = f"SELECT {ledger.READ} FROM tasks"  # noqa: S608 # put together from constants only
_OWNER = "SELECT id, session, host, boot, space, pid, pid_started, since, until, clock FROM owners"


class Queries:
    """A part of the contract of `stores.base`. A store that inherits it says where rows are."""

    def _rows(self, sql: str, user: str | None, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement whose first value is the user's number."""
        raise NotImplementedError

    def _row(self, sql: str, user: str | None, *values: Any) -> tuple[Any, ...] | None:
        rows = self._rows(sql, user, *values)
        return rows[0] if rows else None

    def timeline(self, user: str | None, name: str) -> TimelineRecord | None:
        row = self._row(f"{_TIMELINE} WHERE user = ? AND name = ?", user, name)
        return None if row is None else _timeline(row)

    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        conditions, values = ["user = ?"], list[Any]()
        bounds = (("name > ?", after), ("name >= ?", prefix or None), ("name < ?", _past(prefix)))
        for condition, value in bounds:  # none is asked that is not needed: so the index serves all
            if value is not None:
                conditions.append(condition)
                values.append(value)
        if not deleted:
            conditions.append("NOT deleted")
        sql = f"{_TIMELINE} WHERE {' AND '.join(conditions)} ORDER BY name LIMIT ?"
        return [_timeline(row) for row in self._rows(sql, user, *values, limit)]

    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        updated, name = query.after or (None, None)
        values: tuple[Any, ...] = (query.deleted, query.prefix, query.text, updated, name)
        values += (query.limit,)
        sql = _RECENT
        if (query.workspace, query.status) != (None, None):
            sql = _RECENT_BY_CHECKPOINT
            values += (query.workspace, FILES_WITHIN, query.status)
        return [_timeline_row(row) for row in self._rows(sql, user, *values)]

    def checkpoint(self, user: str | None, id: Id) -> CheckpointRecord | None:
        row = self._row(_ONE_CHECKPOINT, user, id)
        if row is None or row[2] is None:  # one whose timeline is gone is gone too
            return None
        return CheckpointRecord._make(row)

    def checkpoints_between(
        self, user: str | None, low: Id, high: Id, limit: int
    ) -> list[CheckpointRecord]:
        sql = (
            f"{_CHECKPOINT} WHERE c.user = ? AND c.id BETWEEN ? AND ? AND c.hidden <= 0 "
            "ORDER BY c.id LIMIT ?"
        )
        return [CheckpointRecord(*row) for row in self._rows(sql, user, low, high, limit)]

    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        conditions = ["t.user = ? AND t.name = ?"]
        if not query.hidden:
            conditions.append("c.hidden <= 0")
        values: list[Any] = [query.timeline]
        for column, value in (
            ("c.seq < ?", query.before_seq),
            ("c.seq = ?", query.seq),
            ("c.name = ?", query.name),
            ("c.kind = ?", query.kind),
            ("c.status = ?", query.status),
            ("c.created_at >= ?", query.since),
            ("c.created_at <= ?", query.until),
        ):
            if value is not None:
                conditions.append(column)
                values.append(value)
        also, texts = attached.having(query.labels)
        values += texts
        sql = f"{_CHECKPOINT} WHERE {' AND '.join(conditions)}{also} ORDER BY c.seq DESC LIMIT ?"
        make = CheckpointRecord._make
        return [make(row) for row in self._rows(sql, user, *values, query.limit)]

    def labelled(
        self, user: str | None, labels: Labels, before: int | None, limit: int
    ) -> list[CheckpointRecord]:
        first, others = labels[0], labels[1:]
        also, texts = attached.having(others)
        sql = attached.LABELLED.format(columns=_COLUMNS.format("c"), others=also)
        rows = self._rows(sql, user, *first, before, before, *texts, limit)
        return [CheckpointRecord._make(row) for row in rows]

    def labels(self, user: str | None, ids: Collection[Id]) -> dict[Id, Labels]:
        found: dict[Id, list[tuple[str, str]]] = {}
        for some in _pieces(ids):
            for id, key, value in self._rows(attached.labels_of(len(some)), user, *some):
                found.setdefault(id, []).append((key, value))
        return {id: tuple(labels) for id, labels in found.items()}

    def notes(self, user: str | None, ids: Collection[Id]) -> dict[Id, list[Note]]:
        found: dict[Id, list[Note]] = {}
        for some in _pieces(ids):
            for id, key, data in self._rows(attached.notes_of(len(some)), user, *some):
                found.setdefault(id, []).append(Note(key, data))
        return found

    def count(self, user: str | None, timeline: str) -> int:
        row = self._row("SELECT saved FROM timelines WHERE user = ? AND name = ?", user, timeline)
        return 0 if row is None else int(row[0])

    def children(self, user: str | None, parent: Id) -> list[CheckpointRecord]:
        return [CheckpointRecord._make(row) for row in self._rows(_CHILDREN, user, parent)]

    def branches(
        self, user: str | None, timeline: str, first: int, last: int
    ) -> list[CheckpointRecord]:
        rows = self._rows(_BRANCHES, user, timeline, first, last)
        return [CheckpointRecord._make(row) for row in rows]

    def ancestors(self, user: str | None, id: Id, limit: int) -> list[CheckpointRecord]:
        return [CheckpointRecord._make(row) for row in self._rows(_ANCESTORS, user, id, limit)]

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        # The `+` keeps SQLite from the index by user, of which it would sort every row.
        sql = f"{_CHECKPOINT} WHERE +c.user = ? AND c.number > ? ORDER BY c.number LIMIT ?"
        return [CheckpointRecord(*row) for row in self._rows(sql, user, after, limit)]

    def captured(
        self,
        user: str | None,
        workspace: bytes,
        before: int | None,
        limit: int,
        *,
        hidden: bool = True,
    ) -> list[CheckpointRecord]:
        sql = (
            f"{_CHECKPOINT} WHERE c.user = ? AND c.workspace = ? AND (?3 IS NULL OR c.number < ?3) "
            "AND (?4 OR c.hidden <= 0) ORDER BY c.number DESC LIMIT ?5"
        )
        rows = self._rows(sql, user, workspace, before, hidden, limit)
        return [CheckpointRecord._make(row) for row in rows]

    def workspace(self, user: str | None, id: bytes) -> WorkspaceRecord | None:
        row = self._row(workspaces.BY_ID, user, id)
        return None if row is None else WorkspaceRecord._make(row)

    def workspace_at(self, user: str | None, host: str, path: bytes) -> WorkspaceRecord | None:
        row = self._row(workspaces.AT, user, host, path)
        return None if row is None else WorkspaceRecord._make(row)

    def workspaces(
        self, user: str | None, after: tuple[str, bytes, bytes], limit: int
    ) -> list[WorkspaceRecord]:
        rows = self._rows(workspaces.AFTER, user, *after, limit)
        return [WorkspaceRecord._make(row) for row in rows]

    def tombstone(self, user: str | None, id: Id) -> Tombstone | None:
        row = self._row(f"{_TOMBSTONE} WHERE s.user = ? AND s.id = ?", user, id)
        return None if row is None else Tombstone(*row)

    def tombstones(
        self, user: str | None, timeline: str, before_seq: int | None, limit: int
    ) -> list[Tombstone]:
        sql = (
            f"{_TOMBSTONE} WHERE t.user = ? AND t.name = ? AND (?3 IS NULL OR s.seq < ?3) "
            "ORDER BY s.seq DESC LIMIT ?4"
        )
        return [Tombstone(*row) for row in self._rows(sql, user, timeline, before_seq, limit)]

    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        sql = f"{_LOG} WHERE user = ? AND number > ? ORDER BY number LIMIT ?"
        return [LogRecord(*row) for row in self._rows(sql, user, after, limit)]

    def log_before(
        self, user: str | None, before: int | None, limit: int, timeline: str | None = None
    ) -> list[LogRecord]:
        sql = (
            f"{_LOG} WHERE user = ? AND (?2 IS NULL OR number < ?2) "
            "AND (?3 IS NULL OR timeline IS NULL OR timeline = ?3) ORDER BY number DESC LIMIT ?4"
        )
        return [LogRecord(*row) for row in self._rows(sql, user, before, timeline, limit)]

    def log_entry(self, user: str | None, id: Id) -> LogRecord | None:
        row = self._row(f"{_LOG} WHERE user = ? AND id = ?", user, id)
        return None if row is None else LogRecord(*row)

    def latest_number(self, user: str | None) -> int:
        """Of all users: one sequence numbers the commits of all of them."""
        row = self._row(f"{LAST_NUMBER.format('main')} WHERE ?1 IS NOT NULL", user)
        return 0 if row is None else int(row[0])

    def last_purge(self, user: str | None) -> int:
        row = self._row("SELECT purged FROM users WHERE id = ?", user)
        return 0 if row is None else int(row[0])

    # Of the ledger

    def owners(self, user: str | None) -> list[OwnerRecord]:
        sql = f"{_OWNER} WHERE user = ? ORDER BY since, id"
        return [OwnerRecord(*row) for row in self._rows(sql, user)]

    def task(self, user: str | None, name: str) -> TaskRecord | None:
        row = self._row(f"{_TASK} WHERE user = ? AND name = ?", user, name)
        return None if row is None else ledger.task_of(row)

    def task_by_key(self, user: str | None, key: bytes) -> TaskRecord | None:
        row = self._row(f"{_TASK} WHERE user = ? AND key = ?", user, key)
        return None if row is None else ledger.task_of(row)

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        sql, values = ledger.listing(query)
        return [ledger.task_of(row) for row in self._rows(sql, user, *values)]

    def due(self, user: str | None, now: int, limit: int) -> list[TaskRecord]:
        return [ledger.task_of(row) for row in self._rows(ledger.DUE, user, now, limit)]

    def retries(
        self, user: str | None, since: int, until: int, after: int, limit: int
    ) -> list[TaskRecord]:
        rows = self._rows(ledger.RETRIES, user, since, until, after, limit)
        return [ledger.task_of(row) for row in rows]

    def task_counts(self, user: str | None) -> dict[str, int]:
        sql = "SELECT state, count(*) FROM tasks WHERE user = ? GROUP BY state"
        return {row[0]: row[1] for row in self._rows(sql, user)}

    def entries(
        self, user: str | None, task: str | None, after: int = 0, limit: int = 1_000
    ) -> list[EntryRecord]:
        sql = ledger.ENTRIES if task is not None else ledger.ENTRIES_ITSELF
        rows = self._rows(sql, user, task, after, limit)
        return [EntryRecord(*row) for row in rows]

    def happened(self, user: str | None, after: int, limit: int) -> list[EntryRecord]:
        rows = self._rows(ledger.HAPPENED, user, after, limit)
        return [EntryRecord(*row) for row in rows]

    def latest_entry(self, user: str | None, kind: str) -> EntryRecord | None:
        row = self._row(ledger.LATEST, user, kind)
        return None if row is None else EntryRecord(*row)

    def journal(self, user: str | None, task: str, generation: int) -> list[EntryRecord]:
        rows = self._rows(ledger.JOURNAL, user, task, generation)
        return [EntryRecord(*row) for row in rows]


def _pieces(ids: Collection[Id]) -> Iterator[list[Id]]:
    every = list(ids)
    for start in range(0, len(every), attached.MANY):
        yield every[start : start + attached.MANY]


def _past(prefix: str) -> str | None:
    """The first text behind all that begin with a prefix, in the order of their bytes."""
    for at in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[at]) + 1
        if following <= sys.maxunicode:
            is_surrogate = 0xD800 <= following <= 0xDFFF
            return prefix[:at] + chr(0xE000 if is_surrogate else following)
    return None


def _timeline_row(row: tuple[Any, ...]) -> TimelineRow:
    line, updated, saved, rest = _timeline(row[:7]), row[7], row[8], row[9:]
    newest, head = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    return TimelineRow(line, updated, _checkpoint(newest), _checkpoint(head), saved)


def _checkpoint(row: tuple[Any, ...]) -> CheckpointRecord | None:
    """One that an outer join has found, or nothing."""
    return None if row[0] is None or row[2] is None else CheckpointRecord._make(row)


def _timeline(row: tuple[Any, ...]) -> TimelineRecord:
    return TimelineRecord._make((*row[:5], bool(row[5]), row[6]))
