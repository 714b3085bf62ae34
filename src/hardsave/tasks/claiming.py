"""Claiming a task: from a row that was read to an attempt under way.

The claim raises the task's epoch and names its owner in one commit. Of two who try, one gets it;
also of two who each got it of another server, because no two claims raise it to the same.
A caller that is interrupted, and will not work on it, gives it back.
"""

import contextlib
import os

from hardsave.errors import LeaseLost
from hardsave.objects.records import EntryRecord, TaskRecord
from hardsave.stores.ledger import TaskMove, Work
from hardsave.tasks import retry, states
from hardsave.tasks.attempt import Attempt
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.lease import Lease
from hardsave.tasks.retry import Retry
from hardsave.tasks.steps import Journal, UnknownPolicy
from hardsave.tuples import NamedTuple


def begin(
    context: LedgerContext,
    lease: Lease,
    record: TaskRecord,
    *,
    force: bool = False,
    unknown: UnknownPolicy = "retry",
    retry: Retry = retry.DEFAULT,
) -> Attempt:
    """Claim a task as it was read; `Conflict` if it cannot be had."""
    is_first = record.started_at is None  # no attempt can have written steps
    # Read before it is claimed: what cannot be read would leave a task with us that is not worked
    # on. A process that adds a step in between raises the epoch, and then the claim does not hold.
    journal = Journal() if is_first else journal_of(context, record)
    claims: list[_Claim] = []
    try:
        claimed = _claimed(context, lease, record, claims, force=force)
        if claimed.generation != record.generation:
            journal = Journal()
        attempt = Attempt(context, lease, claimed, journal, unknown=unknown, retry=retry)
        assert claimed.owner is not None
        lease.listen(attempt, claimed.owner)
        return attempt
    except Exception:
        raise
    except BaseException:  # Ctrl-C: the caller never gets it, and no other code would end it
        for claim in claims:
            _returned(context, claim)
        raise


def journal_of(context: LedgerContext, task: TaskRecord) -> Journal:
    return Journal(context.store.journal(context.user, task.name, task.generation))


class _Claim(NamedTuple):
    """What a claim has written, or may have."""

    event: EntryRecord
    work: Work
    record: TaskRecord


def _claimed(
    context: LedgerContext, lease: Lease, record: TaskRecord, claims: list[_Claim], *, force: bool
) -> TaskRecord:
    """The task, claimed. `claims` has it before it is written."""
    for _ in range(2):
        owner = lease.take()
        leap = 1 + int(context.random() * states.MOST_LEAP)
        claimed = states.claimed(record, owner, context.clock(), force=force, leap=leap)
        event = context.entry("claimed", claimed, {"session": lease.session, "pid": os.getpid()})
        work = Work(moves=(TaskMove(record.epoch, claimed),), alive=(owner,))
        claims[:] = [_Claim(event, work, claimed)]
        try:
            context.commit(event, work)
            return claimed
        except LeaseLost:
            if owner in {each.id for each in context.store.owners(context.user)}:
                raise
            lease.lose(owner)  # it was stopped for so long that others took it for dead
    raise LeaseLost(f"task {record.name!r} could not be claimed: the lease is lost again and again")


def _returned(context: LedgerContext, claim: _Claim) -> None:
    """Undo a claim of which it is unknown whether it was written: it is by now, or another process
    has the task."""
    with contextlib.suppress(LeaseLost):
        context.commit(claim.event, claim.work)
        back = states.handed_back(claim.record, context.clock())
        event = context.entry("handed_back", back)
        context.commit(event, Work(moves=(TaskMove(claim.record.epoch, back),)))
