"""What callers do to tasks: add, cancel, retry, roll back, answer. Each is one commit.

A task is changed as it stands when it is written: if another process was faster, it is looked at
again. A request with a key is recognised when it comes twice: `stores.requests`.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hardsave.actor import signed
from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.objects.records import EntryRecord, TaskRecord
from hardsave.progress import check_deadline
from hardsave.stores.ledger import Fence, TaskMove, Work
from hardsave.stores.requests import MadeMeanwhile, Request
from hardsave.tasks import claiming, current, names, states, steps
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.steps import Body, UnknownPolicy

TRIES = 100  # of a write that others were faster with

Change = Callable[[TaskRecord], tuple[TaskRecord, list[EntryRecord]]]
"""What becomes of a task, and what its journal gets."""


def found(context: LedgerContext, id: str) -> TaskRecord:
    names.check("the id of a task", id)
    task = context.store.task(context.user, id)
    if task is None:
        raise NotFound(f"there is no task {id!r}; see tasks.find()")
    return task


def add(
    context: LedgerContext,
    task: TaskRecord,
    request: Request | None = None,
    fences: Sequence[Fence] = (),
) -> TaskRecord:
    """Add a task; `Conflict` if its id or its key is there already, or a fence does not hold."""
    check_deadline()
    event = context.entry("added", task, signed({"text": task.text}))
    context.act(event, Work(fences=fences, moves=(TaskMove(None, task),)), request)
    return found(context, task.name)


def cancel(context: LedgerContext, id: str, request: Request | None = None) -> TaskRecord:
    now = context.clock()
    return change(context, id, "cancelled", lambda task: (states.cancelled(task, now), []), request)


def cancel_unbegun(context: LedgerContext, id: str, upto: int) -> None:
    """Cancel a task that was added up to this commit, and to which nothing has happened since."""
    task = context.store.task(context.user, id)
    first = context.store.entries(context.user, id, limit=1)
    if task is None or not first or first[0].number > upto:
        return
    if task.state == "pending" and task.epoch == first[0].epoch:
        with contextlib.suppress(Conflict):  # by now something has
            changed(context, task, "cancelled", states.cancelled(task, context.clock()))


def cancelling(context: LedgerContext, ids: Iterable[str]) -> Work:
    """For a commit of more than tasks: cancels those that wait for their turn. The others have to
    be by then as they are now."""
    now = context.clock()
    standing = [task for id in ids if (task := context.store.task(context.user, id)) is not None]
    moves = [
        TaskMove(task.epoch, states.cancelled(task, now))
        for task in standing
        if task.state == "pending"
    ]
    return Work(
        fences=[Fence(task.name, task.epoch) for task in standing],
        moves=moves,
        entries=[context.entry("cancelled", move.become, signed({})) for move in moves],
    )


def retry(
    context: LedgerContext,
    id: str,
    unknown: UnknownPolicy | None,
    request: Request | None = None,
    *,
    force: bool,
) -> TaskRecord:
    def decide(task: TaskRecord) -> tuple[TaskRecord, list[EntryRecord]]:
        settled = [] if unknown is None else _settled(context, task, unknown)
        return states.retried(task, extra=True, force=force), settled

    return change(context, id, "retried", decide, request)


def roll_back(context: LedgerContext, id: str) -> TaskRecord:
    now = context.clock()
    return change(context, id, "rolled_back", lambda task: (states.rolled_back(task, now), []))


def answer(
    context: LedgerContext,
    id: str,
    answer: Any,
    question: str | None,
    request: Request | None = None,
) -> TaskRecord:
    first: bytes | None = None

    def decide(task: TaskRecord) -> tuple[TaskRecord, list[EntryRecord]]:
        nonlocal first
        become = states.answered(task)
        assert task.question is not None
        asked = context.codec.decode(task.question)
        first = task.question if first is None else first
        if task.question != first or question not in (None, asked["question"]):
            raise Conflict(f"task {id!r} asks something else by now: {asked['question']}")
        if not asked["is_unknown"]:
            return become, [_step(context, task, "step_answered", asked, answer)]
        if answer == "fail":
            now = context.clock()
            return states.cancelled(task, now)._replace(error=asked["question"]), []
        if answer not in ("retry", "skip"):
            raise Misuse(f"the answer is 'retry', 'skip' or 'fail', not {answer!r}")
        kind = "step_skipped" if answer == "skip" else "step_failed"
        return become, [_step(context, task, kind, asked, None)]

    return change(context, id, "answered", decide, request)


def changed(
    context: LedgerContext,
    task: TaskRecord,
    kind: str,
    become: TaskRecord,
    entries: Sequence[EntryRecord] = (),
    request: Request | None = None,
) -> TaskRecord:
    """A task after a change that is made only if it still stands as it was looked at."""
    work = Work(moves=(TaskMove(task.epoch, become),), entries=entries)
    context.act(context.entry(kind, become, signed({})), work, request)
    return found(context, task.name)


def change(
    context: LedgerContext, id: str, kind: str, decide: Change, request: Request | None = None
) -> TaskRecord:
    """Change a task as it stands when it is written."""
    check_deadline()
    for _ in range(TRIES):
        task = found(context, id)
        become, entries = decide(task)
        try:
            return changed(context, task, kind, become, entries, request)
        except MadeMeanwhile:
            raise
        except Conflict:
            current.check(context.store, context.user)
    raise Conflict(f"others changed task {id!r} {TRIES} times; try again")


def _settled(context: LedgerContext, task: TaskRecord, policy: UnknownPolicy) -> list[EntryRecord]:
    """Entries that settle the steps which were begun and not ended."""
    journal = claiming.journal_of(context, task)
    kind = "step_skipped" if policy == "skip" else "step_failed"
    made: list[EntryRecord] = []
    for path in journal.unknown():
        known = journal.get(path)
        assert known is not None
        about = {"step": path, "arguments": known.body.arguments, "place": known.body.place}
        made.append(_step(context, task, kind, about, None))
    return made


def _step(
    context: LedgerContext, task: TaskRecord, kind: str, about: Any, value: Any
) -> EntryRecord:
    """An entry of the journal that no attempt writes."""
    data = context.codec.encode(value, "answer")
    body = Body(about["arguments"], about["place"], data)
    return context.entry(kind, task)._replace(step=about["step"], data=steps.pack(body))
