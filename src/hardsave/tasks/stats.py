"""What the ledger holds, in numbers, and what happened to one task, in order."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hardsave.actor import signature
from hardsave.objects.codec import Codec
from hardsave.objects.records import EntryRecord
from hardsave.record import Record
from hardsave.tasks.task import moment


class TaskStats(Record):
    """How many tasks are in which state. The counts add up to the total."""

    total: int
    pending: int
    in_progress: int
    completed: int
    failed: int
    rolled_back: int
    iterations: int
    session: str | None
    """The one that began last."""


def counted(counts: Mapping[str, int], iterations: int, session: str | None) -> TaskStats:
    return TaskStats(
        total=sum(counts.values()),
        pending=counts.get("pending", 0),
        in_progress=counts.get("in_progress", 0),
        completed=counts.get("completed", 0),
        failed=counts.get("failed", 0),
        rolled_back=counts.get("rolled_back", 0),
        iterations=iterations,
        session=session,
    )


class TaskEvent(Record):
    """Something that happened to a task. A failure has `error` and `traceback` in `about`."""

    number: int
    kind: str
    at: datetime
    generation: int
    epoch: int
    about: Mapping[str, Any]
    task: str | None = None
    """The id of the task; None if it is gone, or it was about the ledger as a whole."""

    @property
    def error(self) -> str | None:
        return self.about.get("error")

    @property
    def by(self) -> str | None:
        """Who did it: see `hardsave.acting_as`. None if that was not said, or a worker did it."""
        return signature(self.about)


def happening(entry: EntryRecord, codec: Codec) -> TaskEvent:
    return TaskEvent(
        number=entry.number,
        kind=entry.kind,
        at=moment(entry.created_at),
        generation=entry.generation,
        epoch=entry.epoch,
        about=codec.decode(entry.data),
        task=entry.task,
    )
