"""When a worker looks for dead ones again, and at what.

Each look reads all owners. A worker looks every second while there are few; of many each looks less
often, at random moments, so that all of them together do not read more and more. One that is left
alone has to notice the death of all others in time: no lease may be over for more than
`MOST_SECONDS`. Tasks whose owner has no lease at all are left by a session that ended without
handing them back: to find these is to read all tasks in progress, which is done rarely.
"""

import time
from collections.abc import Callable, Sequence

from hardsave.objects.records import OwnerRecord
from hardsave.tasks.context import LedgerContext

LEAST_SECONDS = 1.0
MOST_SECONDS = 4.0
ORPHAN_SECONDS = 10.0
LEASE_PART = (
    6  # of a lease, in which a death is noticed at the latest if that is more than a second
)
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
        self._orphans_due = clock() + ORPHAN_SECONDS

    def seconds(self) -> float:
        """Until the next look."""
        return sweep_seconds(self._owners, self._lease_seconds, self._context.random())

    def owners(self) -> Sequence[OwnerRecord] | None:
        """The owners to be looked at; None: all that there is."""
        found = self._context.store.owners(self._context.user)
        self._owners = len(found)
        if self._clock() < self._orphans_due:
            return found
        self._orphans_due = self._clock() + orphan_seconds(len(found), self._context.random())
        return None
