"""A store in memory: gone with its process, and the measure of what every store must do."""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from string import ascii_lowercase, ascii_uppercase

from hardsave.errors import Misuse
from hardsave.objects.hashing import Hash
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
    NESTED,
    Batch,
    CheckpointGone,
    Collected,
    Query,
    Stats,
    Survives,
    TimelineQuery,
    TimelineRow,
    Turn,
)
from hardsave.stores.host.boot import awake, boot_id
from hardsave.stores.ledger import Moment, TaskQuery
from hardsave.stores.memory.tenant import Tenant
from hardsave.stores.memory.turns import MemoryTurns
from hardsave.tuples import NamedTuple

_SCANNED_AT_ONCE = 1_000  # objects


class MemoryStore:
    """See `stores.base` for the contract."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may read, too
        self._is_committing = False
        self._tenants: dict[str | None, Tenant] = {}
        self._decided: _Decided | None = None
        self._turns = MemoryTurns()
        self._closed = False

    is_shared = False

    def durability(self) -> Survives:
        return "nothing"

    def commit(self, batch: Batch) -> int:
        with self._lock:
            if self._is_committing:
                raise Misuse(NESTED)
            tenant = self._tenant(batch.user)
            try:
                self._is_committing = True
                return self._commit(tenant, batch)
            finally:
                self._is_committing = False

    def _commit(self, tenant: Tenant, batch: Batch) -> int:
        done = tenant.number_of(batch)
        if done is not None:
            return done
        tenant.check(batch)
        self._decided = _Decided(tenant, batch, tenant.number)
        return self._finish(self._decided)

    def _settle(self) -> None:
        """Finish what was interrupted; not what is under way, and reads in a signal's handler."""
        with self._lock:
            decided = self._decided
            if decided is not None and not self._is_committing:
                self._finish(decided)

    def _finish(self, decided: "_Decided") -> int:
        """Do what was decided. A signal may end this anywhere: the next call does all of it
        again, which leads to the same."""
        number = decided.tenant.apply(decided.batch, decided.number)
        decided.tenant.number = number
        self._decided = None
        return number

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        with self._lock:
            objects = self._tenant(user).objects
            return {address: objects[address] for address in hashes if address in objects}

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        with self._lock:
            return set(hashes) - self._tenant(user).objects.keys()

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        with self._lock:
            hashes = list(self._tenant(user).objects)
        for start in range(0, len(hashes), _SCANNED_AT_ONCE):
            yield self.read(user, hashes[start : start + _SCANNED_AT_ONCE])

    def timeline(self, user: str | None, name: str) -> TimelineRecord | None:
        with self._lock:
            return self._tenant(user).timelines.get(name)

    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        with self._lock:
            found = sorted(self._tenant(user).timelines.items(), key=lambda item: item[0].encode())
        wanted = [
            record
            for name, record in found
            if (deleted or not record.is_deleted)
            and (after is None or name.encode() > after.encode())
            and name.startswith(prefix)
        ]
        return wanted[:limit]

    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        with self._lock:
            tenant = self._tenant(user)
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
        with self._lock:
            return self._tenant(user).checkpoints.get(id)

    def checkpoints_between(
        self, user: str | None, low: Id, high: Id, limit: int
    ) -> list[CheckpointRecord]:
        with self._lock:
            tenant = self._tenant(user)
            ids = tenant.ids[bisect_left(tenant.ids, low) : bisect_right(tenant.ids, high)]
            found = [tenant.checkpoints[id] for id in ids]
            return [record for record in found if not record.is_hidden][:limit]

    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        with self._lock:
            tenant = self._tenant(user)
            line = list(tenant.lines.get(query.timeline, ()))
            if query.labels:
                line = [record for record in line if tenant.has_all(record.id, query.labels)]
        found = [record for record in reversed(line) if _matches(record, query)]
        return found[: query.limit]

    def labelled(
        self, user: str | None, labels: Labels, before: int | None, limit: int
    ) -> list[CheckpointRecord]:
        with self._lock:
            tenant = self._tenant(user)
            ids = [id for id in tenant.labels if tenant.has_all(id, labels)]
            records = [tenant.checkpoints[id] for id in ids]
        found = [
            record
            for record in records
            if not record.is_hidden and (before is None or record.number < before)
        ]
        return sorted(found, reverse=True)[:limit]

    def labels(self, user: str | None, ids: Collection[Id]) -> dict[Id, Labels]:
        with self._lock:
            labels = self._tenant(user).labels
            return {id: labels[id] for id in ids if labels.get(id)}

    def notes(self, user: str | None, ids: Collection[Id]) -> dict[Id, list[Note]]:
        with self._lock:
            notes = self._tenant(user).notes
            return {id: [Note(*one) for one in notes[id].items()] for id in ids if notes.get(id)}

    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        with self._lock:
            tenant = self._tenant(user)
            if id not in tenant.checkpoints:
                raise CheckpointGone(f"there is no checkpoint {id.hex()} to put notes on")
            tenant.put_notes(id, notes, replace=replace)

    def count(self, user: str | None, timeline: str) -> int:
        with self._lock:
            line = self._tenant(user).lines.get(timeline, ())
            return sum(not record.is_hidden for record in line)

    def children(self, user: str | None, parent: Id) -> list[CheckpointRecord]:
        with self._lock:
            records = list(self._tenant(user).checkpoints.values())
        found = [record for record in records if record.parent == parent and not record.is_hidden]
        return sorted(found)

    def branches(
        self, user: str | None, timeline: str, first: int, last: int
    ) -> list[CheckpointRecord]:
        with self._lock:
            return self._tenant(user).branches(timeline, first, last)

    def ancestors(self, user: str | None, id: Id, limit: int) -> list[CheckpointRecord]:
        with self._lock:
            return list(islice(self._tenant(user).ancestors(id), limit))

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        with self._lock:
            records = list(self._tenant(user).checkpoints.values())
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
        with self._lock:
            found = [
                record
                for record in self._tenant(user).checkpoints.values()
                if record.workspace == workspace
                and (before is None or record.number < before)
                and (hidden or not record.is_hidden)
            ]
        return sorted(found, reverse=True)[:limit]

    def workspace(self, user: str | None, id: bytes) -> WorkspaceRecord | None:
        with self._lock:
            return self._tenant(user).workspaces.get(id)

    def workspace_at(self, user: str | None, host: str, path: bytes) -> WorkspaceRecord | None:
        with self._lock:
            records = sorted(self._tenant(user).workspaces.values())
        return next((each for each in records if each[1:3] == (host, path)), None)

    def workspaces(
        self, user: str | None, after: tuple[str, bytes, bytes], limit: int
    ) -> list[WorkspaceRecord]:
        with self._lock:
            records = list(self._tenant(user).workspaces.values())
        placed = sorted((each.host.encode(), each.path, each.id, each) for each in records)
        start = (after[0].encode(), *after[1:])
        return [record for *place, record in placed if tuple(place) > start][:limit]

    def tombstone(self, user: str | None, id: Id) -> Tombstone | None:
        with self._lock:
            return self._tenant(user).tombstones.get(id)

    def tombstones(
        self, user: str | None, timeline: str, before_seq: int | None, limit: int
    ) -> list[Tombstone]:
        with self._lock:
            stones = list(self._tenant(user).tombstones.values())
        found = [
            stone
            for stone in stones
            if stone.timeline == timeline and (before_seq is None or stone.seq < before_seq)
        ]
        return sorted(found, key=lambda stone: -stone.seq)[:limit]

    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        with self._lock:
            entries = list(self._tenant(user).log.values())
        return [entry for entry in entries if entry.number > after][:limit]

    def log_before(
        self, user: str | None, before: int | None, limit: int, timeline: str | None = None
    ) -> list[LogRecord]:
        with self._lock:
            found = (
                entry
                for entry in reversed(self._tenant(user).log.values())
                if (before is None or entry.number < before)
                and (timeline is None or entry.timeline in (None, timeline))
            )
            return list(islice(found, limit))

    def log_entry(self, user: str | None, id: Id) -> LogRecord | None:
        with self._lock:
            return self._tenant(user).log.get(id)

    # The ledger

    def moment(self) -> Moment:
        return Moment(boot_id(), awake())

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        with self._lock:
            owners = self._tenant(user).ledger.owners
            if owner.id not in owners and not is_new:
                return False
            owners[owner.id] = owner
            return True

    def let_go(self, user: str | None, owner: Id) -> None:
        with self._lock:
            self._tenant(user).ledger.owners.pop(owner, None)

    def owners(self, user: str | None) -> list[OwnerRecord]:
        with self._lock:
            owners = list(self._tenant(user).ledger.owners.values())
        return sorted(owners, key=lambda owner: (owner.since, owner.id))

    def task(self, user: str | None, name: str) -> TaskRecord | None:
        with self._lock:
            return self._tenant(user).ledger.task(name)

    def task_by_key(self, user: str | None, key: bytes) -> TaskRecord | None:
        with self._lock:
            return self._tenant(user).ledger.task_by_key(key)

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        with self._lock:
            return self._tenant(user).ledger.tasks(query)

    def due(self, user: str | None, now: int, limit: int) -> list[TaskRecord]:
        with self._lock:
            return self._tenant(user).ledger.due(now, limit)

    def retries(
        self, user: str | None, since: int, until: int, after: int, limit: int
    ) -> list[TaskRecord]:
        with self._lock:
            return self._tenant(user).ledger.retries(since, until, after, limit)

    def task_counts(self, user: str | None) -> dict[str, int]:
        with self._lock:
            return self._tenant(user).ledger.counts()

    def entries(
        self, user: str | None, task: str | None, after: int = 0, limit: int = 1_000
    ) -> list[EntryRecord]:
        with self._lock:
            return self._tenant(user).ledger.entries(task, after, limit)

    def happened(self, user: str | None, after: int, limit: int) -> list[EntryRecord]:
        with self._lock:
            return self._tenant(user).ledger.happened(after, limit)

    def latest_entry(self, user: str | None, kind: str) -> EntryRecord | None:
        with self._lock:
            return self._tenant(user).ledger.latest(kind)

    def journal(self, user: str | None, task: str, generation: int) -> list[EntryRecord]:
        with self._lock:
            return self._tenant(user).ledger.journal(task, generation)

    # Objects ahead of their batch, and those that no checkpoint needs

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        with self._lock:
            tenant = self._tenant(user)
            tenant.pins[pin] = time.monotonic() + seconds
            for address, data in objects.items():
                tenant.objects.setdefault(address, data)

    def unpin(
        self,
        user: str | None,
        pin: bytes,
        *,
        given_up: Callable[[bytes], Collection[Hash]] | None = None,
    ) -> None:
        with self._lock:
            self._tenant(user).pins.pop(pin, None)

    def collect(
        self, refs: Callable[[bytes], Collection[Hash]], *, exact: bool = False
    ) -> Collected:
        with self._lock:
            self._tenant(None)
            now = time.monotonic()
            left = [
                user
                for user, tenant in self._tenants.items()
                if any(until > now for until in tenant.pins.values())
            ]
            gone = [
                data
                for user, tenant in self._tenants.items()
                if user not in left
                for data in tenant.collect(refs)
            ]
        size = sum(map(len, gone))
        return Collected(len(gone), size, size, tuple(left))

    def latest_number(self, user: str | None) -> int:
        with self._lock:
            return self._tenant(user).number

    def last_purge(self, user: str | None) -> int:
        with self._lock:
            return self._tenant(user).last_purge

    def local(self, what: str) -> str | None:
        return None

    def once(self, name: str) -> AbstractContextManager[Turn | None]:
        self._tenant(None)
        return self._turns.take(name)

    def stats(self, user: str | None) -> Stats:
        with self._lock:
            tenant = self._tenant(user)
            every = [other.objects for other in self._tenants.values()]
            return Stats(
                timelines=sum(not line.is_deleted for line in tenant.timelines.values()),
                checkpoints=sum(not record.is_hidden for record in tenant.checkpoints.values()),
                objects=len(tenant.objects),
                disk_bytes=sum(len(data) for objects in every for data in objects.values()),
                own_bytes=sum(map(len, tenant.objects.values())),
                object_bytes=sum(map(len, tenant.objects.values())),
            )

    def forget(self) -> None:
        self._tenant(None)

    def check_usable(self) -> None:
        self._tenant(None)

    def verify(self) -> list[str]:
        self._tenant(None)
        return []

    def close(self) -> None:
        self._closed = True

    def _tenant(self, user: str | None) -> Tenant:
        if self._closed:
            raise Misuse("this store is closed; open it again")
        if self._decided is not None:
            self._settle()
        return self._tenants.setdefault(user, Tenant())


_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class _Decided(NamedTuple):
    """A batch that is as good as written, and the number of its user's commit before it."""

    tenant: Tenant
    batch: Batch
    number: int


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
