"""When a worker looks for dead ones again, and at what.

Each look reads all owners. A worker looks every second while there are few; of many each looks less
often, at random moments, so that all of them together do not read more and more. One that is left
alone has to notice the death of all others in time: no lease may be over for more than
`MOST_SECONDS`. Tasks whose owner has no lease at all are left by a session that ended without
handing them back: to find these is to read all tasks in progress, which is done rarely.

While the server of a shared store was away no worker could renew its lease, and the first to come
back would take all others for dead. So a worker whose look is answered late takes nothing from
others until each of them has had the time of a lease to come back, too, and to connect anew. The
same holds when the server's time has gone on and the worker's has not: the server's clock has
leapt, or the hosts have slept.
"""

import time
from collections.abc import Callable, Sequence

from hardsave.defaults import SERVER_SECONDS
from hardsave.objects.records import OwnerRecord
from hardsave.tasks.context import LedgerContext

LEAST_SECONDS = 1.0
MOST_SECONDS = 4.0
ORPHAN_SECONDS = 10.0
LEASE_PART = (
    6  # of a lease, in which a death is noticed at the latest if that is more than a second
)
AWAY_SECONDS = 1.5  # a look may be late by so much, or half of a lease if that is more
BACK_SECONDS = SERVER_SECONDS  # that others have at least to come back
LOOKS_A_SECOND = 8  # of all workers together, where each still looks in time


def sweep_seconds(owners: int, lease_seconds: float, chance: float) -> float:
    """Until the next look. `chance` is from 0 to 1."""
    longest = min(owners / LOOKS_A_SECOND, lease_seconds / LEASE_PART, MOST_SECONDS)
    return max(LEAST_SECONDS, longest * (1 + chance) / 2)


def orphan_seconds(owners: int, chance: float) -> float:
    """Until the next look at all tasks in progress. `chance` is from 0 to 1."""
    return max(ORPHAN_SECONDS, ORPHAN_SECONDS * owners / LOOKS_A_SECOND * (1 + chance) / 2)


class Sweeps:
    """The looks of one worker."""

    def __init__(
        self,
        context: LedgerContext,
        lease_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._owners = 0  # at the last look
        self._due = clock() + LEAST_SECONDS  # the next
        self._looked: tuple[float, int] | None = None  # by this process's time, and the store's
        self._patient_until = clock()
        self._orphans_due = clock() + ORPHAN_SECONDS

    def seconds(self) -> float:
        """Until the next look."""
        found = sweep_seconds(self._owners, self._lease_seconds, self._context.random())
        self._due = self._clock() + found
        return found

    def owners(self) -> Sequence[OwnerRecord] | None:
        """The owners to be looked at; None: all that there is."""
        if self._context.store.is_shared and self._is_patient():
            return ()
        found = self._context.store.owners(self._context.user)
        self._owners = len(found)
        if self._clock() < self._orphans_due:
            return found
        self._orphans_due = self._clock() + orphan_seconds(len(found), self._context.random())
        return None

    def _is_patient(self) -> bool:
        """Whether this worker was away, and others may be about to come back as well."""
        at, now = self._context.store.moment().at, self._clock()
        before, self._looked = self._looked, (now, at)
        missed = now - self._due
        if before is not None:
            missed = max(missed, (at - before[1]) / 1_000_000 - (now - before[0]))
        if missed > max(self._lease_seconds / 2, AWAY_SECONDS):
            self._patient_until = now + max(self._lease_seconds, BACK_SECONDS)
        return now < self._patient_until
