"""A ledger to try things on: in memory, with a clock that is moved by hand."""

from collections.abc import Callable
from typing import Any

import hardsave
from hardsave.objects.records import OwnerRecord
from hardsave.stores.base import Store
from hardsave.stores.ledger import Moment
from hardsave.stores.memory.store import MemoryStore
from hardsave.tasks.ledger import Tasks

START = 1_700_000_000_000_000
SECOND = 1_000_000
AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


class Clock:
    """Wall time, in microseconds."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def jump(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


class TimedStore(MemoryStore):
    """Its leases count in a time that is moved by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.since_boot = 1_000 * SECOND
        self.time_of = b"this store"

    def moment(self) -> Moment:
        return Moment(self.time_of, self.since_boot)


class Room:
    def __init__(self, store: Store | None = None, user: str | None = None) -> None:
        self.clock = Clock()
        self.store = store or TimedStore()
        self.vault = hardsave.Vault(self.store, user=user, clock=self.clock)

    @property
    def tasks(self) -> Tasks:
        return self.vault.tasks

    def kinds(self, id: str) -> list[str]:
        return [each.kind for each in self.tasks.history(id)]

    def run(self, handler: Callable[[hardsave.Attempt], Any], **how: Any) -> None:
        with self.tasks.runner("test") as runner:
            runner.run(handler, until_idle=True, **{"retry": AT_ONCE, **how})

    def abandon(self, session: str = "dead", **about: Any) -> OwnerRecord:
        """A lease of a process that is gone: on this machine, with a number that nobody has."""
        from hardsave.stores.host import location

        here, now = location.here(), self.store.moment()
        owner = OwnerRecord(
            b"dead" + session.encode()[:8].ljust(8),
            session,
            *here.numbering,
            2**22 + 1,  # above what Linux gives out
            77,
            START,
            now.at + 30 * SECOND,
            now.clock,
        )
        owner = owner._replace(**about)
        self.store.hold(self.vault.user, owner, is_new=True)
        return owner


class Counter:
    """Counts how often each effect happened."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __call__(self, value: Any) -> Any:
        self.calls.append(value)
        return value
