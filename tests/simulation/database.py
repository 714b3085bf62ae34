"""The store of the simulation, and the network that leads to it.

The database is the real store in memory with a clock of its own. Each host reaches it by a
network that delays, loses requests, loses replies, is cut, and lets a request that its caller gave
up arrive late. As the store on PostgreSQL does, a call whose end is unknown is repeated, until its
time is up.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hardsave.errors import Unavailable
from hardsave.stores.base import Batch
from hardsave.stores.ledger import Moment
from hardsave.stores.memory.store import MemoryStore
from tests.simulation.world import SECOND, Killed, World

_PATIENCE = 10 * SECOND  # for which a call is repeated
_RESEND = SECOND  # after a request or a reply was lost
_REMOTE = frozenset(
    [
        *("commit", "task", "tasks", "task_by_key", "due", "retries", "journal"),
        *("owners", "hold", "let_go", "moment", "latest_entry"),
    ]
)

Written = Callable[[str, Batch], None]


class Database(MemoryStore):
    """One for all hosts. `written` is told of each batch that was accepted, and from which host."""

    is_shared = True

    def __init__(self, world: World, written: Written) -> None:
        super().__init__()
        self.offset = 0  # of the server's clock
        self.writer = ""
        self._world = world
        self._written = written

    def moment(self) -> Moment:
        return Moment(b"simulated", self._world.now + self.offset)

    def commit(self, batch: Batch) -> int:
        is_known = self._tenant(batch.user).number_of(batch) is not None
        number = super().commit(batch)
        if not is_known:
            self._written(self.writer, batch)
        return number


class Faults:
    """How bad a network is; all are chances of one message."""

    def __init__(self, *, request: float, reply: float, late: float) -> None:
        self.request, self.reply, self.late = request, reply, late


class Network:
    """The way of one host to the database."""

    def __init__(self, world: World, database: Database, host: str, faults: Faults) -> None:
        self.cut_until = 0
        self.calls: Counter[str] = Counter()
        self._world, self._database, self._host = world, database, host
        self._faults = faults
        self._latest = Moment(b"", 0)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._database, name)
        if name not in _REMOTE:
            return found
        return lambda *arguments, **options: self._call(name, *arguments, **options)

    def moment(self) -> Moment:
        """As every process sees the server's clock: it never goes back."""
        found: Moment = self._call("moment")
        self._latest = max(self._latest, found, key=lambda each: each.at)
        return self._latest

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        world, chance = self._world, self._world.random.random
        self.calls[name] += 1
        until = world.now + _PATIENCE
        while world.now < until:
            self._travel()
            if self.cut_until > world.now or chance() < self._faults.request:
                world.sleep(_RESEND)
                continue
            try:
                result = self._asked(name, *arguments, **options)
                error = None
            except Killed:
                raise
            except Exception as raised:  # noqa: BLE001 # it travels, too
                result, error = None, raised
            self._travel()
            if self.cut_until > world.now or chance() < self._faults.reply:
                world.sleep(_RESEND)
                continue
            if error is not None:
                raise error
            return result
        if chance() < self._faults.late:
            self._arrives_late(name, *arguments, **options)
        raise Unavailable(f"the database does not answer {self._host}; see that it runs")

    def _travel(self) -> None:
        self._world.sleep(self._world.random.uniform(100, 3_000))

    def _asked(self, name: str, *arguments: Any, **options: Any) -> Any:
        self._database.writer = self._host
        return getattr(self._database, name)(*arguments, **options)

    def _arrives_late(self, name: str, *arguments: Any, **options: Any) -> None:
        """What a caller gave up is carried out all the same, when the network is there again."""

        def happen() -> None:
            with suppress(Exception):  # its answer reaches no caller
                self._asked(name, *arguments, **options)

        self._world.at(self._world.now + int(self._world.random.uniform(0, 60) * SECOND), happen)
