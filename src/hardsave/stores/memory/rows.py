"""All rows of one user in memory, as plain tuples: what a copy of them is made of."""

from collections.abc import Sequence

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
from hardsave.tuples import NamedTuple


class LedgerRows(NamedTuple):
    """What a `MemoryLedger` holds."""

    owners: Sequence[OwnerRecord]
    tasks: Sequence[TaskRecord]  # in the order they were added
    added: int  # the highest place ever given out
    entries: Sequence[EntryRecord]  # those of each task in their order


class TenantRows(NamedTuple):
    """What a `Tenant` holds, but for objects and pins."""

    number: int
    last_purge: int
    timelines: Sequence[TimelineRecord]
    checkpoints: Sequence[CheckpointRecord]
    tombstones: Sequence[Tombstone]
    labels: Sequence[tuple[Id, Labels]]
    notes: Sequence[tuple[Id, Sequence[Note]]]
    log: Sequence[LogRecord]  # in the order of commits
    workspaces: Sequence[WorkspaceRecord]
    ledger: LedgerRows
