"""The slots of a runner: how a store that knows what is due hands it to the threads of a process.

A slot is taken from the moment a hint comes until the attempt that it led to has ended. A process
that is told nothing for a while, or whose store tells nothing just now, asks the ledger itself.
"""

import queue
import random
from collections.abc import Callable, Collection
from time import monotonic

from hardsave.defaults import ASK_SECONDS
from hardsave.stores.dispatch import AGAIN, Answer
from hardsave.tasks import threads
from hardsave.tasks.task import Task
from hardsave.tuples import NamedTuple

WAIT_SECONDS = 0.1  # that a thread waits for a hint before it looks whether it is to stop
UNFED_SECONDS = 0.5  # between two looks at the ledger while no hints come


class Lanes(NamedTuple):
    """Where a hint is to wait for a task that a runner does not want, and which such it serves."""

    of: Callable[[Task], str | None]  # None: no hint is of use, its process finds it
    served: Collection[str] = ()


class Hint(NamedTuple):
    """A task that may be due, and what to call when its slot is free again."""

    task: str
    answer: Callable[[Answer], None]


class Slots(threads.Shared):
    """So many tasks at a time. See `stores.dispatch.Receiver`."""

    def __init__(self, count: int, *, wait_seconds: float = WAIT_SECONDS) -> None:
        super().__init__()
        self._wait_seconds = wait_seconds
        self._free = count
        self._hints: queue.SimpleQueue[Hint] = queue.SimpleQueue()
        self._is_closed = False
        self._is_fed = False
        self._ask_at = 0.0

    # For the store

    def offer(self, task: str, answer: Callable[[Answer], None]) -> bool:
        with self._mutex:
            if self._is_closed or not self._free:
                return False
            self._free -= 1
        self._hints.put(Hint(task, answer))
        return True

    def fed(self, is_fed: bool) -> None:
        self._is_fed = is_fed

    # For the threads

    def next(self) -> Hint | None:
        """The next hint, if one comes soon."""
        try:
            return self._hints.get(self._wait_seconds > 0, self._wait_seconds or None)
        except queue.Empty:
            return None

    def asks(self) -> bool:
        """Whether this thread is to ask the ledger now. It takes a slot, and says what it found."""
        with self._mutex:
            if self._is_closed or not self._free or monotonic() < self._ask_at:
                return False
            self._free -= 1
            self._ask_at = monotonic() + ASK_SECONDS  # no other thread asks meanwhile
            return True

    def has_asked(self, *, found: bool) -> None:
        """Where something was found there may be more. Processes do not ask in step."""
        rest = ASK_SECONDS * (0.5 + random.random()) if self._is_fed else UNFED_SECONDS  # noqa: S311 # no secret
        with self._mutex:
            self._ask_at = 0.0 if found else monotonic() + rest

    def free(self, hint: Hint | None, answer: Answer) -> None:
        """A slot is free again, which was taken for a hint or to ask."""
        with self._mutex:
            self._free += 1
        if hint is not None:
            hint.answer(answer)

    def close(self) -> None:
        """Nothing more begins: what has not goes to other processes."""
        with self._mutex:
            self._is_closed = True
        while True:
            try:
                self.free(self._hints.get_nowait(), AGAIN)
            except queue.Empty:
                return
