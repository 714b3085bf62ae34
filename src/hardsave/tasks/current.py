"""Whose work this is: the attempt that what happens here belongs to, if one is under way.

What a handler saves belongs to its attempt, in its thread and in its coroutine alike, without
being told so. A thread that it starts by itself belongs to no attempt.
"""

from contextvars import ContextVar
from typing import Protocol

from hardsave.errors import LeaseLost
from hardsave.objects.records import Id
from hardsave.stores.base import Store
from hardsave.stores.ledger import Fence, lost_message
from hardsave.tuples import NamedTuple


class Standing(NamedTuple):
    """Which attempt it is, and the epoch that it holds its task at."""

    task: str
    generation: int
    attempt: int
    epoch: int


class Work(Protocol):
    """An attempt, as seen by a save."""

    def is_at(self, store: Store, user: str | None) -> bool:
        """Whether its task is in this ledger."""

    def standing(self) -> Standing | None:
        """None once it has ended: what is saved after that is of none. One that was handed back
        or taken away stands where it was claimed, and nothing that it writes holds."""

    def lost(self) -> None:
        """Know that the task is another process's now."""

    def look(self, timeline: str) -> None:
        """What it does next on a timeline relies on what is there: see `tasks.appends`."""

    def begin_append(self, timeline: str, content: bytes) -> Id | None:
        """The id of a checkpoint that later attempts recognise; None if any will do."""

    def give_up_append(self, id: Id) -> None:
        """The append that got this id was not made."""


_current: ContextVar[Work | None] = ContextVar("hardsave_attempt", default=None)


def work(store: Store, user: str | None) -> Work | None:
    """The attempt at a task of this ledger that is under way here."""
    found = _current.get()
    return found if found is not None and found.is_at(store, user) else None


class Held(NamedTuple):
    """The attempt under way, and what each of its writes relies on."""

    work: Work
    fence: Fence


def held(store: Store, user: str | None) -> Held | None:
    """The attempt at a task of this ledger that what is done here belongs to."""
    found = work(store, user)
    standing = None if found is None else found.standing()
    if found is None or standing is None:
        return None
    return Held(found, Fence(standing.task, standing.epoch))


def check(store: Store, user: str | None) -> None:
    """`LeaseLost` if the attempt under way has its task no longer, by what the ledger says now."""
    own = held(store, user)
    if own is None:
        return
    task = store.task(user, own.fence.task)
    epoch = None if task is None else task.epoch
    if epoch != own.fence.epoch:
        own.work.lost()
        raise LeaseLost(lost_message(own.fence.task, epoch, own.fence.epoch))


class Working:
    """Inside, what is saved belongs to this attempt. It may be left twice, as by who was struck by
    Ctrl-C the first time; and in another context, which never knew of it: then nothing happens."""

    def __init__(self, attempt: Work) -> None:
        self._attempt = attempt
        self._around: Work | None = None

    def __enter__(self) -> None:
        if (around := _current.get()) is not self._attempt:
            self._around = around
            _current.set(self._attempt)

    def __exit__(self, *_: object) -> None:
        if _current.get() is self._attempt:
            _current.set(self._around)
