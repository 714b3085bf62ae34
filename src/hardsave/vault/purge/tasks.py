"""Tasks that hold a text which has to be purged: they go, with all that happened to them.

Their entries are what happened, and are never rewritten. Names of sessions stay, as names of
timelines do.
"""

from collections.abc import Iterable, Iterator, Sequence

from hardsave.errors import Conflict, LeaseLost
from hardsave.objects.records import EntryRecord, LogRecord, TaskRecord
from hardsave.stores.base import Batch
from hardsave.stores.ledger import Fence, TaskQuery, Work, every
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context

_PAGE = 500
_TRIES = 100  # of a write that others were faster with


def forget(context: Context, old: bytes) -> int:
    """Forget every task that holds the text; how many. `Conflict` if one is not over, or another
    one waits for it: a task that was forgotten holds up no other, and that one would begin."""
    for _ in range(_TRIES):
        tasks = list(every(context.store, context.user, TaskQuery(_PAGE)))
        found = [task for task in tasks if _holds(context, task, old)]
        _check(found, tasks)
        if not found or _are_gone(context, found):
            return len(found)
    raise Conflict(f"others changed tasks with the text {_TRIES} times; purge again")


def _are_gone(context: Context, found: Sequence[TaskRecord]) -> bool:
    """Forget them as they were looked at; False if one has been begun anew since."""
    entry = LogRecord(0, context.new_id(), None, "purge", context.clock(), operations.note())
    fences = [Fence(task.name, task.epoch) for task in found]
    work = Work(fences=fences, forget=[task.name for task in found])
    try:
        fencing.commit(context, Batch(context.user, entry, work=work))
    except LeaseLost:
        if fencing.is_lost(context):
            raise  # that of the attempt which purges
        return False
    return True


def _check(found: Iterable[TaskRecord], tasks: Iterable[TaskRecord]) -> None:
    waiting = {task.waits_for: task.name for task in tasks}
    for task in found:
        if task.state in ("pending", "in_progress"):
            raise Conflict(
                f"task {task.name!r} holds the text and is {task.state}; cancel it, then purge "
                "again"
            )
        if task.name in waiting:
            raise Conflict(
                f"task {task.name!r} holds the text, and task {waiting[task.name]!r} waits for it; "
                "cancel that one, then purge again"
            )


def _holds(context: Context, task: TaskRecord, old: bytes) -> bool:
    texts = [task.name, task.text, task.error or "", *task.after]
    values = [task.result or b"", task.question or b"", task.metadata]
    if any(old in part for part in [*(text.encode() for text in texts), *values]):
        return True
    return any(
        old in entry.data or old in (entry.step or "").encode() for entry in _all(context, task)
    )


def _all(context: Context, task: TaskRecord) -> Iterator[EntryRecord]:
    for generation in range(1, task.generation + 1):
        yield from context.store.journal(context.user, task.name, generation)
    after = 0
    while rows := context.store.entries(context.user, task.name, after, _PAGE):
        yield from rows
        after = rows[-1].number
