"""A store in memory: gone with its process, and the measure of what every store must do."""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Collection

from hardsave.errors import Conflict, Misuse
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id, LogRecord, TimelineRecord
from hardsave.stores.base import (
    Batch,
    ObjectsGone,
    Query,
    Stats,
    conflict_message,
    position,
)


class _Tenant:
    def __init__(self) -> None:
        self.objects: dict[Hash, bytes] = {}
        self.timelines: dict[str, TimelineRecord] = {}
        self.checkpoints: dict[Id, CheckpointRecord] = {}
        self.ids: list[Id] = []  # sorted
        self.lines: dict[str, list[CheckpointRecord]] = {}  # by seq
        self.log: dict[Id, LogRecord] = {}


class MemoryStore:
    """See `stores.base` for the contract."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tenants: dict[str | None, _Tenant] = {}
        self._number = 0
        self._closed = False

    def commit(self, batch: Batch) -> int:
        with self._lock:
            tenant = self._tenant(batch.user)
            done = tenant.checkpoints.get(batch.event.id) or tenant.log.get(batch.event.id)
            if done is not None:
                return done.number
            _check(tenant, batch)
            self._number += 1
            for address, data in batch.objects.items():
                tenant.objects.setdefault(address, data)
            if batch.move is not None:
                tenant.timelines[batch.move.become.name] = batch.move.become
            event = batch.event._replace(number=self._number)
            if isinstance(event, LogRecord):
                tenant.log[event.id] = event
            else:
                tenant.checkpoints[event.id] = event
                tenant.ids.insert(bisect_left(tenant.ids, event.id), event.id)
                tenant.lines.setdefault(event.timeline, []).append(event)
            return self._number

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        with self._lock:
            objects = self._tenant(user).objects
            return {address: objects[address] for address in hashes if address in objects}

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        with self._lock:
            return set(hashes) - self._tenant(user).objects.keys()

    def timeline(self, user: str | None, name: str) -> TimelineRecord | None:
        with self._lock:
            return self._tenant(user).timelines.get(name)

    def timelines(self, user: str | None, after: str | None, limit: int) -> list[TimelineRecord]:
        with self._lock:
            found = sorted(self._tenant(user).timelines.items(), key=lambda item: item[0].encode())
        wanted = [
            record for name, record in found if after is None or name.encode() > after.encode()
        ]
        return wanted[:limit]

    def checkpoint(self, user: str | None, id: Id) -> CheckpointRecord | None:
        with self._lock:
            return self._tenant(user).checkpoints.get(id)

    def checkpoints_between(
        self, user: str | None, low: Id, high: Id, limit: int
    ) -> list[CheckpointRecord]:
        with self._lock:
            tenant = self._tenant(user)
            ids = tenant.ids[bisect_left(tenant.ids, low) : bisect_right(tenant.ids, high)]
            return [tenant.checkpoints[id] for id in ids[:limit]]

    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        with self._lock:
            line = list(self._tenant(user).lines.get(query.timeline, ()))
        found = [record for record in reversed(line) if _matches(record, query)]
        return found[: query.limit]

    def count(self, user: str | None, timeline: str) -> int:
        with self._lock:
            return len(self._tenant(user).lines.get(timeline, ()))

    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        with self._lock:
            entries = list(self._tenant(user).log.values())
        return [entry for entry in entries if entry.number > after][:limit]

    def stats(self, user: str | None) -> Stats:
        with self._lock:
            tenant = self._tenant(user)
            every = [other.objects for other in self._tenants.values()]
            return Stats(
                timelines=len(tenant.timelines),
                checkpoints=len(tenant.checkpoints),
                objects=len(tenant.objects),
                disk_bytes=sum(len(data) for objects in every for data in objects.values()),
            )

    def forget(self) -> None:
        self._tenant(None)

    def verify(self) -> list[str]:
        self._tenant(None)
        return []

    def close(self) -> None:
        self._closed = True

    def _tenant(self, user: str | None) -> _Tenant:
        if self._closed:
            raise Misuse("this store is closed; open it again")
        return self._tenants.setdefault(user, _Tenant())


def _check(tenant: _Tenant, batch: Batch) -> None:
    if batch.move is not None:
        expect, become = batch.move
        standing = tenant.timelines.get(become.name)
        if position(standing) != position(expect):
            raise Conflict(conflict_message(become.name, standing, expect))
    gone = [address for address in batch.requires if address not in tenant.objects]
    if gone:
        raise ObjectsGone(f"{len(gone)} objects are no longer stored, {gone[0].hex()} among them")


def _matches(record: CheckpointRecord, query: Query) -> bool:
    return (
        (query.before_seq is None or record.seq < query.before_seq)
        and (query.seq is None or record.seq == query.seq)
        and (query.name is None or record.name == query.name)
        and (query.kind is None or record.kind == query.kind)
        and (query.status is None or record.status == query.status)
        and (query.since is None or record.created_at >= query.since)
        and (query.until is None or record.created_at <= query.until)
    )
