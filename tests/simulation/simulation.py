"""Workers of many hosts at one ledger, in simulated time, with the real rules.

Claims, leases, steps, ends and the reclaiming of what the dead have left are the code of
`hardsave.tasks`; so are the store's checks. Simulated are time, the network (`database`) and that a
process has a host of its own.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from hardsave.defaults import LEASE_HEARTBEATS
from hardsave.errors import Conflict, HardsaveError, StepUnknown, Unavailable
from hardsave.objects.codec import Codec
from hardsave.objects.records import Id, TaskRecord
from hardsave.objects.types import Types
from hardsave.stores.base import Batch, Store
from hardsave.stores.host import location, processes
from hardsave.stores.host.location import Location, Numbering
from hardsave.stores.ledger import TaskMove, Work
from hardsave.tasks import adding, lease, reclaim
from hardsave.tasks.attempt import Attempt
from hardsave.tasks.claiming import begin
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.lease import Lease
from hardsave.tasks.sweeps import Sweeps
from tests.simulation.database import Database, Faults, Network
from tests.simulation.oracle import Oracle
from tests.simulation.world import SECOND, Mutex, Process, World

SKEWS = (0, 0, 2, -2, 60, -3600, 3600)  # seconds by which the clocks of hosts are wrong
HINT_SECONDS = 0.5  # between two looks of a worker that found nothing: procrastinate's own polling


@dataclass(frozen=True)
class Setting:
    """What is simulated."""

    workers: int = 20
    jobs: int = 500
    steps: int = 3
    work_seconds: float = 1.0  # of a step, at most
    lease_seconds: float = 25.0
    crash_every: float = 8.0  # seconds, on average, of all workers together
    pause_every: float = 8.0
    cut_every: float = 8.0
    leap_every: float = 0.0  # of the server's clock, by up to an hour; 0: never
    faults: Faults = field(default_factory=lambda: Faults(request=0.005, reply=0.005, late=0.5))
    longest_seconds: float = 7_200.0


@dataclass
class Outcome:
    """What came of a run."""

    wrong: list[str]
    finished: int
    claims: int
    seconds: float
    crashes: int
    lost: int  # writes of workers that did not have their task any more, all refused
    takeovers: list[float]  # seconds from the death of a worker until its task was put back
    calls: Counter[str]


class _Lease(Lease):
    """A lease whose heartbeat is a process of the simulation."""

    def __init__(self, context: LedgerContext, session: str, seconds: float, world: World) -> None:
        super().__init__(context, session, seconds=seconds)
        self._mutex = cast(threading.Lock, Mutex(world))

    def _begin(self) -> None:
        passes = self._passing()
        owner = self._renewed(self._new())
        self._hold(owner)
        self._owner, self._passes, self._pid = owner, passes, os.getpid()


class Simulation:
    """One run; the same seed leads to the same."""

    def __init__(self, seed: int, setting: Setting) -> None:
        self.setting = setting
        self.oracle = Oracle()
        self.crashes = self.lost = 0
        self.takeovers: list[float] = []
        self.world = World(seed)
        self.database = Database(self.world, self._written)
        self.networks: list[Network] = []
        self._died: dict[str, int] = {}  # tasks of dead workers, and since when
        self._workers: dict[str, list[Process]] = {}
        self._leases: dict[str, _Lease] = {}
        self._skew = {host: self.world.random.choice(SKEWS) for host in self._hosts()}

    def run(self) -> Outcome:
        self._add_jobs()
        with _hosts_of_their_own(self):
            for host in self._hosts():
                self._start(host)
            self._plan_faults()
            self.world.run(self.setting.longest_seconds)
        calls: Counter[str] = sum((each.calls for each in self.networks), Counter())
        return Outcome(
            self.oracle.wrong,
            sum(self.oracle.finished.values()),
            sum(self.oracle.claims.values()),
            self.world.seconds,
            self.crashes,
            self.lost,
            self.takeovers,
            calls,
        )

    def _hosts(self) -> list[str]:
        return [f"host-{n}" for n in range(self.setting.workers)]

    def context(self, host: str) -> LedgerContext:
        world = self.world
        network = Network(world, self.database, host, self.setting.faults)
        self.networks.append(network)
        return LedgerContext(
            store=cast(Store, network),
            user=None,
            codec=Codec(Types()),
            redacted=lambda value: value,
            clock=lambda: world.now + self._skew.get(host, 0) * SECOND,
            new_id=lambda: world.random.randbytes(16),
            random=world.random.random,
            tell=lambda kind, task: None,
        )

    def _add_jobs(self) -> None:
        context = self.context("client")._replace(store=self.database)
        for n in range(self.setting.jobs):
            record = adding.new(
                context,
                id=f"job-{n}",
                text="",
                key=None,
                max_attempts=100,
                priority=n % 3,
                not_before=None,
                after=(),
                metadata=None,
            )
            context.commit(context.entry("added", record), Work(moves=(TaskMove(None, record),)))

    # Workers

    def _start(self, host: str) -> None:
        """A worker process on a host: its loop, its heartbeat, and its look for the dead."""
        context = self.context(host)
        held = _Lease(context, host, self.setting.lease_seconds, self.world)
        self._leases[host] = held
        self._workers[host] = [
            self.world.spawn(partial(self._work, context, held), host),
            self.world.spawn(partial(self._beat, held), host),
            self.world.spawn(partial(self._sweep, context), host),
        ]

    def _beat(self, held: _Lease) -> None:
        while True:
            self.world.sleep(held.seconds / LEASE_HEARTBEATS * SECOND)
            with suppress(HardsaveError):
                held.beat()

    def _sweep(self, context: LedgerContext) -> None:
        sweeps = Sweeps(context, self.setting.lease_seconds, clock=self.monotonic)
        while True:
            with suppress(HardsaveError):
                reclaim.reclaim_from_dead(context, "s", take_over=False, owners=sweeps.owners())
            self.world.sleep(sweeps.seconds() * SECOND)

    def _work(self, context: LedgerContext, held: _Lease) -> None:
        while True:
            try:
                attempt = self._claimed(context, held)
            except HardsaveError:
                attempt = None
            if attempt is None:
                self.world.sleep(HINT_SECONDS * SECOND)
            else:
                self._attempt(attempt)

    def _claimed(self, context: LedgerContext, held: _Lease) -> Attempt | None:
        found: list[TaskRecord] = context.store.due(None, self.world.now + self._ahead(), 8)
        self.world.random.shuffle(found)
        for record in found:
            try:
                return begin(context, held, record)
            except Conflict:
                continue
        return None

    def _ahead(self) -> int:
        return max(SKEWS) * SECOND  # a job is due at once, also by a clock that is behind

    def _attempt(self, attempt: Attempt) -> None:
        """As the executor does: an error of a step ends the attempt, and its end is recorded as
        often as it takes."""
        try:
            try:
                for n in range(self.setting.steps):
                    attempt.step(f"step-{n}", self._step)
            except Unavailable as error:
                self._again(partial(attempt.fail, error))
            else:
                self._again(partial(attempt.complete, "done"))
        except (Conflict, StepUnknown):
            self.lost += 1

    def _step(self) -> int:
        self.world.sleep(self.world.random.uniform(0.05, 1) * self.setting.work_seconds * SECOND)
        return 1

    def _again(self, call: Callable[[], object]) -> None:
        """Until the database has answered."""
        while True:
            try:
                call()
                return
            except Unavailable:
                self.world.sleep(SECOND)

    # What goes wrong

    def _plan_faults(self) -> None:
        setting = self.setting
        for every, happen in (
            (setting.crash_every, self._crash),
            (setting.pause_every, self._pause),
            (setting.cut_every, self._cut),
            (setting.leap_every, self._leap),
        ):
            if every:
                self._plan(every, happen)

    def _plan(self, every: float, happen: Any) -> None:
        def then() -> None:
            happen(self.world.random.choice(self._hosts()))
            self._plan(every, happen)

        after = self.world.random.expovariate(1 / every)
        self.world.at(self.world.now + int(after * SECOND), then)

    def _crash(self, host: str) -> None:
        """The worker is killed, and started again after a while, as another process."""
        processes = self._workers.pop(host, [])
        if not processes:
            return
        self.crashes += 1
        for process in processes:
            self.world.kill(process)
            process.paused_until = 0
        for task, (_, holder) in self.oracle.holders().items():
            if holder == host:
                self._died.setdefault(task, self.world.now)
        back = self.world.random.uniform(1, 120)
        self.world.at(self.world.now + int(back * SECOND), lambda: self._start(host))

    def _pause(self, host: str) -> None:
        micros = int(self.world.random.uniform(0.1, 3) * self.setting.lease_seconds * SECOND)
        for process in self._workers.get(host, []):
            self.world.pause(process, micros)

    def _cut(self, host: str) -> None:
        lasts = self.world.random.uniform(0.1, 3) * self.setting.lease_seconds
        until = self.world.now + int(lasts * SECOND)
        for network in self.networks:
            if network._host == host:
                network.cut_until = until

    def _leap(self, host: str) -> None:
        self.database.offset += int(self.world.random.uniform(-3600, 3600) * SECOND)

    def _written(self, host: str, batch: Batch) -> None:
        self.oracle.see(host, batch)
        for _, become in batch.work.moves:
            if become.state != "in_progress" and (since := self._died.pop(become.name, None)):
                self.takeovers.append((self.world.now - since) / SECOND)
        if len(self.oracle.finished) == self.setting.jobs:
            self.world.is_over = True

    # What a process knows of itself

    def held_by_current(self) -> set[Id]:
        held = self._leases.get(self.world.current().host)
        id = None if held is None else held.held()
        return set() if id is None else {id}

    def here(self) -> Location:
        """The same number on every host, as a machine's first process has it."""
        return Location(Numbering(self.world.current().host, b"boot", 1), 1, 1)

    def monotonic(self) -> float:
        return self.world.seconds


@contextmanager
def _hosts_of_their_own(simulation: Simulation) -> Iterator[None]:
    with ExitStack() as patched:
        for target, name, value in (
            (reclaim, "held_here", simulation.held_by_current),
            (reclaim, "taken_here", simulation.held_by_current),
            (location, "here", simulation.here),
            (processes, "can_ask", lambda: False),
            (lease, "time", SimpleNamespace(monotonic=simulation.monotonic)),
        ):
            patched.enter_context(mock.patch.object(target, name, value))
        yield
