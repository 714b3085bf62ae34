"""Reclaims the tasks of dead owners: the reading and writing that goes with `recovery`'s decisions.

What a program that outlived its attempt still works on stays where it is, and so does the lease
of the dead: both are looked at again the next time.
"""

from collections.abc import Iterator, Mapping, Sequence

from hardsave.errors import Conflict, Unavailable
from hardsave.objects.records import EntryRecord, Id, OwnerRecord, TaskRecord
from hardsave.stores.host import location, processes
from hardsave.stores.ledger import TaskMove, TaskQuery, Work, every
from hardsave.tasks import recovery, states
from hardsave.tasks.child_lock import ChildLocks, Survivors
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.lease import held_here, taken_here
from hardsave.tasks.recovery import (
    MOST_LISTED,
    MOST_SHOWN,
    DeadSession,
    Fate,
    OutlivedTask,
    RecoveryReport,
)
from hardsave.tasks.stats import TaskStats
from hardsave.tasks.task import Task, maybe, moment, view
from hardsave.tuples import NamedTuple

_PAGE = 500
_FOR_ONE_HOST = "a local store is for one machine"


class Reclaimed(NamedTuple):
    """A dead owner, how that is known, and the tasks that were its, as they were."""

    owner: OwnerRecord | None  # None: it had no lease any more
    why: str
    tasks: list[TaskRecord]  # that no process works on: to be put back
    outlived: list[tuple[TaskRecord, Survivors]]
    held: Sequence[TaskRecord] = ()  # that no process works on, and that wait for an order

    @property
    def leaves_any(self) -> bool:
        """Whether tasks of it stay as they are: its lease stays then, too."""
        return bool(self.outlived or self.held)


def reclaim_from_dead(
    context: LedgerContext,
    session: str,
    *,
    take_over: bool,
    holds: bool = False,
    owners: Sequence[OwnerRecord] | None = None,
) -> list[Reclaimed]:
    """Put back to work what dead processes have left, one commit for each of them. With `holds`
    only what has no attempt left is settled: it counts as failed, and nothing runs by that. If the
    `owners` were read, only tasks of these are looked for.

    `Unavailable` if a process on another machine uses the ledger, unless it is taken over.
    """
    found = dead_owners(context, take_over=take_over, owners=owners)
    if holds:
        found = [_holding(each) for each in found]
    return [each for each in found if _is_reclaimed(context, session, each)]


def _holding(found: Reclaimed) -> Reclaimed:
    spent = [task for task in found.tasks if task.attempts >= task.max_attempts]
    held = [task for task in found.tasks if task.attempts < task.max_attempts]
    return found._replace(tasks=spent, held=held)


class Foreseen(NamedTuple):
    """What a recovery would do, and has not done: a look writes nothing."""

    become: Mapping[str, Task]  # by id, tasks of dead processes as they would stand then
    held: frozenset[str]  # those that would stay, and wait for an order
    owners: frozenset[Id]  # that have died


NOTHING_FORESEEN = Foreseen({}, frozenset(), frozenset())


def foreseen(context: LedgerContext, *, holds: bool) -> Foreseen:
    """What `reclaim_from_dead` would do. Of processes on other machines nothing can be told."""
    try:
        found = dead_owners(context, take_over=False)
    except Unavailable:
        return NOTHING_FORESEEN
    if holds:
        found = [_holding(each) for each in found]
    now = context.clock()
    become = [states.interrupted(task, now) for each in found for task in each.tasks]
    held = frozenset(task.name for each in found for task in each.held)
    owners = frozenset(each.owner.id for each in found if each.owner is not None)
    return Foreseen({task.name: view(task, context.codec) for task in become}, held, owners)


def reclaim_message(found: Reclaimed) -> str:
    """Who has died, and at what, in a line for people."""
    who = "a session" if found.owner is None else f"session {found.owner.session!r}"
    names = [repr(task.name) for task in found.tasks[:MOST_SHOWN]]
    more = len(found.tasks) - len(names)
    at = ", ".join(names) + (f" and {more} more" if more else "") or "nothing"
    return f"{who} has died: {found.why}; interrupted: {at}"


def dead_owners(
    context: LedgerContext, *, take_over: bool, owners: Sequence[OwnerRecord] | None = None
) -> list[Reclaimed]:
    """The owners that are dead and whose tasks were not reclaimed yet. Unless the `owners` are
    given, tasks whose owner has no lease are found, too."""
    running: list[TaskRecord] = []
    if owners is None:
        running += _in_progress(context, None)  # first: a process that claims has a lease before
        owners = context.store.owners(context.user)
    judged = (_judged(context, *each, take_over=take_over) for each in fates(context, owners))
    found = [each for each in judged if each is not None]
    orphans = recovery.orphaned(running, owners).values()
    return found + [_divided(context, None, "its lease is gone", tasks) for tasks in orphans]


def fates(context: LedgerContext, owners: Sequence[OwnerRecord]) -> list[tuple[OwnerRecord, Fate]]:
    """What became of each of them, but for those that are this very process."""
    here, now = location.here(), context.store.moment()
    ask = processes.started if processes.can_ask() else None
    held, taken = held_here(), taken_here()
    others = [owner for owner in owners if owner.id not in held]
    return [(owner, recovery.fate(owner, here, now, ask, taken)) for owner in others]


def _judged(
    context: LedgerContext, owner: OwnerRecord, fate: Fate, *, take_over: bool
) -> Reclaimed | None:
    if fate.is_ == "elsewhere" and not take_over:
        local = "the store has changed its clock" if context.store.is_shared else _FOR_ONE_HOST
        raise Unavailable(
            f"session {owner.session!r} uses this ledger too, and {fate.why}: {local}. If that "
            "one is gone, open the runner with take_over=True"
        )
    if fate.is_ == "alive":
        return None
    return _divided(context, owner, fate.why, list(_in_progress(context, owner.id)))


def _divided(
    context: LedgerContext, owner: OwnerRecord | None, why: str, tasks: Sequence[TaskRecord]
) -> Reclaimed:
    """What no process works on, apart from what a program still works on."""
    left = ChildLocks(context.store).survivors(tasks)
    free = [task for task in tasks if task.name not in left]
    outlived = [(task, left[task.name]) for task in tasks if task.name in left]
    return Reclaimed(owner, why, free, outlived)


def _in_progress(context: LedgerContext, owner: Id | None) -> Iterator[TaskRecord]:
    return every(context.store, context.user, TaskQuery(_PAGE, state="in_progress", owner=owner))


def _is_reclaimed(context: LedgerContext, session: str, found: Reclaimed) -> bool:
    """Put its tasks back and forget it, in one commit; False if another process was faster."""
    if found.leaves_any and not found.tasks:
        return True
    now = context.clock()
    gone = None if found.owner is None else found.owner.session
    moves = [TaskMove(task.epoch, states.interrupted(task, now)) for task in found.tasks]
    about = {"session": gone, "why": found.why}
    entries = [context.entry("interrupted", move.become, about) for move in moves]
    since = None if found.owner is None else found.owner.since
    whole = {**about, "since": since, "tasks": len(moves), "by": session}
    event = context.entry("recovered", None, whole)
    reclaim: Sequence[OwnerRecord] = (
        () if found.owner is None or found.leaves_any else (found.owner,)
    )
    try:
        context.commit(event, Work(moves=moves, entries=entries, reclaim=reclaim))
    except Conflict:
        return False
    ChildLocks(context.store).remove(found.tasks)
    return True


def report(
    context: LedgerContext,
    found: Sequence[Reclaimed],
    counts: TaskStats,
    *,
    is_start: bool = False,
    dry_run: bool = False,
    is_manual: bool = False,
) -> RecoveryReport:
    """What was found; at the start of a session also what others have found since the last one
    began, which no report of a start has told."""
    begun, stopped = (
        context.store.latest_entry(context.user, kind)
        for kind in ("session_started", "session_stopped")
    )
    dead = [
        DeadSession(session=each.owner.session, since=moment(each.owner.since), why=each.why)
        for each in found
        if each.owner is not None
    ]
    is_held = any(each.held for each in found)
    if is_start and not found:
        dead = _reclaimed_before(context, begun)
    return RecoveryReport(
        was_clean=not found and not dead and not _broke_off(context, begun, stopped),
        dead=dead,
        interrupted=[
            view(task, context.codec) for each in found for task in (*each.tasks, *each.held)
        ],
        outlived=[
            OutlivedTask(task=view(task, context.codec), survivors=left)
            for each in found
            for task, left in each.outlived
        ],
        last_session=None if begun is None else context.codec.decode(begun.data)["session"],
        last_start=maybe(None if begun is None else begun.created_at),
        last_stop=maybe(None if stopped is None else stopped.created_at),
        iterations=counts.iterations,
        incomplete_count=counts.pending + counts.in_progress,
        failed_count=counts.failed,
        incomplete=(_listed(context, "in_progress") + _listed(context, "pending"))[:MOST_LISTED],
        failed=_listed(context, "failed"),
        put_back=not dry_run and not is_held,
        is_manual=is_held or is_manual,
    )


def _broke_off(
    context: LedgerContext, begun: EntryRecord | None, stopped: EntryRecord | None
) -> bool:
    """Whether the last session said itself that its stop was not clean: if it had nothing under
    way, no dead process is to be found."""
    if begun is None or stopped is None or stopped.number < begun.number:
        return False
    return not context.codec.decode(stopped.data).get("clean", True)


def _reclaimed_before(context: LedgerContext, begun: EntryRecord | None) -> list[DeadSession]:
    """Who died last, if a session that runs, or a command, has put its tasks back."""
    latest = context.store.latest_entry(context.user, "recovered")
    if latest is None or (begun is not None and latest.number < begun.number):
        return []
    about = context.codec.decode(latest.data)
    if about["session"] is None or about.get("since") is None:
        return []
    why = about["why"] + ("; its tasks were put back to work then" if about["tasks"] else "")
    return [DeadSession(session=about["session"], since=moment(about["since"]), why=why)]


def _listed(context: LedgerContext, state: str) -> list[Task]:
    query = TaskQuery(MOST_LISTED, state=state)
    return [view(row, context.codec) for row in context.store.tasks(context.user, query)]
