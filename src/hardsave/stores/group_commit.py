"""Group commit: many threads, one fsync, and no thread of its own.

The first caller becomes the leader: it takes everything that has queued up, runs it in one
go, and wakes the others with their answers. The first that queued meanwhile leads the next group.
A caller that is alone pays for one lock and nothing else.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from threading import TIMEOUT_MAX, get_ident
from typing import Generic, TypeVar

from hardsave.errors import Misuse
from hardsave.progress import check_deadline, within_deadline
from hardsave.stores.base import NESTED

Item = TypeVar("Item")
Result = TypeVar("Result")

REPEATS = 30  # of an item whose group failed under another leader; its own error ends it at once
SETTLE_SECONDS = 5.0  # the longest that a Ctrl-C waits for the group of another leader
LOOK_SECONDS = 0.02  # between two looks whether that is over
LINGER_SECONDS = 0.002  # the longest a leader waits for the callers of the last group


class Ticket(Generic[Item, Result]):
    """One caller's request, and later its answer: a result, an error, or neither."""

    __slots__ = ("_wake", "error", "item", "result")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.result: Result | None = None
        self.error: BaseException | None = None
        self._wake: threading.Lock | None = None

    def queue(self) -> None:
        """From now on it can be waited for. A caller that leads at once never waits."""
        wake = threading.Lock()
        wake.acquire()
        self._wake = wake

    def wait(self, seconds: float) -> bool:
        """Whether it was woken by then."""
        return self._wake is None or self._wake.acquire(timeout=seconds)

    def wake(self) -> None:
        """Let the caller go on. A second call does no harm."""
        if self._wake is not None and self._wake.locked():
            with contextlib.suppress(RuntimeError):  # woken in the same moment
                self._wake.release()


class GroupCommit(Generic[Item, Result]):
    """Runs items in groups. `run` answers every ticket that it can, the leader's first; one that it
    leaves without an answer is unknown, and its caller gets None.

    A Ctrl-C may strike anywhere, and so may an error that a signal handler raises. The caller that
    it strikes leaves in a state from which the others go on: what is left to do for them is kept in
    `_leader`, `_heir` and `_group` until it is done.
    """

    def __init__(self, run: Callable[[Sequence[Ticket[Item, Result]]], None]) -> None:
        self._run = run
        self._mutex = threading.Lock()
        self._inside: set[int] = set()  # threads, from before they take the mutex until after
        self._waiting: list[Ticket[Item, Result]] = []
        self._leader: Ticket[Item, Result] | None = None
        self._heir: Ticket[Item, Result] | None = None  # a leader that is still to be woken
        self._group: list[Ticket[Item, Result]] = []  # those still to be woken
        self._last_size = 1  # how many the last group had

    def submit(self, item: Item) -> Result | None:
        """The item's result, once a group has run it. Its error is raised here.

        A handler of a signal, or a finalizer, interrupts its thread anywhere, which cannot go on
        before it has returned: one that submits there would wait for itself, or for a leader that
        waits for a mutex that its own thread holds.
        """
        thread = get_ident()
        if thread in self._inside:
            raise Misuse(NESTED)
        try:
            self._inside.add(thread)
            return self._submit(Ticket(item))
        finally:
            self._inside.discard(thread)

    def _submit(self, ticket: Ticket[Item, Result]) -> Result | None:
        is_over = False
        try:
            with self._mutex:
                if self._leader is None:
                    self._leader = ticket
                else:
                    ticket.queue()
                self._waiting.append(ticket)
            if self._leader is not ticket and not ticket.wait(within_deadline(TIMEOUT_MAX)):
                check_deadline()
            if self._leader is ticket:
                self._lead()
            is_over = True
        finally:
            # Others depend on this, so it is done however often it is interrupted.
            interrupted: BaseException | None = None
            while self._leader is ticket or self._heir is not None or ticket in self._waiting:
                try:
                    self._hand_over(ticket)
                except RecursionError:  # would come again and again
                    raise
                except BaseException as error:  # noqa: BLE001 # raised below
                    interrupted = error
            if not is_over:
                self._settle(ticket)
            if interrupted is not None:
                raise interrupted
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def _settle(self, ticket: Ticket[Item, Result]) -> None:
        """In a moment another has written it, or has not. A caller that was interrupted as it was
        woken is not woken again: so it looks, too."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while ticket in self._group and time.monotonic() < deadline:
            ticket.wait(LOOK_SECONDS)

    def _lead(self) -> None:
        if self._last_size > 2:  # two are no crowd: one of them is often the merger
            self._linger()
        with self._mutex:
            self._group, self._waiting = self._waiting, []
        tickets = self._group.copy()
        self._last_size = len(tickets)
        self._run(tickets)

    def _linger(self) -> None:
        """Others came along last time: give them a moment, or each would pay its own fsync."""
        deadline = time.monotonic() + LINGER_SECONDS
        while len(self._waiting) < self._last_size and time.monotonic() < deadline:
            time.sleep(0.00005)

    def _hand_over(self, ticket: Ticket[Item, Result]) -> None:
        """Wake the group, and let the caller that waits longest lead the next. May be repeated."""
        if self._leader is ticket:
            while self._group:
                if self._group[-1] is not ticket:
                    self._group[-1].wake()
                self._group.pop()
        with self._mutex:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if self._leader is ticket:
                self._leader = self._heir = self._waiting[0] if self._waiting else None
            if self._heir is not None:
                self._heir.wake()
                self._heir = None
