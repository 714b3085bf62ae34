"""Many threads, one fsync, and no thread of its own.

The first caller becomes the leader: it takes everything that has queued up, runs it in one
go, and wakes the others with their answers. Whoever queued meanwhile leads the next round.
A caller that is alone pays for one lock and nothing else.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

LINGER_SECONDS = 0.002  # the longest a leader waits for the company of the last round


class Ticket(Generic[Item, Result]):
    """One caller's request, and later its answer: a result, an error, or neither."""

    __slots__ = ("_wake", "error", "item", "must_lead", "result")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.must_lead = False
        self._wake = threading.Lock()
        self._wake.acquire()

    def wait(self) -> None:
        self._wake.acquire()

    def wake(self) -> None:
        self._wake.release()


class Group(Generic[Item, Result]):
    """Runs items in rounds. `run` answers every ticket that it can; one that it leaves
    without an answer is unknown, and its caller gets None."""

    def __init__(self, run: Callable[[Sequence[Ticket[Item, Result]]], None]) -> None:
        self._run = run
        self._mutex = threading.Lock()
        self._waiting: list[Ticket[Item, Result]] = []
        self._leading = False
        self._company = 1  # how many the last round had

    def submit(self, item: Item) -> Result | None:
        """The item's result, once a round has run it. Its error is raised here."""
        ticket: Ticket[Item, Result] = Ticket(item)
        with self._mutex:
            self._waiting.append(ticket)
            lead = not self._leading
            self._leading = True
        if not lead:
            try:
                ticket.wait()
            except BaseException:
                self._withdraw(ticket)
                raise
        if lead or ticket.must_lead:
            self._lead(ticket)
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def _lead(self, own: Ticket[Item, Result]) -> None:
        """Run one round. However it ends, everybody in it is woken and somebody leads on."""
        tickets: list[Ticket[Item, Result]] = []
        try:
            self._linger()
            with self._mutex:
                tickets, self._waiting = self._waiting, []
            self._run(tickets)
        finally:
            self._company = len(tickets)
            self._pass_on(own)
            for ticket in tickets:
                if ticket is not own:
                    ticket.wake()

    def _linger(self) -> None:
        """Others came along last time: give them a moment, or each would pay its own fsync."""
        if self._company < 3:  # two are no crowd: one of them is often the merger
            return
        deadline = time.monotonic() + LINGER_SECONDS
        while len(self._waiting) < self._company and time.monotonic() < deadline:
            time.sleep(0.00005)

    def _pass_on(self, own: Ticket[Item, Result]) -> None:
        """Hand the lead to whoever waits longest. `own` may still wait, if it was interrupted."""
        with self._mutex:
            if own in self._waiting:
                self._waiting.remove(own)
            if self._waiting:
                self._waiting[0].must_lead = True
                self._waiting[0].wake()
            else:
                self._leading = False

    def _withdraw(self, ticket: Ticket[Item, Result]) -> None:
        """A waiting caller was interrupted: leave the queue, or hand on the lead it was given."""
        with self._mutex:
            must_lead = ticket.must_lead
            if not must_lead and ticket in self._waiting:
                self._waiting.remove(ticket)
        if must_lead:
            self._pass_on(ticket)
