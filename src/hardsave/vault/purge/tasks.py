"""Tasks that hold a text which has to be purged, or are of a job that is: they go, with all that
happened to them.

Their entries are what happened, and are never rewritten. Names of sessions stay, as names of
timelines do.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hardsave.errors import Conflict, LeaseLost
from hardsave.objects.codec import Codec
from hardsave.objects.records import EntryRecord, LogRecord, TaskRecord
from hardsave.stores.base import Batch
from hardsave.stores.ledger import Fence, TaskQuery, Work, every
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs.spec import JobSpec

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


def forgetting(found: Sequence[TaskRecord]) -> Work:
    """Forget them, if they are as they were looked at."""
    fences = [Fence(task.name, task.epoch) for task in found]
    return Work(fences=fences, forget=[task.name for task in found])


def _are_gone(context: Context, found: Sequence[TaskRecord]) -> bool:
    """Forget them as they were looked at; False if one has been begun anew since."""
    entry = LogRecord(0, context.new_id(), None, "purge", context.clock(), operations.note())
    try:
        fencing.commit(context, Batch(context.user, entry, work=forgetting(found)))
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


# Of a job


def of_job(context: Context, lineage: str) -> list[TaskRecord]:
    """The tasks of a job: as which it was queued, which tell its end, and which purge it.
    `Conflict` if it is not over, or another one waits for it."""
    codec = context.objects.codec
    tasks = list(every(context.store, context.user, TaskQuery(_PAGE)))
    own = [task for task in tasks if _lineage(codec, task) == lineage]
    for task in own:
        waits_for_its_end = task.state == "pending" and _about(codec, task, "purge_of") is not None
        if task.state in ("pending", "in_progress") and not waits_for_its_end:
            raise Conflict(
                f"task {task.name!r} of job {lineage!r} is {task.state}; cancel it, then purge "
                "again"
            )
    check_none_waits(own, [task for task in tasks if task not in own])
    return own


def _lineage(codec: Codec, task: TaskRecord) -> str | None:
    spec = spec_of(codec, task)
    if spec is not None:
        return spec.lineage
    told = told_of(codec, task)
    return _about(codec, task, "purge_of") if told is None else specs.parse(told).lineage


def spec_of(codec: Codec, task: TaskRecord) -> JobSpec | None:
    found = specs.from_plain(codec.decode(task.metadata).get(specs.KEY))
    return None if found is None else found[0]


def told_of(codec: Codec, task: TaskRecord) -> str | None:
    """The job whose end a task tells."""
    return _about(codec, task, "notice_of")


def _about(codec: Codec, task: TaskRecord, key: str) -> str | None:
    about = codec.decode(task.metadata).get(specs.KEY)
    found = about.get(key) if isinstance(about, Mapping) else None
    return found if isinstance(found, str) else None


def check_none_waits(own: Collection[TaskRecord], tasks: Iterable[TaskRecord]) -> None:
    """A task that was forgotten holds up no other: what waits for one that failed would begin."""
    names = {task.name for task in own}
    for task in tasks:
        if task.state == "pending" and task.waits_for in names:
            raise Conflict(
                f"task {task.name!r} waits for job {task.waits_for!r}, which is to be purged; "
                "cancel that task"
            )


# With a text


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
