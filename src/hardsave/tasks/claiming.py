"""Claiming a task: from a row that was read to an attempt under way.

The claim raises the task's epoch and names its owner in one commit. Of two who try, one gets it.
Whoever is interrupted, and will not work on it, gives it back.
"""

import contextlib
import os

from hardsave.errors import LeaseLost
from hardsave.objects.records import EntryRecord, TaskRecord
from hardsave.stores.ledger import TaskMove, Work
from hardsave.tasks import retry, states
from hardsave.tasks.attempt import Attempt
from hardsave.tasks.desk import Desk
from hardsave.tasks.lease import Lease
from hardsave.tasks.retry import Retry
from hardsave.tasks.steps import Journal, UnknownPolicy
from hardsave.tuples import NamedTuple


def begin(
    desk: Desk,
    lease: Lease,
    record: TaskRecord,
    *,
    force: bool = False,
    unknown: UnknownPolicy = "retry",
    retry: Retry = retry.DEFAULT,
) -> Attempt:
    """Claim a task as it was read; `Conflict` if it cannot be had."""
    is_first = record.started_at is None  # nobody can have written steps
    # Read before it is claimed: what cannot be read would leave a task with us that nobody works
    # on. Whoever adds a step in between raises the epoch, and then the claim does not hold.
    journal = Journal() if is_first else journal_of(desk, record)
    claims: list[_Claim] = []
    try:
        claimed = _claimed(desk, lease, record, claims, force=force)
        if claimed.generation != record.generation:
            journal = Journal()
        attempt = Attempt(desk, lease, claimed, journal, unknown=unknown, retry=retry)
        assert claimed.owner is not None
        lease.listen(attempt, claimed.owner)
        return attempt
    except Exception:
        raise
    except BaseException:  # Ctrl-C: whoever wanted it never gets it, and nobody else would end it
        for claim in claims:
            _returned(desk, claim)
        raise


def journal_of(desk: Desk, task: TaskRecord) -> Journal:
    return Journal(desk.store.journal(desk.user, task.name, task.generation))


class _Claim(NamedTuple):
    """What a claim has written, or may have."""

    event: EntryRecord
    work: Work
    record: TaskRecord


def _claimed(
    desk: Desk, lease: Lease, record: TaskRecord, claims: list[_Claim], *, force: bool
) -> TaskRecord:
    """The task, claimed. `claims` has it before it is written."""
    for _ in range(2):
        owner = lease.take()
        claimed = states.claimed(record, owner, desk.clock(), force=force)
        event = desk.entry("claimed", claimed, {"session": lease.session, "pid": os.getpid()})
        work = Work(moves=(TaskMove(record.epoch, claimed),), alive=(owner,))
        claims[:] = [_Claim(event, work, claimed)]
        try:
            desk.commit(event, work)
            return claimed
        except LeaseLost:
            if owner in {each.id for each in desk.store.owners(desk.user)}:
                raise
            lease.lose(owner)  # it was stopped for so long that others took it for dead
    raise LeaseLost(f"task {record.name!r} could not be claimed: the lease is lost again and again")


def _returned(desk: Desk, claim: _Claim) -> None:
    """Undo a claim of which it is unknown whether it was written: it is by now, or somebody else
    has the task."""
    with contextlib.suppress(LeaseLost):
        desk.commit(claim.event, claim.work)
        back = states.handed_back(claim.record, desk.clock())
        event = desk.entry("handed_back", back)
        desk.commit(event, Work(moves=(TaskMove(claim.record.epoch, back),)))
