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

from hardsave.defaults import GRACE_SECONDS
from hardsave.errors import HardsaveError, Misuse
from hardsave.logs import log
from hardsave.objects.records import OwnerRecord
from hardsave.stores import dispatch
from hardsave.stores.dispatch import Hints, Periodic
from hardsave.stores.ledger import Work
from hardsave.tasks import reclaim, threads
from hardsave.tasks.attempt import Attempt, Paused, check_policy, working
from hardsave.tasks.context import KEPT, LedgerContext
from hardsave.tasks.lease import Lease
from hardsave.tasks.recovery import RecoveryReport
from hardsave.tasks.retry import DEFAULT, Retry
from hardsave.tasks.settings import Recovery
from hardsave.tasks.slots import WAIT_SECONDS, Lanes, Slots
from hardsave.tasks.stats import TaskStats
from hardsave.tasks.steps import UnknownPolicy
from hardsave.tasks.sweeps import Sweeps
from hardsave.tasks.task import Task, view
from hardsave.tasks.worker_loop import Outcome, Terms, Wants, WorkerLoop

Handler = Callable[[Attempt], Any]
Ended = Callable[[Attempt], object]

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = log(__name__)


class Runner:
    """One session of a process that runs tasks. Use it as a context manager."""

    def __init__(
        self,
        context: LedgerContext,
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
        self._context = context
        self._session = session
        self._take_over = take_over
        self._holds = recovery == "manual"
        self._lease = Lease(context, session, seconds=lease_seconds)
        self._sweeps = Sweeps(context, lease_seconds)
        self._report: RecoveryReport | None = None
        self._loops: list[WorkerLoop] = []  # one for each `run` that is under way
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
            found = self._reclaim(holds=self._holds)
            self._report = reclaim.report(self._context, found, self._counts(), is_start=True)
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
        for loop in list(self._loops):
            loop.close(hand_back=clean)
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

        Happens by itself when a runner is entered, and every second while it runs, or every few
        seconds beside many others, unless `recovery` is `manual`.
        """
        return self._recovered(holds=False)

    def _recovered(self, *, holds: bool, owners: Sequence[OwnerRecord] | None = None) -> list[Task]:
        found = self._reclaim(holds=holds, owners=owners)
        for each in found:
            if each.tasks or not each.leaves_any:  # else it is found again by each look
                _log.warning("%s", reclaim.reclaim_message(each))
        return [view(task, self._context.codec) for each in found for task in each.tasks]

    def _reclaim(
        self, *, holds: bool, owners: Sequence[OwnerRecord] | None = None
    ) -> list[reclaim.Reclaimed]:
        take_over = self._take_over
        return reclaim.reclaim_from_dead(
            self._context, self._session, take_over=take_over, holds=holds, owners=owners
        )

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
        lanes: Lanes | None = None,
        periodic: Sequence[Periodic] = (),
    ) -> None:
        """Call `handler(attempt)` for every task that is due, in so many threads.

        What it returns is the task's result. Ends with `stop()`, with SIGINT or SIGTERM (in the
        main thread), or with `until_idle` when nothing is left to do. What is under way then
        has `grace_seconds` to end, and is handed back after that.

        Tasks that it does not `want` are left to others. `ended(attempt)` is called when the end
        of an attempt is on record. A store that tells which task is due (`stores.dispatch`) leaves
        those in the `lanes` of others, and lets `periodic` things happen; that is not so with
        `until_idle`, which asks the ledger.
        """
        _check_handler(handler)
        terms = Terms(concurrency, unknown, retry, wants, lanes=lanes)
        slots, telling = hinted(self, terms, periodic, until_idle=until_idle)
        loop = begin_loop(self, terms, slots)
        crew = [
            _Worker(loop, handler, ended, until_idle=until_idle, number=n)
            for n in range(concurrency)
        ]
        with signals() as told, telling:
            try:
                for worker in crew:
                    threads.start(worker)
                self._look_after(loop, crew, told)
            finally:
                loop.begin_nothing_more()
                _wait_for(crew, grace_seconds)
                loop.hand_back_all()
                end_loop(self, loop)
        for worker in crew:
            if worker.error is not None:
                raise worker.error

    def stop(self) -> None:
        """Begin nothing more; `run` returns when what is under way has ended, or its time is up.
        If none is under way, as while a session begins, the next one returns at once."""
        self._is_stopped = True  # first: a loop that begins looks at it once it can be seen
        for loop in list(self._loops):
            loop.stop.set()

    def _look_after(
        self, loop: WorkerLoop, crew: "list[_Worker]", told: Sequence[signal.Signals]
    ) -> None:
        """Until they end or are told to: find out now and then whether another process has died."""
        due = time.monotonic() + until_sweep(self)
        while any(worker.is_alive() for worker in crew):
            if told:
                _log.info("stopping: %s", told[0].name)
                return
            if loop.stop.wait(0.01):
                return
            if time.monotonic() >= due:
                sweep(self, loop)
                due = time.monotonic() + until_sweep(self)

    def _check_open(self) -> None:
        """Else it would hold a lease that is never given back, and the next session would take it
        for one that has crashed."""
        if self._report is None or self._is_closed:
            raise Misuse("a runner works inside its block: with tasks.runner(…) as runner")

    def _note(self, kind: str, about: Any) -> None:
        """With each session the old ones go: a server that is restarted for ever, and never
        iterates, does not grow for ever."""
        self._context.commit(self._context.entry(kind, None, about), Work(keep_itself=KEPT))


def _check_handler(handler: Any) -> None:
    """Else every task there is would fail by it."""
    if not callable(handler) or inspect.iscoroutinefunction(handler):
        raise Misuse(
            f"a handler is a plain function, not {handler!r}; coroutines are for hardsave.aio"
        )


def hinted(
    runner: Runner,
    terms: Terms,
    periodic: Sequence[Periodic],
    *,
    until_idle: bool,
    wait_seconds: float = WAIT_SECONDS,
) -> tuple[Slots | None, contextlib.AbstractContextManager[None]]:
    """The slots that the store fills with what is due, inside of the block; none, if it cannot."""
    slots = Slots(terms.concurrency, wait_seconds=wait_seconds)
    served = () if terms.lanes is None else terms.lanes.served
    hints = Hints(slots, terms.concurrency, served, periodic)
    context = runner._context
    telling = None if until_idle else dispatch.dispatch(context.store, context.user, hints)
    if telling is not None:
        return slots, telling
    if periodic:
        raise Misuse(
            f"{periodic[0].name!r} is to happen periodically, for which a runner needs a store on "
            "PostgreSQL, the extra 'postgres' and no until_idle; elsewhere let cron add the task"
        )
    return None, contextlib.nullcontext()


def begin_loop(runner: Runner, terms: Terms, slots: Slots | None = None) -> WorkerLoop:
    """What the executor of coroutines shares with the one of threads."""
    runner._check_open()
    check_policy(terms.unknown)
    if terms.concurrency < 1:
        raise Misuse(f"concurrency is at least 1, not {terms.concurrency}")
    loop = WorkerLoop(runner._context, runner._lease, terms, slots)
    runner._loops.append(loop)
    if runner._is_stopped:
        loop.stop.set()
    return loop


def end_loop(runner: Runner, loop: WorkerLoop) -> None:
    runner._loops.remove(loop)
    runner._is_stopped = False


def side_loop(runner: Runner, terms: Terms) -> WorkerLoop:
    """Other work of the same session, for a caller that runs it by itself: it also has to hand
    back what is left when the session ends."""
    return WorkerLoop(runner._context, runner._lease, terms)


def until_sweep(runner: Runner) -> float:
    """Seconds until the next `sweep`."""
    return runner._sweeps.seconds()


def sweep(runner: Runner, loop: WorkerLoop) -> None:
    """Look after what no attempt does: processes that have died, attempts whose task was taken
    away, and tasks that a clock holds up."""
    worry = "looking for dead sessions failed"
    try:
        runner._recovered(holds=runner._holds, owners=runner._sweeps.owners())
        loop.tell_the_lost()
        loop.wake_the_overslept()
        loop.settled(worry)
    except HardsaveError as error:
        loop.report(worry, error)


class _Worker(threading.Thread):
    """One task after the other."""

    def __init__(
        self,
        loop: WorkerLoop,
        handler: Handler,
        ended: Ended | None,
        *,
        until_idle: bool,
        number: int,
    ) -> None:
        # A daemon: a handler that hangs does not keep a program from ending, once its task was
        # handed back.
        super().__init__(name=f"hardsave-task-{number}", daemon=True)
        self.error: BaseException | None = None
        self._loop = loop
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
            self._loop.stop.set()

    def _work(self) -> None:
        loop = self._loop
        while not loop.stop.is_set():
            attempt = loop.next()
            if attempt is not None:
                loop.end(attempt, _outcome(attempt, self._handler))
                if self._ended is not None and attempt.is_over:
                    self._ended(attempt)
            elif self._until_idle and loop.is_idle():
                return
            else:
                loop.rest()


def _outcome(attempt: Attempt, handler: Handler) -> Outcome:
    try:
        with working(attempt):
            return Outcome(handler(attempt))
    except Paused as error:
        return paused(attempt, error)
    except BaseException as error:  # noqa: BLE001 # every kind of it is the task's end
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

    They are noted and no more: a handler runs in the middle of what the main thread does, and
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
