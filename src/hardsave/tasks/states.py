"""The states of a task, and what may happen in each. Pure: from one record to the next.

A move that takes a task away from its holder raises its epoch, so that the holder's later
writes are refused: a claim, the end of an attempt, a hand-back, a cancellation. A claim raises it
by a number that its caller draws: a server that has lost a claim, as after a failover, gives the
same epoch to the next one, and then two attempts would hold the task.

However a task comes to be pending again, it is not due before the time that it was added with. One
that was added for `NEVER` is begun only by a caller that names it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from hardsave.errors import Conflict
from hardsave.objects.records import Id, TaskRecord
from hardsave.tuples import NamedTuple

State = Literal["pending", "in_progress", "completed", "failed", "rolled_back"]
STATES: tuple[State, ...] = ("pending", "in_progress", "completed", "failed", "rolled_back")

MOVES: Mapping[str, tuple[State, ...]] = {
    "claimed": ("pending",),
    "forced": ("pending", "completed", "failed", "rolled_back"),
    "progressed": ("in_progress",),
    "completed": ("in_progress",),
    "failed": ("in_progress",),
    "asked": ("in_progress",),
    "answered": ("pending",),
    "handed_back": ("in_progress",),
    "interrupted": ("in_progress",),
    "cancelled": ("pending", "in_progress", "failed"),
    "retried": ("failed", "rolled_back"),
    "started over": ("completed", "failed", "rolled_back"),
    "woken": ("pending",),
    "rolled_back": STATES,
    "reinstated": ("rolled_back",),
}
"""What may happen to a task in which states."""

WHY: Mapping[str, str] = {
    "in_progress": "a process is at work on it",
    "completed": "it is done",
    "failed": "it is over",
    "rolled_back": "what it did was taken back",
    "pending": "it waits for its turn already",
}
AGAIN: Mapping[str, str] = {
    "completed": "it is done; force=True runs it again",
    "failed": "tasks.retry() lets it run again",
    "rolled_back": "tasks.retry() starts it over",
}
"""What a caller can do who wants it to run."""

CANCELLED = "cancelled"
"""The error of a task that was cancelled."""

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
NEVER_COMES = int(NEVER.timestamp()) * 1_000_000


def is_by_name(task: TaskRecord) -> bool:
    """Whether its time does not come by itself: a runner that knows nothing of it leaves it."""
    return task.not_before >= NEVER_COMES


def check(what: str, task: TaskRecord) -> None:
    """Raise `Conflict` if that may not happen to a task as it stands."""
    if task.state not in MOVES[what]:
        why = {**WHY, **(AGAIN if what in ("claimed", "retried") else {})}[task.state]
        raise Conflict(f"task {task.name!r} is {task.state} and cannot be {what}: {why}")


MOST_LEAP = 2**30
"""By so much a claim raises an epoch at most; after 8 million claims JSON in a browser still holds
it."""


def claimed(
    task: TaskRecord, owner: Id, now: int, *, force: bool = False, leap: int = 1
) -> TaskRecord:
    """An attempt begins. What was done or taken back, and is forced, has an empty journal."""
    check("forced" if force else "claimed", task)
    if not force and (task.due is None or task.due > now):
        raise Conflict(f"task {task.name!r} is not due: {why_not_due(task)}")
    if task.state in ("completed", "rolled_back"):
        task = restarted(task)
    return task._replace(
        state="in_progress",
        epoch=task.epoch + leap,
        attempts=task.attempts + 1,
        owner=owner,
        due=0,
        waits_for=None,
        started_at=now,
        ended_at=None,
        question=None,
    )


def why_not_due(task: TaskRecord) -> str:
    if task.question is not None:
        return "it waits for an answer; see tasks.answer()"
    if task.waits_for is not None:
        return f"it waits for task {task.waits_for!r}"
    return "its time has not come; force=True begins it now"


def restarted(task: TaskRecord) -> TaskRecord:
    """A new generation: nothing that an earlier one did counts for it."""
    return task._replace(
        generation=task.generation + 1, attempts=0, done=0, total=0, result=None, error=None
    )


def progressed(task: TaskRecord, done: int, total: int) -> TaskRecord:
    check("progressed", task)
    return task._replace(done=done, total=total)


def completed(task: TaskRecord, result: bytes, now: int) -> TaskRecord:
    check("completed", task)
    return _ended(task, now)._replace(
        state="completed", result=result, error=None, done=task.total or task.done
    )


def failed(task: TaskRecord, error: str, now: int, *, again_at: int | None) -> TaskRecord:
    """An attempt failed; with `again_at` there will be another."""
    check("failed", task)
    ended = _ended(task, now)._replace(error=error)
    if again_at is None:
        return ended._replace(state="failed")
    return _pending(ended, again_at)


def overslept(task: TaskRecord, now: int, longest: int) -> bool:
    """Whether a task waits for its next attempt longer than any policy makes it wait: the clock
    was set back since."""
    waits = task.due or 0
    return task.attempts > 0 and waits > max(task.not_before, now + longest)


def woken(task: TaskRecord) -> TaskRecord:
    check("woken", task)
    return task._replace(due=task.not_before, epoch=task.epoch + 1)


def asked(task: TaskRecord, question: bytes, now: int) -> TaskRecord:
    """It waits for a person. That was no attempt that could have failed."""
    check("asked", task)
    return handed_back(task, now)._replace(due=None, question=question)


def answered(task: TaskRecord) -> TaskRecord:
    check("answered", task)
    if task.question is None:
        raise Conflict(f"task {task.name!r} has not asked anything")
    return _pending(task)._replace(question=None, epoch=task.epoch + 1)


def handed_back(task: TaskRecord, now: int) -> TaskRecord:
    """Given up before its end, and not by its own fault: the attempt does not count."""
    check("handed_back", task)
    return _pending(_ended(task, now))._replace(attempts=task.attempts - 1)


def interrupted(task: TaskRecord, now: int) -> TaskRecord:
    """Its process died. The attempt counts: it may be the task that kills its processes."""
    check("interrupted", task)
    ended = _ended(task, now)
    if task.attempts < task.max_attempts:
        return _pending(ended)
    times = "once" if task.attempts == 1 else f"{task.attempts} times"
    return ended._replace(state="failed", error=f"was begun {times} and its process died")


def cancelled(task: TaskRecord, now: int) -> TaskRecord:
    check("cancelled", task)
    ended = _ended(task, now)._replace(waits_for=None, question=None)
    return ended._replace(state="failed", error=CANCELLED)


def is_cancelled(state: str, error: str | None) -> bool:
    return (state, error) == ("failed", CANCELLED)


def retried(task: TaskRecord, *, extra: bool, force: bool = False) -> TaskRecord:
    """Back to work. With `extra` it gets one more attempt than it had, if it has none left; with
    `force` also what is completed, which starts over."""
    check("started over" if force else "retried", task)
    if is_by_name(task):
        raise Conflict(
            f"task {task.name!r} ({task.text}) is taken up by no runner: go on with it through "
            "what has begun it"
        )
    if task.state in ("completed", "rolled_back"):
        task = restarted(task)
    limit = max(task.max_attempts, task.attempts + 1) if extra else task.max_attempts
    return _pending(task)._replace(epoch=task.epoch + 1, max_attempts=limit, ended_at=None)


def rolled_back(task: TaskRecord, now: int) -> TaskRecord:
    """What it did is taken back; it runs again only if a caller asks for it."""
    check("rolled_back", task)
    return _ended(task, now)._replace(state="rolled_back", waits_for=None, question=None)


class Memo(NamedTuple):
    """What a task forgets when it is rolled back."""

    state: str
    due: int | None
    ended_at: int | None
    question: bytes | None


def memo(task: TaskRecord) -> Memo:
    return Memo(task.state, task.due, task.ended_at, task.question)


def reinstated(task: TaskRecord, memo: Memo) -> TaskRecord:
    """It was not to be rolled back after all. An attempt that was under way is lost, through no
    fault of its own: it does not count, and the task is to be done again."""
    check("reinstated", task)
    back = task._replace(epoch=task.epoch + 1, ended_at=memo.ended_at)
    if memo.state == "in_progress":
        return _pending(back)._replace(attempts=max(0, task.attempts - 1))
    due = memo.due
    if due is None and memo.question is None:
        due = task.not_before  # it waited for a task: whether it still has to, the store knows
    return back._replace(state=memo.state, due=due, question=memo.question)


def _pending(task: TaskRecord, due: int = 0) -> TaskRecord:
    """It waits for its turn, which does not come before its time."""
    return task._replace(state="pending", due=max(due, task.not_before))


def _ended(task: TaskRecord, now: int) -> TaskRecord:
    return task._replace(epoch=task.epoch + 1, owner=None, ended_at=now, due=0)
