"""Who is dead, and what that left behind. The decision is pure; reading is done by others."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Literal

from hardsave.defaults import MAX_LEASE_SECONDS
from hardsave.objects.records import Id, OwnerRecord, TaskRecord
from hardsave.record import Record
from hardsave.stores.host.location import Location, Numbering
from hardsave.stores.host.processes import UNKNOWN
from hardsave.stores.ledger import Moment
from hardsave.tasks import states
from hardsave.tasks.child_lock import Survivors
from hardsave.tasks.task import Task
from hardsave.tuples import NamedTuple

MAX_LEASE = MAX_LEASE_SECONDS * 1_000_000  # as stores count
MOST_SHOWN = 10  # in the text
MOST_LISTED = 50  # tasks of a kind in a report; the counts are of all


class Fate(NamedTuple):
    """What became of an owner, and how we know."""

    is_: Literal["alive", "dead", "elsewhere"]
    why: str


def fate(
    owner: OwnerRecord,
    here: Location,
    now: Moment,
    started: Callable[[int], int | None] | None,
    ours: Collection[Id],
) -> Fate:
    """Judge an owner. `started` tells when a process here began; None: that cannot be asked. `ours`
    are the owners that this program has been: another one of its number was there before it.

    Two things can be known, and they have nothing to do with each other: whether a process is there
    of whose numbering we are, and whether a lease has passed that counts in the store's time of
    today. Where a store's time is that of one boot, a lease of another boot is of before a restart,
    or of another host; which of the two, only the host's name can tell.
    """
    numbering = Numbering(owner.host, owner.boot, owner.space)
    if started is not None and numbering == here.numbering and owner.pid_started:
        found = started(owner.pid)
        if found is None:
            return Fate("dead", f"process {owner.pid} is gone")
        if found not in (owner.pid_started, UNKNOWN):
            return Fate("dead", f"process {owner.pid} is another one now")
        if owner.pid == here.pid and owner.id not in ours:
            return Fate("dead", f"process {owner.pid} has begun its program anew")
    if owner.clock != now.clock:
        if owner.host != here.numbering.host:
            return Fate("elsewhere", f"it runs on {owner.host}")
        return Fate("dead", "the machine has restarted since")
    if owner.until <= now.at:
        return Fate("dead", "its lease has passed")
    if owner.until > now.at + MAX_LEASE:
        return Fate("dead", "its lease is from before a restart")
    return Fate("alive", "its lease holds")


def orphaned(
    running: Iterable[TaskRecord], owners: Iterable[OwnerRecord]
) -> dict[Id | None, list[TaskRecord]]:
    """Tasks in progress whose owner has no lease at all, by that owner."""
    known = {owner.id for owner in owners}
    found: dict[Id | None, list[TaskRecord]] = {}
    for task in running:
        if task.owner not in known:
            found.setdefault(task.owner, []).append(task)
    return found


def holder(task: TaskRecord, owners: Iterable[OwnerRecord]) -> str:
    """Which process is at work on a task, for the message to another that wants it too."""
    found = next((owner for owner in owners if owner.id == task.owner), None)
    if found is None:
        return "a process that is not known"
    return f"process {found.pid} (session {found.session!r})"


class DeadSession(Record):
    """A session that ended without saying so."""

    session: str
    since: datetime
    why: str


class OutlivedTask(Record):
    """A task whose process has died, while a program that it had started works on."""

    task: Task
    survivors: Survivors

    def __str__(self) -> str:
        return (
            f"task {self.task.id!r} is still worked on by {self.survivors}, which has outlived "
            "the process that started it: the task is put back when that has ended. End it, or "
            "cancel the task"
        )


def _has_left(task: Task) -> bool:
    """Whether a task that was interrupted has an attempt left."""
    return task.attempts < task.max_attempts


class RecoveryReport(Record):
    """What was found at the start of a session. Its text is meant for people."""

    was_clean: bool
    """No process had died, nothing was interrupted, and the last session was ended properly."""
    dead: Sequence[DeadSession]
    interrupted: Sequence[Task]
    """As they were when their process died."""
    outlived: Sequence[OutlivedTask]
    """What is not put back yet: a program is still at work on it."""
    last_session: str | None
    last_start: datetime | None
    last_stop: datetime | None
    iterations: int
    incomplete_count: int
    failed_count: int
    incomplete: Sequence[Task]
    """The first of them: those that a process is at work on, or was, before those that wait."""
    failed: Sequence[Task]
    put_back: bool = True
    """Whether what was interrupted is back at work."""
    is_manual: bool = False
    """Whether only `tasks.recover()` puts it back; else the next runner does."""

    def __str__(self) -> str:
        if self.was_clean:
            return f"clean start: {self._left()}, {self._failed()}"
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        yield "the last session was not stopped cleanly"
        for dead in self.dead:
            yield f"  session {dead.session!r}, begun {_moment(dead.since)}: {dead.why}"
        for task in self.interrupted[:MOST_SHOWN]:
            what = self._again() if _has_left(task) else "has no attempt left, and counts as failed"
            yield (
                f"  interrupted: {task.id} ({task.text!r}), attempt {task.attempts} of "
                f"{task.max_attempts}, begun {_moment(task.started_at)}: {what}"
            )
        if len(self.interrupted) > MOST_SHOWN:
            yield f"  and {len(self.interrupted) - MOST_SHOWN} more"
        for each in self.outlived:
            yield f"  {each}"
        goes_on = self.put_back and not self.outlived and all(map(_has_left, self.interrupted))
        yield (
            f"  {self._left()}, {self._failed()}, {self.iterations} iterations so far"
            + ("; work goes on, nothing to do by hand" if goes_on else "")
        )

    def _again(self) -> str:
        """What becomes of a task that was interrupted and has an attempt left."""
        if self.put_back:
            return "will run again"
        return "waits for " + ("'hardsave tasks recover'" if self.is_manual else "the next runner")

    def _left(self) -> str:
        return f"{self.incomplete_count} task{'' if self.incomplete_count == 1 else 's'} to do"

    def _failed(self) -> str:
        """What was cancelled has not failed; told apart where all of them are listed."""
        is_whole = self.failed_count == len(self.failed)
        cancelled = sum(states.is_cancelled(each.state, each.error) for each in self.failed)
        if not cancelled or not is_whole:
            return f"{self.failed_count} failed"
        return f"{self.failed_count - cancelled} failed, {cancelled} cancelled"


def _moment(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
