"""The tasks that a rewind takes back, and how undo and redo turn that around.

A task counts as done on top of a checkpoint if it has saved on the timeline since, in the
generation that it is in now. Rolling it back stops the worker that is at it. The ledger itself
is never taken back: what happened stays on record, and what steps did outside of state and
files is listed, because nothing here can undo it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hardsave.actor import signed
from hardsave.errors import Corrupt
from hardsave.objects.records import CheckpointRecord, EntryRecord, Id, TaskRecord
from hardsave.record import Record
from hardsave.stores.base import Query
from hardsave.stores.ledger import NO_WORK, TaskMove, Work
from hardsave.tasks import states
from hardsave.tasks.steps import Journal
from hardsave.vault.context import Context
from hardsave.vault.operations import TaskMark

_PAGE = 1_000


class RolledBack(Record):
    """A task that a rewind takes back."""

    id: str
    text: str
    state: str
    """The one that it was in."""
    effects: tuple[str, ...]
    """Its steps that were run. What they did to anything but state and files is still done."""
    elsewhere: tuple[str, ...] = ()
    """Other timelines that it has saved on: these stay as they are."""


# Deciding


def chosen(
    saved_since: Iterable[CheckpointRecord], task: Callable[[str], TaskRecord | None]
) -> list[TaskRecord]:
    """The tasks that have saved since, and stand where they stood then."""
    found: dict[str, TaskRecord] = {}
    for record in saved_since:
        if record.task is None or record.task in found:
            continue
        standing = task(record.task)
        if standing is not None and _is_at(standing, TaskMark(record.task, record.generation)):
            found[standing.name] = standing
    return sorted(found.values(), key=lambda each: (each.created_at, each.name))


def _is_at(task: TaskRecord, mark: TaskMark) -> bool:
    return task.state != "rolled_back" and task.generation == mark.generation


# Reading


def after(context: Context, timeline: str, target: CheckpointRecord) -> list[TaskRecord]:
    """The tasks that were done on a timeline after a checkpoint."""
    return chosen(_saved_since(context, timeline, target), _asked(context))


def _saved_since(
    context: Context, timeline: str, target: CheckpointRecord
) -> Iterator[CheckpointRecord]:
    """Hidden ones too: what was saved is not undone by deleting the checkpoint of it.

    On its own timeline a checkpoint's place is its number there: its commit is a late one if it
    was brought back by an import.
    """
    is_own = target.timeline == timeline
    query = Query(timeline, _PAGE, hidden=True)
    while rows := context.store.checkpoints(context.user, query):
        for row in rows:
            is_after = row.seq > target.seq if is_own else row.number > target.number
            if not is_after:
                return
            yield row
        query = query._replace(before_seq=rows[-1].seq)


def _asked(context: Context) -> Callable[[str], TaskRecord | None]:
    return lambda name: context.store.task(context.user, name)


def shown(context: Context, tasks: Sequence[TaskRecord], timeline: str) -> tuple[RolledBack, ...]:
    """Tasks as people see that they are rolled back, by a rewind of a timeline."""
    others = _elsewhere(context, tasks, timeline)
    return tuple(
        RolledBack(
            task.name, task.text, task.state, _effects(context, task), tuple(sorted(others[task]))
        )
        for task in tasks
    )


def _elsewhere(
    context: Context, tasks: Sequence[TaskRecord], timeline: str
) -> Mapping[TaskRecord, set[str]]:
    """Where else they have saved, in the generation that they are in."""
    found: dict[TaskRecord, set[str]] = {task: set() for task in tasks}
    known = {(task.name, task.generation): task for task in tasks}
    number = _first_commit(context, tasks)
    while tasks and (rows := context.store.saved(context.user, number, _PAGE)):
        for row in rows:
            task = known.get((row.task or "", row.generation))
            if task is not None and row.timeline != timeline:
                found[task].add(row.timeline)
        number = rows[-1].number
    return found


def _first_commit(context: Context, tasks: Iterable[TaskRecord]) -> int:
    """Nothing that they saved is older than the first that happened to them."""
    first = (context.store.entries(context.user, task.name, 0, 1) for task in tasks)
    return min((rows[0].number for rows in first if rows), default=0)


def _effects(context: Context, task: TaskRecord) -> tuple[str, ...]:
    entries = context.store.journal(context.user, task.name, task.generation)
    return tuple(Journal(entries).ran())


def marks(tasks: Iterable[TaskRecord]) -> tuple[TaskMark, ...]:
    """What the log keeps of them."""
    return tuple(TaskMark(task.name, task.generation) for task in tasks)


class Rolling:
    """The tasks of one rewind, found anew each time that it is tried."""

    def __init__(
        self, context: Context, timeline: str, target: CheckpointRecord, *, is_wanted: bool
    ) -> None:
        self._context = context
        self._about = (timeline, target)
        self._is_wanted = is_wanted
        self._found: tuple[TaskRecord, ...] | None = None

    def find(self) -> tuple[TaskRecord, ...]:
        """Those that go back, as they stand now."""
        self._found = tuple(after(self._context, *self._about)) if self._is_wanted else ()
        return self._found

    def told(self) -> None:
        """Tell handlers of what was rolled back."""
        told(self._context, self._found or ())

    def shown(self) -> tuple[RolledBack, ...]:
        """Those that were found last."""
        found = self.find() if self._found is None else self._found
        return shown(self._context, found, self._about[0])


def told(context: Context, tasks: Iterable[TaskRecord]) -> None:
    """Tell handlers how tasks stand after an operation."""
    for task in tasks:
        standing = context.store.task(context.user, task.name)
        if standing is not None:
            kind = "rolled_back" if standing.state == "rolled_back" else "reinstated"
            from hardsave.vault.tasks import tell  # with all the ledger: see _entry

            tell(context, kind, standing)


# What a commit does to them


def rolled_back(context: Context, tasks: Iterable[TaskRecord], operation: Id) -> Work:
    """Rolls them back, and notes what they were, for an undo."""
    now = context.clock()
    moves, entries = [], []
    for task in tasks:
        become = states.rolled_back(task, now)
        about = {"operation": "op_" + operation.hex(), "was": states.memo(task)}
        moves.append(TaskMove(task.epoch, become))
        entries.append(_entry(context, "rolled_back", become, about))
    return Work(moves=moves, entries=entries) if moves else NO_WORK


def turned(context: Context, marks: Iterable[TaskMark], kind: str, operation: Id) -> Work:
    """Brings tasks back where they stood (undo), or rolls them back again (redo). One that was
    started over, forgotten or rolled back by itself since is left as it is."""
    standing = [(mark, context.store.task(context.user, mark.task)) for mark in marks]
    there = [task for mark, task in standing if task and task.generation == mark.generation]
    if kind == "redo":
        return rolled_back(
            context, [each for each in there if each.state != "rolled_back"], operation
        )
    moves, entries = [], []
    for task in there:
        memo = _memo(context, task) if task.state == "rolled_back" else None
        if memo is not None:
            become = states.reinstated(task, memo)
            moves.append(TaskMove(task.epoch, become))
            about = {"operation": "op_" + operation.hex()}
            entries.append(_entry(context, "reinstated", become, about))
    return Work(moves=moves, entries=entries) if moves else NO_WORK


def _entry(
    context: Context, kind: str, become: TaskRecord, about: Mapping[str, Any]
) -> EntryRecord:
    from hardsave.vault.tasks import (
        ledger_context,  # with all the ledger, which few rewinds are about
    )

    return ledger_context(context).entry(kind, become, signed(about))


def _memo(context: Context, task: TaskRecord) -> states.Memo | None:
    """What it was before an operation rolled it back; None if that was `tasks.roll_back`."""
    last: EntryRecord | None = None
    number = 0
    while rows := context.store.entries(context.user, task.name, number, _PAGE):
        last = next((row for row in reversed(rows) if row.kind == "rolled_back"), last)
        number = rows[-1].number
    if last is None:
        raise Corrupt(f"nothing says what task {task.name!r} was before it was rolled back")
    was = context.objects.codec.decode(last.data).get("was")
    return None if was is None else states.Memo(*was)
