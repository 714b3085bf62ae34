"""A task as people see it: a view of its record, of the moment it was read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hardsave.objects.codec import Codec
from hardsave.objects.records import TaskRecord
from hardsave.record import Record
from hardsave.tasks.states import State


class Progress(Record):
    """So many of so many; (0, 0) if nothing was said."""

    done: int
    total: int


class Task(Record):
    """A unit of work. What it shows is as of when it was read."""

    id: str
    text: str
    state: State
    priority: int
    created_at: datetime
    generation: int
    attempts: int
    max_attempts: int
    not_before: datetime | None
    after: tuple[str, ...]
    waits_for: str | None
    started_at: datetime | None
    ended_at: datetime | None
    progress: Progress
    error: str | None
    result: Any
    question: str | None
    metadata: Mapping[str, Any]
    place: int
    """Its number, in the order in which tasks were added."""
    is_new: bool = False
    """True only on what `add` gives back when there was no such task before."""


def view(record: TaskRecord, codec: Codec, *, is_new: bool = False) -> Task:
    question = None if record.question is None else codec.decode(record.question)["question"]
    return Task(
        id=record.name,
        text=record.text,
        state=record.state,  # type: ignore[arg-type] # stores keep what they were given
        priority=record.priority,
        created_at=moment(record.created_at),
        generation=record.generation,
        attempts=record.attempts,
        max_attempts=record.max_attempts,
        not_before=moment(record.not_before) if record.not_before else None,
        after=record.after,
        waits_for=record.waits_for,
        started_at=maybe(record.started_at),
        ended_at=maybe(record.ended_at),
        progress=Progress(record.done, record.total),
        error=record.error,
        result=None if record.result is None else codec.decode(record.result),
        question=question,
        metadata=codec.decode(record.metadata),
        place=record.place,
        is_new=is_new,
    )


def moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


def maybe(micros: int | None) -> datetime | None:
    return None if micros is None else moment(micros)
