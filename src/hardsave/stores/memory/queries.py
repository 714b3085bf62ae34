"""The queries of a store in memory: timelines, checkpoints, workspaces, log and ledger."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from contextlib import AbstractContextManager
from itertools import islice
from string import ascii_lowercase, ascii_uppercase

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
from hardsave.stores.base import (
    Query,
    TimelineQuery,
    TimelineRow,
)
from hardsave.stores.ledger import TaskQuery
from hardsave.stores.memory.tenant import Tenant


class MemoryQueries:
    """A part of the contract of `stores.base`. A store that inherits it says where rows are."""

    def _reading(self, user: str | None) -> AbstractContextManager[Tenant]:
        """What is stored for a user, which no other thread changes inside of the block."""
        raise NotImplementedError

    def timeline(self, user: str | None, name: str) -> TimelineRecord | None:
        with self._reading(user) as tenant:
            return tenant.timelines.get(name)

    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        with self._reading(user) as tenant:
            found = sorted(tenant.timelines.items(), key=lambda item: item[0].encode())
        wanted = [
            record
            for name, record in found
            if (deleted or not record.is_deleted)
            and (after is None or name.encode() > after.encode())
            and name.startswith(prefix)
        ]
        return wanted[:limit]

    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        with self._reading(user) as tenant:
            lines = [line for line in tenant.timelines.values() if _is_asked_for(line, query)]
            rows = [tenant.row(line) for line in lines]
            if query.workspace is not None:
                rows = [row for row in rows if tenant.workspace_of(row) == query.workspace]
            if query.status is not None:
                rows = [row for row in rows if row.newest and row.newest.status == query.status]
        after = None if query.after is None else (-query.after[0], query.after[1].encode())
        placed = sorted((-row.updated_at, row.line.name.encode(), row) for row in rows)
        return [row for *place, row in placed if after is None or tuple(place) > after][
            : query.limit
        ]

    def checkpoint(self, user: str | None, id: Id) -> CheckpointRecord | None:
        with self._reading(user) as tenant:
            return tenant.checkpoints.get(id)

    def checkpoints_between(
        self, user: str | None, low: Id, high: Id, limit: int
    ) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            ids = tenant.ids[bisect_left(tenant.ids, low) : bisect_right(tenant.ids, high)]
            found = [tenant.checkpoints[id] for id in ids]
            return [record for record in found if not record.is_hidden][:limit]

    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            line = list(tenant.lines.get(query.timeline, ()))
            if query.labels:
                line = [record for record in line if tenant.has_all(record.id, query.labels)]
        found = [record for record in reversed(line) if _matches(record, query)]
        return found[: query.limit]

    def labelled(
        self, user: str | None, labels: Labels, before: int | None, limit: int
    ) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            ids = [id for id in tenant.labels if tenant.has_all(id, labels)]
            records = [tenant.checkpoints[id] for id in ids]
        found = [
            record
            for record in records
            if not record.is_hidden and (before is None or record.number < before)
        ]
        return sorted(found, reverse=True)[:limit]

    def labels(self, user: str | None, ids: Collection[Id]) -> dict[Id, Labels]:
        with self._reading(user) as tenant:
            labels = tenant.labels
            return {id: labels[id] for id in ids if labels.get(id)}

    def notes(self, user: str | None, ids: Collection[Id]) -> dict[Id, list[Note]]:
        with self._reading(user) as tenant:
            notes = tenant.notes
            return {id: [Note(*one) for one in notes[id].items()] for id in ids if notes.get(id)}

    def count(self, user: str | None, timeline: str) -> int:
        with self._reading(user) as tenant:
            line = tenant.lines.get(timeline, ())
            return sum(not record.is_hidden for record in line)

    def children(self, user: str | None, parent: Id) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            records = list(tenant.checkpoints.values())
        found = [record for record in records if record.parent == parent and not record.is_hidden]
        return sorted(found)

    def branches(
        self, user: str | None, timeline: str, first: int, last: int
    ) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            return tenant.branches(timeline, first, last)

    def ancestors(self, user: str | None, id: Id, limit: int) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            return list(islice(tenant.ancestors(id), limit))

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            records = list(tenant.checkpoints.values())
        return sorted(record for record in records if record.number > after)[:limit]

    def captured(
        self,
        user: str | None,
        workspace: bytes,
        before: int | None,
        limit: int,
        *,
        hidden: bool = True,
    ) -> list[CheckpointRecord]:
        with self._reading(user) as tenant:
            found = [
                record
                for record in tenant.checkpoints.values()
                if record.workspace == workspace
                and (before is None or record.number < before)
                and (hidden or not record.is_hidden)
            ]
        return sorted(found, reverse=True)[:limit]

    def workspace(self, user: str | None, id: bytes) -> WorkspaceRecord | None:
        with self._reading(user) as tenant:
            return tenant.workspaces.get(id)

    def workspace_at(self, user: str | None, host: str, path: bytes) -> WorkspaceRecord | None:
        with self._reading(user) as tenant:
            records = sorted(tenant.workspaces.values())
        return next((each for each in records if each[1:3] == (host, path)), None)

    def workspaces(
        self, user: str | None, after: tuple[str, bytes, bytes], limit: int
    ) -> list[WorkspaceRecord]:
        with self._reading(user) as tenant:
            records = list(tenant.workspaces.values())
        placed = sorted((each.host.encode(), each.path, each.id, each) for each in records)
        start = (after[0].encode(), *after[1:])
        return [record for *place, record in placed if tuple(place) > start][:limit]

    def tombstone(self, user: str | None, id: Id) -> Tombstone | None:
        with self._reading(user) as tenant:
            return tenant.tombstones.get(id)

    def tombstones(
        self, user: str | None, timeline: str, before_seq: int | None, limit: int
    ) -> list[Tombstone]:
        with self._reading(user) as tenant:
            stones = list(tenant.tombstones.values())
        found = [
            stone
            for stone in stones
            if stone.timeline == timeline and (before_seq is None or stone.seq < before_seq)
        ]
        return sorted(found, key=lambda stone: -stone.seq)[:limit]

    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        with self._reading(user) as tenant:
            entries = list(tenant.log.values())
        return [entry for entry in entries if entry.number > after][:limit]

    def log_before(
        self, user: str | None, before: int | None, limit: int, timeline: str | None = None
    ) -> list[LogRecord]:
        with self._reading(user) as tenant:
            found = (
                entry
                for entry in reversed(tenant.log.values())
                if (before is None or entry.number < before)
                and (timeline is None or entry.timeline in (None, timeline))
            )
            return list(islice(found, limit))

    def log_entry(self, user: str | None, id: Id) -> LogRecord | None:
        with self._reading(user) as tenant:
            return tenant.log.get(id)

    # The ledger

    def owners(self, user: str | None) -> list[OwnerRecord]:
        with self._reading(user) as tenant:
            owners = list(tenant.ledger.owners.values())
        return sorted(owners, key=lambda owner: (owner.since, owner.id))

    def task(self, user: str | None, name: str) -> TaskRecord | None:
        with self._reading(user) as tenant:
            return tenant.ledger.task(name)

    def task_by_key(self, user: str | None, key: bytes) -> TaskRecord | None:
        with self._reading(user) as tenant:
            return tenant.ledger.task_by_key(key)

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        with self._reading(user) as tenant:
            return tenant.ledger.tasks(query)

    def due(self, user: str | None, now: int, limit: int) -> list[TaskRecord]:
        with self._reading(user) as tenant:
            return tenant.ledger.due(now, limit)

    def retries(
        self, user: str | None, since: int, until: int, after: int, limit: int
    ) -> list[TaskRecord]:
        with self._reading(user) as tenant:
            return tenant.ledger.retries(since, until, after, limit)

    def task_counts(self, user: str | None) -> dict[str, int]:
        with self._reading(user) as tenant:
            return tenant.ledger.counts()

    def entries(
        self, user: str | None, task: str | None, after: int = 0, limit: int = 1_000
    ) -> list[EntryRecord]:
        with self._reading(user) as tenant:
            return tenant.ledger.entries(task, after, limit)

    def happened(self, user: str | None, after: int, limit: int) -> list[EntryRecord]:
        with self._reading(user) as tenant:
            return tenant.ledger.happened(after, limit)

    def latest_entry(self, user: str | None, kind: str) -> EntryRecord | None:
        with self._reading(user) as tenant:
            return tenant.ledger.latest(kind)

    def journal(self, user: str | None, task: str, generation: int) -> list[EntryRecord]:
        with self._reading(user) as tenant:
            return tenant.ledger.journal(task, generation)


_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def _is_asked_for(line: TimelineRecord, query: TimelineQuery) -> bool:
    return (
        (query.deleted or not line.is_deleted)
        and line.name.startswith(query.prefix)
        and any(_lower(query.text) in _lower(text) for text in (line.name, line.title))
    )


def _lower(text: str) -> str:
    """As SQLite does it, for the letters of ASCII alone."""
    return text.translate(_LOWER)


def _matches(record: CheckpointRecord, query: Query) -> bool:
    return (
        (query.hidden or not record.is_hidden)
        and (query.before_seq is None or record.seq < query.before_seq)
        and (query.seq is None or record.seq == query.seq)
        and (query.name is None or record.name == query.name)
        and (query.kind is None or record.kind == query.kind)
        and (query.status is None or record.status == query.status)
        and (query.since is None or record.created_at >= query.since)
        and (query.until is None or record.created_at <= query.until)
    )
