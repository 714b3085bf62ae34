"""All that one user's store has commits of, in their order: saves, log, ledger, steps.

Steps are read task by task, so they are kept in a scratch until their turn comes. What is committed
after the copy has begun is left out.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TypeVar

from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    LogRecord,
    TimelineRecord,
    Tombstone,
    WorkspaceRecord,
)
from hardsave.stores.base import Store
from hardsave.stores.ledger import TaskQuery, every
from hardsave.tuples import NamedTuple
from hardsave.vault.scratch import Scratch

PAGE = 500
STEPS = """
    CREATE TABLE steps (
        number INTEGER PRIMARY KEY, id BLOB, task TEXT, kind TEXT, generation INTEGER,
        epoch INTEGER, created_at INTEGER, step TEXT, data BLOB
    )
"""
_ADD_STEP = "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NEXT_STEPS = "SELECT * FROM steps WHERE number > ? ORDER BY number LIMIT ?"

Row = CheckpointRecord | LogRecord | EntryRecord
R = TypeVar("R", CheckpointRecord, LogRecord, EntryRecord)


class Side(NamedTuple):
    """One of the two stores, as one user has it."""

    store: Store
    user: str | None


def events(side: Side, scratch: Scratch, upto: int) -> Iterator[Row]:
    """All up to a number. The steps lie in the scratch already, see `read_steps`."""
    store, user = side
    sources: tuple[Iterator[Row], ...] = (
        _pages(lambda after: store.saved(user, after, PAGE)),
        _pages(lambda after: store.log(user, after, PAGE)),
        _pages(lambda after: store.happened(user, after, PAGE)),
        _pages(lambda after: _steps(scratch, after)),
    )
    for row in heapq.merge(*sources, key=attrgetter("number")):
        if row.number > upto:
            return
        yield row


def read_steps(side: Side, scratch: Scratch) -> None:
    """The journals of all tasks, in all of their generations."""
    for task in every(side.store, side.user, TaskQuery(PAGE)):
        for generation in range(task.generation + 1):
            scratch.many(_ADD_STEP, side.store.journal(side.user, task.name, generation))


def is_same(row: Row, other: Row) -> bool:
    """Whether two rows are of the same commit, each in its own store."""
    if isinstance(row, EntryRecord) and isinstance(other, EntryRecord):
        return (row.task, row.id) == (other.task, other.id)
    return (type(row), row.id) == (type(other), other.id)


def all_timelines(side: Side) -> Iterator[TimelineRecord]:
    """By name, deleted ones too."""
    after: str | None = None
    while rows := side.store.timelines(side.user, after, PAGE, deleted=True):
        yield from rows
        after = rows[-1].name


def all_tombstones(side: Side, timeline: str) -> Iterator[Tombstone]:
    before: int | None = None
    while rows := side.store.tombstones(side.user, timeline, before, PAGE):
        yield from rows
        before = rows[-1].seq


def all_workspaces(side: Side) -> Iterator[WorkspaceRecord]:
    after = ("", b"", b"")
    while rows := side.store.workspaces(side.user, after, PAGE):
        yield from rows
        after = (rows[-1].host, rows[-1].path, rows[-1].id)


def _steps(scratch: Scratch, after: int) -> list[EntryRecord]:
    return [EntryRecord(*row) for row in scratch.rows(_NEXT_STEPS, after, PAGE)]


def _pages(read: Callable[[int], Sequence[R]]) -> Iterator[R]:
    after = 0
    while rows := read(after):
        yield from rows
        after = rows[-1].number
