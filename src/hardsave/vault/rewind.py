"""Taking a timeline back, and taking it away. Nothing is removed: heads move, rows are hidden.

Contract. Each is one commit, logged as an operation, and `undo` turns it around. They work
on the timeline as it stands when they commit: somebody else's save in between is looked at
again, not overlooked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from hardsave.errors import Conflict, NotFound
from hardsave.objects.records import CheckpointRecord, Id, LogRecord, TimelineRecord
from hardsave.stores.base import Batch, Changes, CheckpointGone, Move, position
from hardsave.vault import operations
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context
from hardsave.vault.operations import Effects

_PAGE = 1_000
_ATTEMPTS = 100


class Rewind(NamedTuple):
    """What a rewind did, or would do."""

    timeline: str
    before: Checkpoint | None
    """The head until then. It stays reachable: by its id, its number, and `undo`."""
    target: Checkpoint
    """The head now."""
    moved: bool
    """False if it was the head already, or if this was a dry run."""


class _Plan(NamedTuple):
    """What one operation is to do to a timeline."""

    become: TimelineRecord
    hide: tuple[Id, ...] = ()
    keeps: tuple[Id, ...] = ()
    about: Mapping[str, Any] = {}  # never changed


Decide = Callable[[TimelineRecord], _Plan]


def rewind(context: Context, name: str, target: CheckpointRecord, *, dry_run: bool) -> Rewind:
    """Move the head of a timeline to a checkpoint."""
    before = context.history.head(name)
    moved = before is None or before.id != target.id
    if moved and not dry_run:
        after = _operate(
            context,
            name,
            "rewind",
            lambda standing: _Plan(
                standing._replace(head=target.id, is_deleted=False),
                keeps=(target.id,),
                about={"to": target.id},
            ),
        )
        left = after.expect.head if after is not None and after.expect is not None else None
        before = None if left is None else context.store.checkpoint(context.user, left)
    return Rewind(
        timeline=name,
        before=None if before is None else context.checkpoint(before),
        target=context.checkpoint(target),
        moved=moved and not dry_run,
    )


def fork(context: Context, source: CheckpointRecord, name: str) -> TimelineRecord:
    """A timeline that starts at a checkpoint; one that was deleted may give its name."""
    standing = context.store.timeline(context.user, name)
    if standing is not None and not standing.is_deleted:
        raise Conflict(f"timeline {name!r} exists already; choose another name")
    moment = context.clock()
    last_seq = 0 if standing is None else standing.last_seq
    move = Move(standing, TimelineRecord(name, source.id, last_seq, moment, source.id))
    about = {"source": source.id, "from": source.timeline}
    data = operations.encode(context.objects.verbatim.codec, Effects((move,), about=about))
    entry = LogRecord(0, context.new_id(), name, "fork", moment, data)
    changes = Changes(keeps=(source.id,))
    context.store.commit(Batch(context.user, entry, move, changes=changes))
    return move.become


def clear(context: Context, name: str) -> int:
    """Hide all checkpoints of a timeline; its numbers go on. How many there were."""
    if context.store.timeline(context.user, name) is None:
        return 0
    return _hide_all(context, name, "clear", is_deleted=False)


def delete(context: Context, name: str) -> int:
    """Hide a timeline with all its checkpoints. How many there were."""
    return _hide_all(context, name, "delete", is_deleted=True)


def delete_one(context: Context, record: CheckpointRecord) -> None:
    """Hide one checkpoint. If it is its timeline's head, the one before it becomes the head."""
    for line in _timelines(context):
        if line.head == record.id and line.name != record.timeline:
            raise Conflict(f"it is the head of timeline {line.name!r}: delete that first")

    def plan(standing: TimelineRecord) -> _Plan:
        become = standing
        if standing.head == record.id:
            above = next(context.history.ancestors(record), None)
            become = standing._replace(head=None if above is None else above.id)
        keeps = () if become.head is None else (become.head,)
        return _Plan(become, (record.id,), keeps, {"checkpoint": record.id})

    _operate(context, record.timeline, "delete", plan)


def _hide_all(context: Context, name: str, kind: str, *, is_deleted: bool) -> int:
    hidden: list[int] = []

    def plan(standing: TimelineRecord) -> _Plan:
        ids = tuple(record.id for record in context.history.line(name))
        hidden[:] = [len(ids)]
        become = standing._replace(head=None, is_deleted=is_deleted)
        return _Plan(become, ids, about={"checkpoints": len(ids)})

    _operate(context, name, kind, plan)
    return hidden[0]


def _operate(context: Context, name: str, kind: str, decide: Decide) -> Move | None:
    """Do what `decide` says to the timeline as it stands; None if that is nothing."""
    id = context.new_id()
    for _ in range(_ATTEMPTS):
        standing = context.store.timeline(context.user, name)
        if standing is None or (standing.is_deleted and kind != "rewind"):
            raise NotFound(f"there is no timeline {name!r}")
        plan = decide(standing)
        if plan.become == standing and not plan.hide:
            return None
        move = Move(standing, plan.become)
        effects = Effects((move,), hid=bool(plan.hide), about=plan.about)
        data = operations.encode(context.objects.verbatim.codec, effects)
        record = LogRecord(0, id, name, kind, context.clock(), data)
        changes = Changes(hide=plan.hide, keeps=plan.keeps)
        try:
            context.store.commit(Batch(context.user, record, move, changes=changes))
        except CheckpointGone as error:
            raise NotFound(f"{error}; choose another checkpoint") from error
        except Conflict:
            if position(context.store.timeline(context.user, name)) == position(standing):
                raise
            continue
        return move
    raise Conflict(f"others wrote to timeline {name!r} first {_ATTEMPTS} times; try again")


def _timelines(context: Context) -> Iterator[TimelineRecord]:
    after: str | None = None
    while rows := context.store.timelines(context.user, after, _PAGE):
        yield from rows
        after = rows[-1].name
