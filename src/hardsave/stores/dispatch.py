"""How a process is told which task is due, where a store can tell: so that it need not keep asking.

Contract. What is told is a hint, and the ledger decides: a hint may come twice, too late, or for a
task that another process has by now, and it may be lost. So a process that is told nothing for a
while still asks the ledger what is due.

Lanes
    A process that is told of a task which it cannot run answers with the lane of that task: the
    same text in every process. The hint waits in that lane for a process that serves it.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

from hardsave.stores.base import Store
from hardsave.tuples import NamedTuple


class Answer(NamedTuple):
    """What became of a hint. Without either it is done with."""

    lane: str | None = None  # it waits there, for another process
    again: bool = False  # another process, or this one, is told a moment later


DONE = Answer()
AGAIN = Answer(again=True)


class Receiver(Protocol):
    """A process that runs tasks. Its methods return at once, and may be called in any thread."""

    def offer(self, task: str, answer: Callable[[Answer], None]) -> bool:
        """Be told of a task. False: every slot is taken. Else `answer` is called once, when the
        slot is free again."""

    def fed(self, is_fed: bool) -> None:
        """Whether hints come; while they do not, the process asks the ledger alone."""


class Periodic(NamedTuple):
    """Something that is to happen again and again. `add` is called with the time of an occurrence,
    in UTC, by one process of all that have one of this name, at least once."""

    name: str
    cron: str
    add: Callable[[datetime], object]


class Hints(NamedTuple):
    """What a process wants to be told."""

    receiver: Receiver
    concurrency: int  # hints that may be unanswered at a time
    lanes: Collection[str] = ()
    periodic: Sequence[Periodic] = ()


@runtime_checkable
class Dispatching(Protocol):
    """A store that tells which task is due, on all hosts that use it."""

    def dispatch(self, user: str | None, hints: Hints) -> AbstractContextManager[None] | None:
        """Tell it from the beginning of the block to its end. At the end the receiver has answered
        what it has not begun. None if this process cannot be told, for a reason that is logged."""


def dispatch(store: Store, user: str | None, hints: Hints) -> AbstractContextManager[None] | None:
    """None where a process has to ask."""
    return store.dispatch(user, hints) if isinstance(store, Dispatching) else None
