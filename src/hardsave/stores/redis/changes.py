"""What the log of a user is made of: changes, decided by one process and done by all.

A process that reads the log does what each change says, in order, and so comes to the same rows as
every other. A batch is written without its objects, and without what it expects: that was checked
before it was written.
"""

from collections.abc import Sequence
from typing import Any

import ormsgpack

from hardsave.errors import Corrupt, Unavailable
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
from hardsave.stores.base import NO_CHANGES, Batch, Changes, Move
from hardsave.stores.ledger import NO_WORK, TaskMove, Work
from hardsave.stores.memory.rows import LedgerRows, TenantRows
from hardsave.stores.memory.tenant import Tenant
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.tuples import NamedTuple

FORMAT = 1
_EVENTS: tuple[type[Any], ...] = (CheckpointRecord, LogRecord, EntryRecord)


class Hold(NamedTuple):
    """A lease is taken or renewed."""

    owner: OwnerRecord


class LetGo(NamedTuple):
    """A lease is given back."""

    owner: Id


class PutNotes(NamedTuple):
    """Notes are put on a checkpoint."""

    id: Id
    notes: Sequence[Note]
    replace: bool


Change = Batch | Hold | LetGo | PutNotes


def do(change: Change, tenant: Tenant, number: int) -> int:
    """Do it, after commit `number`; the number of the last commit then. It may be interrupted, and
    done again from the start."""
    if isinstance(change, Batch):
        number = tenant.apply(change, number)
        tenant.number = number
    elif isinstance(change, Hold):
        tenant.ledger.owners[change.owner.id] = change.owner
    elif isinstance(change, LetGo):
        tenant.ledger.owners.pop(change.owner, None)
    else:
        tenant.put_notes(change.id, change.notes, replace=change.replace)
    return number


# As bytes


def written(change: Change) -> bytes:
    return _packed((FORMAT, type(change).__name__, _fields(change)))


def read(data: bytes) -> Change:
    """`Unavailable` if a newer version has written it."""
    _, name, fields = _unpacked(data)
    try:
        change: Change = _READ[name](fields)
    except (TypeError, ValueError, LookupError) as error:
        raise Corrupt(f"a change in the log cannot be read ({error}); run verify") from error
    return change


def rows_written(rows: TenantRows) -> bytes:
    return _packed((FORMAT, "rows", rows))


def rows_read(data: bytes) -> TenantRows:
    _, _, fields = _unpacked(data)
    number, purge, lines, checkpoints, stones, labels, notes, log, places, ledger = fields
    owners, tasks, added, entries = ledger
    return TenantRows(
        number,
        purge,
        [TimelineRecord(*one) for one in lines],
        [CheckpointRecord(*one) for one in checkpoints],
        [Tombstone(*one) for one in stones],
        [(id, _labels(one)) for id, one in labels],
        [(id, _notes(some)) for id, some in notes],
        [LogRecord(*one) for one in log],
        [WorkspaceRecord(*one) for one in places],
        LedgerRows(
            [OwnerRecord(*one) for one in owners],
            [_task(one) for one in tasks],
            added,
            [EntryRecord(*one) for one in entries],
        ),
    )


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, default=_plain)


def _plain(value: Any) -> Any:
    """Tuples with names, and collections of any kind."""
    return tuple(value)


def _unpacked(data: bytes) -> Any:
    try:
        found = ormsgpack.unpackb(data)
    except ValueError as error:
        raise Corrupt(f"the log of a user cannot be read ({error}); run verify") from error
    if found[0] > FORMAT:
        raise Unavailable(
            f"a newer version of Hardsave has written to this store (format {found[0]}, and this "
            f"one knows {FORMAT}): update it, then repeat"
        )
    return found


def _fields(change: Change) -> Any:
    if not isinstance(change, Batch):
        return change
    return (
        _EVENTS.index(type(change.event)),
        change.event,
        change.move,
        None if change.changes == NO_CHANGES else change.changes._replace(keeps=(), latest=None),
        None if change.work == NO_WORK else _without_conditions(change.work),
        list(change.labels.items()),
        list(change.notes.items()),
        change.workspaces,
    )


def _without_conditions(work: Work) -> Work:
    return work._replace(fences=(), latest=None, alive=())


def _batch(fields: Any) -> Batch:
    kind, event, move, changes, work, labels, notes, workspaces = fields
    return Batch(
        None,
        _EVENTS[kind](*event),
        None if move is None else _move(move),
        changes=NO_CHANGES if changes is None else _changes(changes),
        work=NO_WORK if work is None else _work(work),
        labels={id: _labels(some) for id, some in labels},
        notes={id: _notes(some) for id, some in notes},
        workspaces=[WorkspaceMove(expect, WorkspaceRecord(*one)) for expect, one in workspaces],
    )


def _move(fields: Any) -> Move:
    expect, become = fields
    return Move(None if expect is None else TimelineRecord(*expect), TimelineRecord(*become))


def _changes(fields: Any) -> Changes:
    found = Changes(*fields)
    return found._replace(
        moves=[_move(one) for one in found.moves],
        checkpoints=[CheckpointRecord(*one) for one in found.checkpoints],
        tombstones=[Tombstone(*one) for one in found.tombstones],
        replace=[CheckpointRecord(*one) for one in found.replace],
    )


def _work(fields: Any) -> Work:
    found = Work(*fields)
    return found._replace(
        moves=[TaskMove(expect, _task(become)) for expect, become in found.moves],
        entries=[EntryRecord(*one) for one in found.entries],
        reclaim=[OwnerRecord(*one) for one in found.reclaim],
    )


def _task(fields: Any) -> TaskRecord:
    made = TaskRecord(*fields)
    return made._replace(after=tuple(made.after))


def _labels(fields: Any) -> Labels:
    return tuple((key, value) for key, value in fields)


def _notes(fields: Any) -> list[Note]:
    return [Note(*one) for one in fields]


_READ: dict[str, Any] = {
    "Batch": _batch,
    "Hold": lambda fields: Hold(OwnerRecord(*fields[0])),
    "LetGo": lambda fields: LetGo(*fields),
    "PutNotes": lambda fields: PutNotes(fields[0], _notes(fields[1]), fields[2]),
}
