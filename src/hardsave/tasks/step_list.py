"""The journal of a task as people read it: each step once, how it ended, and what it gave."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from hardsave.objects.codec import Codec
from hardsave.objects.records import EntryRecord
from hardsave.tasks import steps
from hardsave.tasks.ledger import Tasks
from hardsave.tasks.steps import StepState
from hardsave.tasks.task import moment
from hardsave.tuples import NamedTuple

TakenState = StepState | Literal["running"]


class TakenStep(NamedTuple):
    """A step that was begun. `unknown`: no process works at it, and its end is not on record."""

    path: str
    state: TakenState
    started_at: datetime | None  # None: only its end is on record
    ended_at: datetime | None
    value: Any  # what it gave, or why it failed


def of_task(tasks: Tasks, id: str) -> list[TakenStep]:
    """The steps of the generation that a task is in, in the order in which they were begun."""
    task = tasks.get(id)
    context = tasks._context
    entries = context.store.journal(context.user, task.id, task.generation)
    return taken(entries, context.codec, is_at_work=task.state == "in_progress")


def taken(entries: Iterable[EntryRecord], codec: Codec, *, is_at_work: bool) -> list[TakenStep]:
    """Pure. A step that was begun again stands where it was first, with its last times."""
    found: dict[str, TakenStep] = {}
    for entry in entries:
        assert entry.step is not None
        before = found.get(entry.step)
        found[entry.step] = _after(before, entry, codec, is_at_work=is_at_work)
    return list(found.values())


def _after(
    before: TakenStep | None, entry: EntryRecord, codec: Codec, *, is_at_work: bool
) -> TakenStep:
    path, state = entry.step or "", steps.STATES[entry.kind]
    if state == "unknown":
        now: TakenState = "running" if is_at_work else "unknown"
        return TakenStep(path, now, moment(entry.created_at), None, None)
    began = None if before is None else before.started_at
    value = codec.decode(steps.unpack(entry.data).value)
    return TakenStep(path, state, began, moment(entry.created_at), value)
