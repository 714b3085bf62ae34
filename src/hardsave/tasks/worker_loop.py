"""A round of work: what is due is claimed, and its end is recorded. Who calls the handlers, and
in which threads or coroutines, is the caller's business."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from hardsave.defaults import POLL_SECONDS
from hardsave.errors import Conflict, HardsaveError, LeaseLost, Misuse, Unavailable
from hardsave.logs import log
from hardsave.objects.records import TaskRecord
from hardsave.stores.dispatch import AGAIN, DONE, Answer
from hardsave.stores.ledger import TaskMove, Work
from hardsave.tasks import states, threads
from hardsave.tasks.attempt import Attempt, look
from hardsave.tasks.claiming import begin
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.lease import Lease
from hardsave.tasks.retry import Retry, longest_seconds
from hardsave.tasks.slots import Hint, Lanes, Slots
from hardsave.tasks.steps import UnknownPolicy
from hardsave.tasks.task import Task, view
from hardsave.tuples import NamedTuple

AGAIN_SECONDS = 1.0  # after the store could not be written
REST = 4.0  # for so many times as long as it has looked in vain
LONGEST_REST = 15.0  # seconds: a look may have taken long because its process was stopped
LONGEST_CLAIM = 5.0  # that a loop which ends waits for

_PAGE = 500
_FOR_EVER = states.NEVER_COMES - 1
_SKEW = 5_000_000  # by which the clock of a host may be behind that of the store, in microseconds

_log = log(__name__)

Wants = Callable[[Task], bool]


class Terms(NamedTuple):
    """How tasks are run."""

    concurrency: int
    unknown: UnknownPolicy
    retry: Retry
    wants: Wants | None = None  # None: all that is due
    come_first: bool = False  # what is wanted has a higher priority than all else
    lanes: Lanes | None = None  # where others find what this one does not want


class Outcome(NamedTuple):
    """How a handler ended."""

    result: Any = None
    error: BaseException | None = None


class WorkerLoop(threads.Shared):
    """Attempts of one lease. Threads share it."""

    def __init__(
        self, context: LedgerContext, lease: Lease, terms: Terms, slots: Slots | None = None
    ) -> None:
        super().__init__()
        self.stop = threading.Event()  # nothing more is to begin
        self._slots = slots  # None: the ledger is asked what is due
        self._hinted: dict[Attempt, Hint | None] = {}  # whose slot each attempt has
        self._context = context
        self._lease = lease
        self._terms = terms
        self._unclaiming = threading.Condition(self._mutex)
        self._candidates: deque[TaskRecord] = deque()
        self._rests_until = 0.0
        self._fresh_until = 0.0
        self._claiming = 0
        self._running: dict[Attempt, Outcome | None] = {}  # and how it has ended, if it has
        self._is_given_up = threading.Event()
        self._worries: dict[str, str] = {}  # and what was last said about each

    def _begin_in_child(self) -> None:
        """No thread claims anything here: those that do are in the parent."""
        super()._begin_in_child()
        self._unclaiming = threading.Condition(self._mutex)
        self._claiming = 0
        self.stop, self._is_given_up = _anew(self.stop), _anew(self._is_given_up)

    def next(self) -> Attempt | None:
        """Claim what is due next; None if nothing is, or it cannot be had now."""
        worry = "no task can be claimed for now"
        try:
            attempt = self._next_due() if self._slots is None else self._next_in(self._slots)
            self.settled(worry)
        except Unavailable as error:
            self.report(worry, error)
            self.stop.wait(AGAIN_SECONDS)
            return None
        # One that was claimed while it was told to stop is handed back with the rest: its handler
        # has not begun.
        return None if self.stop.is_set() else attempt

    def rest(self) -> None:
        """Before the next look; a thread that waits for hints has rested."""
        if self._slots is None:
            self.stop.wait(POLL_SECONDS)

    def _next_due(self) -> Attempt | None:
        while (record := self._candidate()) is not None:
            if (attempt := self._claimed(record)) is not None:
                return attempt
        return None

    def _next_in(self, slots: Slots) -> Attempt | None:
        """The task that the store tells of, or one that the ledger knows and no hint came for."""
        hint = slots.next()
        if hint is not None:
            return self._hinted_at(slots, hint)
        if not self.stop.is_set() and slots.asks():
            return self._asked(slots)
        return None

    def _hinted_at(self, slots: Slots, hint: Hint) -> Attempt | None:
        attempt, answer = None, AGAIN
        try:
            record = self._context.store.task(self._context.user, hint.task)
            found = self._answer(record)
            if found is None and record is not None and self._begins():
                now = self._context.clock()
                attempt = self._claimed(record._replace(due=min(record.due or 0, now)))
                found = DONE  # if there is none, another process has it
            answer = AGAIN if found is None else found
            return attempt
        finally:
            self._take_slot(slots, hint, attempt, answer)

    def _begins(self) -> bool:
        with self._mutex:
            if self.stop.is_set():
                return False
            self._claiming += 1
            return True

    def _answer(self, record: TaskRecord | None) -> Answer | None:
        """What becomes of a hint, as the ledger has it; None if the task is to be claimed here."""
        if record is None or record.state != "pending" or record.due is None:
            return DONE
        if record.due > self._context.clock() + _SKEW:
            return AGAIN
        if self._is_wanted(record):
            return None
        lanes = self._terms.lanes
        if lanes is None:
            return AGAIN
        lane = lanes.of(view(record, self._context.codec))
        return DONE if lane is None else Answer(lane)

    def _asked(self, slots: Slots) -> Attempt | None:
        attempt = None
        try:
            attempt = self._next_due()
            return attempt
        finally:
            slots.has_asked(found=attempt is not None)
            self._take_slot(slots, None, attempt, DONE)

    def _take_slot(
        self, slots: Slots, hint: Hint | None, attempt: Attempt | None, answer: Answer
    ) -> None:
        """The slot is the attempt's, until its end; free, if there is none."""
        if attempt is None:
            slots.free(hint, answer)
        else:
            with self._mutex:
                self._hinted[attempt] = hint

    def report(self, worry: str, error: HardsaveError) -> None:
        """Log what goes wrong, once for as long as it stays the same: it is tried again every
        second, and a disk that is full does not become emptier by being told so."""
        if self._worries.get(worry) != str(error):
            self._worries[worry] = str(error)
            _log.error("%s: %s; it is tried again", worry, error)
            _log.debug("%s: every frame", worry, exc_info=error)

    def settled(self, worry: str) -> None:
        """It goes well, or is not tried any more."""
        self._worries.pop(worry, None)

    def _candidate(self) -> TaskRecord | None:
        with self._mutex:
            if self.stop.is_set():
                return None
            if self._candidates and monotonic() >= self._fresh_until:
                self._candidates.clear()  # something of a higher priority may have come meanwhile
            if not self._candidates:
                self._look_for_more()
            if not self._candidates:
                return None
            self._claiming += 1
            return self._candidates.popleft()

    def _look_for_more(self) -> None:
        """A look past a hundred thousand tasks that others are to run takes a second: a loop that
        has looked in vain rests longer than that took, and what was found is good for as long."""
        began = monotonic()
        if began < self._rests_until and not self._terms.come_first:  # these look past no task
            return
        limit = max(4, self._terms.concurrency)
        self._candidates.extend(self._due(self._context.clock(), limit))
        now = monotonic()
        rest = min(REST * (now - began), LONGEST_REST)
        self._fresh_until = now + max(POLL_SECONDS, rest)
        if not self._candidates:
            self._rests_until = now + rest

    def _due(self, until: int, limit: int) -> list[TaskRecord]:
        """The first that are due and wanted: it looks further if others stand before them."""
        seen: set[str] = set()
        while True:
            found = self._context.store.due(self._context.user, until, limit)
            wanted = [task for task in found if task.name not in seen and self._is_wanted(task)]
            if wanted or len(found) < limit or self._terms.come_first:
                return wanted
            seen.update(task.name for task in found)
            limit *= 4

    def _is_wanted(self, task: TaskRecord) -> bool:
        wants = self._terms.wants
        return wants is None or wants(view(task, self._context.codec))

    def _claimed(self, record: TaskRecord) -> Attempt | None:
        attempt = None
        try:
            terms = self._terms
            attempt = begin(
                self._context, self._lease, record, unknown=terms.unknown, retry=terms.retry
            )
        except Conflict:
            pass  # another process has it
        finally:
            with self._mutex:
                self._claiming -= 1
                if attempt is not None:
                    self._running[attempt] = None
                if self.stop.is_set():
                    self._unclaiming.notify_all()
        return attempt

    def is_idle(self) -> bool:
        """Whether nothing is under way here, nothing is due, and nothing waits to be retried."""
        with self._mutex:
            if self._running or self._candidates or self._claiming:
                return False
        now = self._context.clock()
        if self._due(now, _PAGE):
            return False
        longest = self._longest
        return not any(
            (task.due or 0) <= now + longest or states.overslept(task, now, longest)
            for task in self._retries(now, _FOR_EVER)
            if self._is_wanted(task)
        )

    def tell_the_lost(self) -> None:
        """Handlers that take long learn that their task was cancelled, before they write."""
        with self._mutex:
            running = list(self._running)
        for attempt in running:
            look(attempt)

    def wake_the_overslept(self) -> None:
        """Tasks that a clock which was set back would hold up for as long as that."""
        now, longest = self._context.clock(), self._longest
        for task in self._retries(now + longest, _FOR_EVER):
            if states.overslept(task, now, longest):
                woken = states.woken(task)
                event = self._context.entry("woken", woken)
                with contextlib.suppress(Conflict):  # another process was faster
                    self._context.commit(event, Work(moves=(TaskMove(task.epoch, woken),)))

    def _retries(self, since: int, until: int) -> Iterator[TaskRecord]:
        """What was tried and waits for its next attempt. However many others wait for their first,
        in whichever order, these are found."""
        store, user, after = self._context.store, self._context.user, 0
        while rows := store.retries(user, since, until, after, _PAGE):
            yield from rows
            after = rows[-1].place

    @property
    def _longest(self) -> int:
        return int(longest_seconds(self._terms.retry) * 1_000_000)

    def end(self, attempt: Attempt, outcome: Outcome) -> None:
        """Record how an attempt ended, as often as it takes: the task is ours for as long as we
        live, and no other process would put it back. A stop changes nothing about that: what is
        done is done, and there is time until the rest is handed back."""
        with self._mutex:
            self._running[attempt] = outcome
        try:
            while not attempt.is_over and not self._is_recorded(attempt, outcome):
                if self._is_given_up.wait(AGAIN_SECONDS):
                    return
            if attempt.is_lost and attempt.task.state == "in_progress":  # else it was handed back
                _log.warning("task %r %s", attempt.id, self._lost(attempt))
        finally:
            self.settled(_unrecorded(attempt))
            with self._mutex:
                self._running.pop(attempt, None)
            self._free_slot(attempt)

    def _free_slot(self, attempt: Attempt) -> None:
        with self._mutex:
            has_slot = attempt in self._hinted
            hint = self._hinted.pop(attempt, None)
        if has_slot and self._slots is not None:
            self._slots.free(hint, DONE)

    def _lost(self, attempt: Attempt) -> str:
        """Why an attempt has no task any more, as far as the store can tell."""
        try:
            found = self._context.store.task(self._context.user, attempt.id)
        except HardsaveError:
            found = None
        is_cancelled = found is not None and states.is_cancelled(found.state, found.error)
        return "was cancelled" if is_cancelled else "is not ours any more; its end is not recorded"

    def _is_recorded(self, attempt: Attempt, outcome: Outcome) -> bool:
        try:
            if outcome.error is None:
                attempt.complete(outcome.result)
            else:
                attempt.fail(outcome.error)
        except LeaseLost:
            return True
        except (Conflict, Misuse) as wrong:
            if attempt.is_over:
                return True  # another thread has just ended it, or handed it back
            if outcome.error is not None or isinstance(wrong, Conflict):
                raise
            return self._is_recorded(attempt, Outcome(error=wrong))  # it cannot be stored
        except Unavailable as error:
            self.report(_unrecorded(attempt), error)
            return False
        return True

    def begin_nothing_more(self) -> None:
        """What this process was told of, and has not begun, goes to others at once."""
        self.stop.set()
        if self._slots is not None:
            self._slots.close()

    def close(self, *, hand_back: bool) -> None:
        """Nothing more begins; attempts under way are not waited for. A claim that is just being
        made is: it would take another lease, once this one is given back."""
        self.stop.set()
        with self._unclaiming:
            self._unclaiming.wait_for(lambda: not self._claiming, LONGEST_CLAIM)
        if hand_back:
            self.hand_back_all()

    def hand_back_all(self) -> None:
        """Give up what is still under way, each on its own: one that cannot be handed back is
        found by the next session, as if we had died."""
        with self._mutex:
            left = dict(self._running)
            self._running.clear()
        for attempt, outcome in left.items():
            try:
                self._give_up(attempt, outcome)
            except (Conflict, Misuse):
                pass  # it has just ended by itself
            except Unavailable:
                _log.exception("task %r could not be handed back", attempt.id)
        self._is_given_up.set()

    def _give_up(self, attempt: Attempt, outcome: Outcome | None) -> None:
        if outcome is None or not self._is_recorded(attempt, outcome):
            attempt.hand_back()
            _log.warning("task %r was handed back before its end", attempt.id)


def _anew(event: threading.Event) -> threading.Event:
    another = threading.Event()
    if event.is_set():
        another.set()
    return another


def _unrecorded(attempt: Attempt) -> str:
    return f"the end of task {attempt.id!r} could not be recorded yet"
