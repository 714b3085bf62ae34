"""Simulated time: processes that take turns, one at a time, in an order that a seed decides.

A process is a thread that runs real code. It gives way only when it sleeps, so nothing of what
happens depends on the machine. A process can be paused, as by SIGSTOP, and killed.
"""

import heapq
import random
import threading
from collections.abc import Callable
from itertools import count

SECOND = 1_000_000  # all times are in microseconds
_STARTED_AT = 10**15


class Killed(BaseException):
    """Ends a process wherever it is; no code of it runs on."""


class Process:
    """One thread of the simulation."""

    def __init__(self, world: "World", body: Callable[[], None], host: str) -> None:
        self.host = host
        self.paused_until = 0
        self.is_killed = False
        self.is_over = False
        self._world = world
        self._body = body
        self._turn = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self.is_killed:
                self._body()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 # the world raises it
            self._world.error = error
        self.is_over = True
        self._world.done.release()

    def go(self) -> None:
        """Let it run until it sleeps or ends."""
        if not self._thread.is_alive() and not self.is_over:
            self._thread.start()
        self._turn.release()
        self._world.done.acquire()

    def give_way(self) -> None:
        self._world.done.release()
        self._turn.acquire()
        if self.is_killed:
            raise Killed


class World:
    """The clock, and what happens when."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = _STARTED_AT
        self.error: BaseException | None = None
        self.done = threading.Semaphore(0)
        self._events: list[tuple[int, int, Process | Callable[[], None]]] = []
        self._order = count()
        self._running: Process | None = None
        self.is_over = False

    @property
    def seconds(self) -> float:
        return (self.now - _STARTED_AT) / SECOND

    def spawn(self, body: Callable[[], None], host: str) -> Process:
        process = Process(self, body, host)
        self._push(self.now, process)
        return process

    def at(self, moment: int, happen: Callable[[], None]) -> None:
        self._push(moment, happen)

    def sleep(self, micros: float) -> None:
        """Give way for so long."""
        process = self.current()
        if process.is_killed:
            raise Killed
        self._push(self.now + max(1, int(micros)), process)
        process.give_way()

    def current(self) -> Process:
        assert self._running is not None
        return self._running

    def pause(self, process: Process, micros: int) -> None:
        process.paused_until = self.now + micros

    def kill(self, process: Process) -> None:
        process.is_killed = True

    def run(self, until_seconds: float) -> None:
        """Until the world is over, or so much time has passed; then what still runs is killed."""
        limit = self.now + int(until_seconds * SECOND)
        while self._events and not self.is_over and self.now < limit:
            self._step()
        for _, _, each in self._events:
            if isinstance(each, Process) and not each.is_over:
                self.kill(each)
                self._let(each)

    def _step(self) -> None:
        moment, _, what = heapq.heappop(self._events)
        self.now = max(self.now, moment)
        if not isinstance(what, Process):
            what()
        elif what.is_over:
            return
        elif what.paused_until > self.now and not what.is_killed:
            self._push(what.paused_until, what)
        else:
            self._let(what)

    def _let(self, process: Process) -> None:
        self._running = process
        process.go()
        self._running = None
        if self.error is not None:
            raise self.error

    def _push(self, moment: int, what: "Process | Callable[[], None]") -> None:
        heapq.heappush(self._events, (moment, next(self._order), what))


class Mutex:
    """A lock between processes of the world: one that waits sleeps."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._world.sleep(SECOND // 100)
        self._is_held = True

    def __exit__(self, *ended: object) -> None:
        self._is_held = False
