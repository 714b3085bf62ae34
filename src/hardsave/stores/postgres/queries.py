"""What is read with one statement: checkpoints, timelines, workspaces, the log, tasks."""

from collections.abc import Collection
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
from hardsave.stores.base import Query, TimelineQuery, TimelineRow
from hardsave.stores.ledger import TaskQuery
from hardsave.stores.postgres import statements

Row = tuple[Any, ...]
_DESCRIPTION = CheckpointRecord._fields.index("description")
_TEXT, _AFTER, _ERROR = (TaskRecord._fields.index(name) for name in ("text", "after", "error"))


class PostgresQueries:
    """A part of the contract of `stores.base`. A store that inherits it says where rows are."""

    def _rows(self, sql: str, user: str | None, **values: Any) -> list[Row]:
        """The rows of a statement about a user."""
        raise NotImplementedError

    def _row(self, sql: str, user: str | None, **values: Any) -> Row | None:
        rows = self._rows(sql, user, **values)
        return rows[0] if rows else None

    def _checkpoints(self, sql: str, user: str | None, **values: Any) -> list[CheckpointRecord]:
        return [_checkpoint(row) for row in self._rows(sql, user, **values)]

    def _tasks(self, sql: str, user: str | None, **values: Any) -> list[TaskRecord]:
        return [_task(row) for row in self._rows(sql, user, **values)]

    def _entries(self, sql: str, user: str | None, **values: Any) -> list[EntryRecord]:
        return [EntryRecord._make(row) for row in self._rows(sql, user, **values)]

    # Timelines

    def timeline(self, user: str | None, name: str) -> TimelineRecord | None:
        row = self._row(statements.TIMELINE, user, name=name)
        return None if row is None else TimelineRecord._make(row)

    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        values = {"after": after or "", "limit": limit, "deleted": deleted, "prefix": prefix}
        rows = self._rows(statements.TIMELINES, user, **values)
        return [TimelineRecord._make(row) for row in rows]

    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        updated, name = query.after or (None, None)
        values = {**query._asdict(), "updated": updated, "name": name}
        is_plain = (query.workspace, query.status) == (None, None)
        sql = statements.RECENT if is_plain else statements.RECENT_BY_CHECKPOINT
        return [_timeline_row(row) for row in self._rows(sql, user, **values)]

    def count(self, user: str | None, timeline: str) -> int:
        row = self._row(statements.COUNT, user, name=timeline)
        return 0 if row is None else int(row[0])

    # Checkpoints

    def checkpoint(self, user: str | None, id: Id) -> CheckpointRecord | None:
        row = self._row(statements.CHECKPOINT, user, id=id)
        return None if row is None else _checkpoint(row)

    def checkpoints_between(
        self, user: str | None, low: Id, high: Id, limit: int
    ) -> list[CheckpointRecord]:
        return self._checkpoints(statements.BETWEEN, user, low=low, high=high, limit=limit)

    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        sql = statements.CHECKPOINTS + ("" if query.hidden else " AND c.hidden <= 0")
        for condition, value in (
            ("c.seq < %(before_seq)s", query.before_seq),
            ("c.seq = %(seq)s", query.seq),
            ("c.name = %(name)s", query.name),
            ("c.kind = %(kind)s", query.kind),
            ("c.status = %(status)s", query.status),
            ("c.created_at >= %(since)s", query.since),
            ("c.created_at <= %(until)s", query.until),
        ):  # none is asked that is not needed: so each plan suits what is asked
            if value is not None:
                sql += f" AND {condition}"
        also, labels = _having(query.labels)
        sql += f"{also} ORDER BY c.seq DESC LIMIT %(limit)s"
        return self._checkpoints(sql, user, **{**query._asdict(), **labels})

    def labelled(
        self, user: str | None, labels: Labels, before: int | None, limit: int
    ) -> list[CheckpointRecord]:
        (key, value), others = labels[0], labels[1:]
        also, texts = _having(others)
        sql = statements.LABELLED.format(others=also)
        texts |= {"key": key, "value": value}
        return self._checkpoints(sql, user, before=before, limit=limit, **texts)

    def labels(self, user: str | None, ids: Collection[Id]) -> dict[Id, Labels]:
        found: dict[Id, Labels] = {}
        for id, key, value in self._rows(statements.LABELS, user, ids=list(ids)):
            found[id] = (*found.get(id, ()), (key, value))
        return found

    def notes(self, user: str | None, ids: Collection[Id]) -> dict[Id, list[Note]]:
        found: dict[Id, list[Note]] = {}
        for id, key, data in self._rows(statements.NOTES, user, ids=list(ids)):
            found.setdefault(id, []).append(Note(key, data))
        return found

    def children(self, user: str | None, parent: Id) -> list[CheckpointRecord]:
        return self._checkpoints(statements.CHILDREN, user, parent=parent)

    def branches(
        self, user: str | None, timeline: str, first: int, last: int
    ) -> list[CheckpointRecord]:
        values = {"timeline": timeline, "first": first, "last": last}
        return self._checkpoints(statements.BRANCHES, user, **values)

    def ancestors(self, user: str | None, id: Id, limit: int) -> list[CheckpointRecord]:
        return self._checkpoints(statements.ANCESTORS, user, id=id, limit=limit)

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        return self._checkpoints(statements.SAVED, user, after=after, limit=limit)

    def captured(
        self,
        user: str | None,
        workspace: bytes,
        before: int | None,
        limit: int,
        *,
        hidden: bool = True,
    ) -> list[CheckpointRecord]:
        values = {"workspace": workspace, "before": before, "limit": limit, "hidden": hidden}
        return self._checkpoints(statements.CAPTURED, user, **values)

    def tombstone(self, user: str | None, id: Id) -> Tombstone | None:
        row = self._row(statements.TOMBSTONE, user, id=id)
        return None if row is None else Tombstone._make(row)

    def tombstones(
        self, user: str | None, timeline: str, before_seq: int | None, limit: int
    ) -> list[Tombstone]:
        values = {"timeline": timeline, "before": before_seq, "limit": limit}
        return [Tombstone._make(row) for row in self._rows(statements.TOMBSTONES, user, **values)]

    # Workspaces

    def workspace(self, user: str | None, id: bytes) -> WorkspaceRecord | None:
        row = self._row(statements.WORKSPACE, user, id=id)
        return None if row is None else WorkspaceRecord._make(row)

    def workspace_at(self, user: str | None, host: str, path: bytes) -> WorkspaceRecord | None:
        row = self._row(statements.WORKSPACE_AT, user, host=host, path=path)
        return None if row is None else WorkspaceRecord._make(row)

    def workspaces(
        self, user: str | None, after: tuple[str, bytes, bytes], limit: int
    ) -> list[WorkspaceRecord]:
        host, path, id = after
        rows = self._rows(statements.WORKSPACES, user, host=host, path=path, id=id, limit=limit)
        return [WorkspaceRecord._make(row) for row in rows]

    # The log

    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        rows = self._rows(statements.LOG, user, after=after, limit=limit)
        return [LogRecord._make(row) for row in rows]

    def log_before(
        self, user: str | None, before: int | None, limit: int, timeline: str | None = None
    ) -> list[LogRecord]:
        values = {"before": before, "limit": limit, "timeline": timeline}
        return [LogRecord._make(row) for row in self._rows(statements.LOG_BEFORE, user, **values)]

    def log_entry(self, user: str | None, id: Id) -> LogRecord | None:
        row = self._row(statements.LOG_ENTRY, user, id=id)
        return None if row is None else LogRecord._make(row)

    # The ledger

    def owners(self, user: str | None) -> list[OwnerRecord]:
        return [OwnerRecord._make(row) for row in self._rows(statements.OWNERS, user)]

    def task(self, user: str | None, name: str) -> TaskRecord | None:
        return next(iter(self._tasks(statements.TASK, user, name=name)), None)

    def task_by_key(self, user: str | None, key: bytes) -> TaskRecord | None:
        return next(iter(self._tasks(statements.TASK_BY_KEY, user, key=key)), None)

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        newest = query.newest_first
        sql = statements.TASKS_NEWEST_FIRST if newest else statements.TASKS_IN_ORDER
        return self._tasks(sql, user, **query._asdict())

    def due(self, user: str | None, now: int, limit: int) -> list[TaskRecord]:
        return self._tasks(statements.DUE, user, now=now, limit=limit)

    def retries(
        self, user: str | None, since: int, until: int, after: int, limit: int
    ) -> list[TaskRecord]:
        values = {"since": since, "until": until, "after": after, "limit": limit}
        return self._tasks(statements.RETRIES, user, **values)

    def task_counts(self, user: str | None) -> dict[str, int]:
        return dict(self._rows(statements.TASK_COUNTS, user))

    def entries(
        self, user: str | None, task: str | None, after: int = 0, limit: int = 1_000
    ) -> list[EntryRecord]:
        sql = statements.ENTRIES_ITSELF if task is None else statements.ENTRIES
        return self._entries(sql, user, task=task, after=after, limit=limit)

    def happened(self, user: str | None, after: int, limit: int) -> list[EntryRecord]:
        return self._entries(statements.HAPPENED, user, after=after, limit=limit)

    def latest_entry(self, user: str | None, kind: str) -> EntryRecord | None:
        return next(iter(self._entries(statements.LATEST, user, kind=kind)), None)

    def journal(self, user: str | None, task: str, generation: int) -> list[EntryRecord]:
        return self._entries(statements.JOURNAL, user, task=task, generation=generation)


def _having(labels: Labels) -> tuple[str, dict[str, Any]]:
    """The condition that a checkpoint `c` has all of these labels, and its values."""
    values: dict[str, Any] = {}
    for at, (key, value) in enumerate(labels):
        values |= {f"label{at}_key": key, f"label{at}_value": value}
    names = (f"label{at}" for at in range(len(labels)))
    return "".join(f" AND {statements.HAS_LABEL.format(name)}" for name in names), values


def _checkpoint(row: Row) -> CheckpointRecord:
    at = _DESCRIPTION
    return CheckpointRecord._make((*row[:at], row[at].decode(), *row[at + 1 :]))


def _task(row: Row) -> TaskRecord:
    found = list(row)
    found[_TEXT] = found[_TEXT].decode()
    found[_AFTER] = tuple(found[_AFTER])
    found[_ERROR] = None if found[_ERROR] is None else found[_ERROR].decode()
    return TaskRecord._make(found)


def _timeline_row(row: Row) -> TimelineRow:
    line, updated, saved, rest = TimelineRecord._make(row[:7]), row[7], row[8], row[9:]
    newest, head = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    return TimelineRow(line, updated, _joined(newest), _joined(head), saved)


def _joined(row: Row) -> CheckpointRecord | None:
    """One that an outer join has found, or nothing."""
    return None if row[0] is None else _checkpoint(row)
