"""The executor of one host: runs what is due in threads, and recovers from crashes."""

import contextlib
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

from hardsave.defaults import GRACE_SECONDS, POLL_SECONDS
from hardsave.errors import HardsaveError, Misuse
from hardsave.logs import log
from hardsave.stores.ledger import Work
from hardsave.tasks import rescue, threads
from hardsave.tasks.attempt import Attempt, Paused, check_policy, working
from hardsave.tasks.desk import KEPT, Desk
from hardsave.tasks.lease import Lease
from hardsave.tasks.recovery import RecoveryReport
from hardsave.tasks.retry import DEFAULT, Retry
from hardsave.tasks.settings import Recovery
from hardsave.tasks.shift import Outcome, Shift, Terms, Wants
from hardsave.tasks.stats import TaskStats
from hardsave.tasks.steps import UnknownPolicy
from hardsave.tasks.task import Task, view

Handler = Callable[[Attempt], Any]
Ended = Callable[[Attempt], object]

SWEEP_SECONDS = 1.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = log(__name__)


class Runner:
    """One session of a process that runs tasks. Use it as a context manager."""

    def __init__(
        self,
        desk: Desk,
        session: str,
        *,
        claim: Callable[..., Attempt],
        counts: Callable[[], TaskStats],
        lease_seconds: float,
        take_over: bool,
        recovery: Recovery,
    ) -> None:
        self._claim = claim
        self._counts = counts
        self._is_closed = False
        self._pid = 0
        self._desk = desk
        self._session = session
        self._take_over = take_over
        self._holds = recovery == "manual"
        self._lease = Lease(desk, session, seconds=lease_seconds)
        self._report: RecoveryReport | None = None
        self._shifts: list[Shift] = []  # one for each `run` that is under way
        self._is_stopped = False

    @property
    def report(self) -> RecoveryReport:
        """What was found when the session began."""
        if self._report is None:
            raise Misuse("a runner has a report once it was entered: with tasks.runner(…) as r")
        return self._report

    def __enter__(self) -> "Runner":
        self._is_closed = False
        self._pid = os.getpid()
        self._lease.take()
        try:
            found = self._bury(holds=self._holds)
            self._report = rescue.report(self._desk, found, self._counts(), is_start=True)
            self._note("session_started", {"session": self._session})
        except BaseException:
            self._lease.close()
            raise
        if not self._report.was_clean:
            _log.warning("%s", self._report)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, *, clean: bool = True) -> None:
        """End the session, and each `run` that is under way in other threads. If it is not `clean`,
        what that has begun is left as it is, for the next session to recover. A second call does
        nothing. In a forked child it ends what that has begun itself; the session goes on."""
        if self._is_closed:
            return
        self._is_closed = True
        for shift in list(self._shifts):
            shift.close(hand_back=clean)
        try:
            if self._pid == os.getpid():
                self._note("session_stopped", {"session": self._session, "clean": clean})
        finally:
            self._lease.close()

    def claim(
        self,
        id: str,
        *,
        force: bool = False,
        unknown: UnknownPolicy = "retry",
        retry: Retry = DEFAULT,
    ) -> Attempt:
        """As `tasks.claim`, as part of this session."""
        self._check_open()
        return self._claim(self._lease, id, force=force, unknown=unknown, retry=retry)

    def recover(self) -> list[Task]:
        """Put back to work what dead processes have left; those tasks, as they were.

        Happens by itself when a runner is entered, and every second while it runs, unless
        `recovery` is `manual`.
        """
        return self._recovered(holds=False)

    def _recovered(self, *, holds: bool) -> list[Task]:
        found = self._bury(holds=holds)
        for each in found:
            if each.tasks or not each.leaves_any:  # else it is found again every second
                _log.warning("%s", rescue.obituary(each))
        return [view(task, self._desk.codec) for each in found for task in each.tasks]

    def _bury(self, *, holds: bool) -> list[rescue.Buried]:
        take_over = self._take_over
        return rescue.bury_the_dead(self._desk, self._session, take_over=take_over, holds=holds)

    def run(
        self,
        handler: Handler,
        *,
        concurrency: int = 1,
        until_idle: bool = False,
        unknown: UnknownPolicy = "retry",
        retry: Retry = DEFAULT,
        grace_seconds: float = GRACE_SECONDS,
        wants: Wants | None = None,
        ended: Ended | None = None,
    ) -> None:
        """Call `handler(attempt)` for every task that is due, in so many threads.

        What it returns is the task's result. Ends with `stop()`, with SIGINT or SIGTERM (in the
        main thread), or with `until_idle` when nothing is left to do. What is under way then
        has `grace_seconds` to end, and is handed back after that.

        Tasks that it does not `want` are left to others. `ended(attempt)` is called when the end
        of an attempt is on record.
        """
        _check_handler(handler)
        shift = begin_shift(self, Terms(concurrency, unknown, retry, wants))
        crew = [
            _Worker(shift, handler, ended, until_idle=until_idle, number=n)
            for n in range(concurrency)
        ]
        with signals() as told:
            try:
                for worker in crew:
                    threads.start(worker)
                self._look_after(shift, crew, told)
            finally:
                shift.stop.set()
                _wait_for(crew, grace_seconds)
                shift.hand_back_all()
                end_shift(self, shift)
        for worker in crew:
            if worker.error is not None:
                raise worker.error

    def stop(self) -> None:
        """Begin nothing more; `run` returns when what is under way has ended, or its time is up.
        If none is under way, as while a session begins, the next one returns at once."""
        self._is_stopped = True  # first: whoever begins looks after he can be seen
        for shift in list(self._shifts):
            shift.stop.set()

    def _look_after(
        self, shift: Shift, crew: "list[_Worker]", told: Sequence[signal.Signals]
    ) -> None:
        """Until they end or are told to: find out now and then whether somebody else has died."""
        due = time.monotonic() + SWEEP_SECONDS
        while any(worker.is_alive() for worker in crew):
            if told:
                _log.info("stopping: %s", told[0].name)
                return
            if shift.stop.wait(0.01):
                return
            if time.monotonic() >= due:
                sweep(self, shift)
                due = time.monotonic() + SWEEP_SECONDS

    def _check_open(self) -> None:
        """Else it would hold a lease that nobody gives back, and the next session would take it
        for one that has crashed."""
        if self._report is None or self._is_closed:
            raise Misuse("a runner works inside its block: with tasks.runner(…) as runner")

    def _note(self, kind: str, about: Any) -> None:
        """With each session the old ones go: a server that is restarted for ever, and never
        iterates, does not grow for ever."""
        self._desk.commit(self._desk.entry(kind, None, about), Work(keep_itself=KEPT))


def _check_handler(handler: Any) -> None:
    """Else every task there is would fail by it."""
    if not callable(handler) or inspect.iscoroutinefunction(handler):
        raise Misuse(
            f"a handler is a plain function, not {handler!r}; coroutines are for hardsave.aio"
        )


def begin_shift(runner: Runner, terms: Terms) -> Shift:
    """What the executor of coroutines shares with the one of threads."""
    runner._check_open()
    check_policy(terms.unknown)
    if terms.concurrency < 1:
        raise Misuse(f"concurrency is at least 1, not {terms.concurrency}")
    shift = Shift(runner._desk, runner._lease, terms)
    runner._shifts.append(shift)
    if runner._is_stopped:
        shift.stop.set()
    return shift


def end_shift(runner: Runner, shift: Shift) -> None:
    runner._shifts.remove(shift)
    runner._is_stopped = False


def side_shift(runner: Runner, terms: Terms) -> Shift:
    """Other work of the same session, for whoever runs it by himself: he also has to hand back
    what is left when the session ends."""
    return Shift(runner._desk, runner._lease, terms)


def sweep(runner: Runner, shift: Shift) -> None:
    """Look after what nobody else would: the dead, those who work at what was taken away, and
    those whom a clock holds up."""
    worry = "looking for dead sessions failed"
    try:
        runner._recovered(holds=runner._holds)
        shift.tell_the_lost()
        shift.wake_the_overslept()
        shift.settled(worry)
    except HardsaveError as error:
        shift.report(worry, error)


class _Worker(threading.Thread):
    """One task after the other."""

    def __init__(
        self, shift: Shift, handler: Handler, ended: Ended | None, *, until_idle: bool, number: int
    ) -> None:
        # A daemon: a handler that hangs does not keep a program from ending, once its task was
        # handed back.
        super().__init__(name=f"hardsave-task-{number}", daemon=True)
        self.error: BaseException | None = None
        self._shift = shift
        self._handler = handler
        self._ended = ended
        self._until_idle = until_idle
        self._pid = os.getpid()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 # the runner raises it
            if self._pid != os.getpid():  # but not in a child, which has this thread alone
                _log.error("a handler has returned in a child; end that with os._exit(): %s", error)
            self.error = error
            self._shift.stop.set()

    def _work(self) -> None:
        shift = self._shift
        while not shift.stop.is_set():
            attempt = shift.next()
            if attempt is not None:
                shift.end(attempt, _outcome(attempt, self._handler))
                if self._ended is not None and attempt.is_over:
                    self._ended(attempt)
            elif self._until_idle and shift.is_idle():
                return
            else:
                shift.stop.wait(POLL_SECONDS)


def _outcome(attempt: Attempt, handler: Handler) -> Outcome:
    try:
        with working(attempt):
            return Outcome(handler(attempt))
    except Paused as error:
        return paused(attempt, error)
    except BaseException as error:  # noqa: BLE001 # whatever it is, it is the task's end
        return Outcome(error=error)


def _wait_for(crew: Sequence[threading.Thread], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for worker in crew:
        if worker.is_alive():
            left = min(deadline - time.monotonic(), threading.TIMEOUT_MAX)  # it may be for ever
            worker.join(max(0.0, left))


def paused(attempt: Attempt, error: Paused) -> Outcome:
    """What a pause comes to: nothing that is left to record, unless another task has paused, which
    a handler began and did not see to."""
    return Outcome() if attempt.is_over else Outcome(error=error)


@contextlib.contextmanager
def signals() -> Iterator[Sequence[signal.Signals]]:
    """The signals to stop that have come. Only the main thread can ask for them.

    They are noted and no more: a handler runs in the middle of whatever the main thread does, and
    to set an event that it is about to wait for would be to wait for itself, for ever.
    """
    told: list[signal.Signals] = []
    if threading.current_thread() is not threading.main_thread():
        yield told
        return

    def note(number: int, frame: FrameType | None) -> None:
        told.append(signal.Signals(number))

    before = {each: signal.signal(each, note) for each in SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
