"""The same ledger for coroutines: what `hardsave.aio` gives as `vault.tasks`.

Every method is one line over the synchronous class, run in the threads of its vault. The
exceptions are steps and handlers: they may be coroutine functions, and are awaited on the
caller's own loop; only what they write goes through a thread.
"""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from hardsave.defaults import GRACE_SECONDS, LEASE_SECONDS, POLL_SECONDS
from hardsave.errors import Misuse, Unavailable
from hardsave.page import Page
from hardsave.stores.dispatch import Periodic
from hardsave.tasks import attempt as sync_attempt
from hardsave.tasks import executor as sync_executor
from hardsave.tasks import ledger as sync_ledger
from hardsave.tasks.async_attempt import Attempt, Threads, claimed
from hardsave.tasks.recovery import RecoveryReport
from hardsave.tasks.retry import DEFAULT, Retry
from hardsave.tasks.settings import Recovery
from hardsave.tasks.slots import Lanes
from hardsave.tasks.stats import TaskEvent, TaskStats
from hardsave.tasks.step_calls import Paused
from hardsave.tasks.steps import UnknownPolicy
from hardsave.tasks.task import Task
from hardsave.tasks.worker_loop import Outcome, Terms, Wants, WorkerLoop

Handler = Callable[[Attempt], Awaitable[Any]]
Ended = Callable[[Attempt], Awaitable[object]]


class Runner:
    """See `hardsave.Runner`. To be used with `async with`."""

    def __init__(self, sync: sync_executor.Runner, threads: Threads) -> None:
        self._sync = sync
        self._threads = threads

    @property
    def report(self) -> RecoveryReport:
        return self._sync.report

    async def claim(
        self,
        id: str,
        *,
        force: bool = False,
        unknown: UnknownPolicy = "retry",
        retry: Retry = DEFAULT,
    ) -> Attempt:
        claim = functools.partial(self._sync.claim, id, force=force, unknown=unknown, retry=retry)
        return await claimed(self._threads, claim)

    async def close(self, *, clean: bool = True) -> None:
        await self._threads.run(lambda: self._sync.close(clean=clean))

    async def recover(self) -> list[Task]:
        return await self._threads.run(self._sync.recover)

    def stop(self) -> None:
        self._sync.stop()

    async def run(
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
        """See the synchronous one; `handler` is a coroutine function, called in so many tasks."""
        if not callable(handler):
            raise Misuse(f"a handler is a coroutine function, not {handler!r}")
        terms = Terms(concurrency, unknown, retry, wants, lanes=lanes)
        slots, telling = await self._threads.run(
            sync_executor.hinted,
            *(self._sync, terms, periodic),
            until_idle=until_idle,
            wait_seconds=0.0,
        )
        loop = sync_executor.begin_loop(self._sync, terms, slots)
        telling.__enter__()  # returns at once; what comes at the end may wait
        crew = [
            asyncio.create_task(self._work(loop, handler, ended, until_idle=until_idle))
            for _ in range(concurrency)
        ]
        try:
            with sync_executor.signals() as told:
                await self._look_after(loop, crew, told)
                loop.begin_nothing_more()
                await asyncio.wait(crew, timeout=grace_seconds)
        finally:
            loop.begin_nothing_more()
            try:
                await self._hand_back_all(loop)
                await self._threads.run_apart(telling.__exit__, None, None, None)
            finally:
                for each in crew:
                    each.cancel()
                results = await asyncio.gather(*crew, return_exceptions=True)
                await self._hand_back_all(loop)  # what was just being claimed
                sync_executor.end_loop(self._sync, loop)
        for error in results:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error

    async def _look_after(
        self, loop: WorkerLoop, crew: "list[asyncio.Task[None]]", told: Sequence[object]
    ) -> None:
        """Until they end or are told to. The sweep is not waited for: it waits for a thread, and
        for the store, while a stop may come."""
        event_loop = asyncio.get_running_loop()
        sweeping: asyncio.Task[None] | None = None
        due = event_loop.time() + sync_executor.until_sweep(self._sync)
        try:
            while not told and not loop.stop.is_set() and not all(each.done() for each in crew):
                await asyncio.wait(crew, timeout=POLL_SECONDS)
                if sweeping is not None and sweeping.done():
                    await sweeping  # its error ends the run
                    sweeping, due = None, event_loop.time() + sync_executor.until_sweep(self._sync)
                if sweeping is None and event_loop.time() >= due:
                    sweep = self._threads.run(sync_executor.sweep, self._sync, loop)
                    sweeping = event_loop.create_task(sweep)
        finally:
            if sweeping is not None:
                sweeping.cancel()

    async def _hand_back_all(self, loop: WorkerLoop) -> None:
        """In a thread of its own: all others may be waiting for just this."""
        try:
            await self._threads.run_apart(loop.hand_back_all)
        except Unavailable:  # there is no thread to be had: then it is done here
            loop.hand_back_all()

    async def _work(
        self, loop: WorkerLoop, handler: Handler, ended: Ended | None, *, until_idle: bool
    ) -> None:
        try:
            while not loop.stop.is_set():
                attempt = await self._threads.run_to_the_end(loop.next)
                if attempt is not None:
                    held = Attempt(attempt, self._threads)
                    with sync_attempt.working(attempt):
                        outcome = await _outcome(held, handler)
                    await self._threads.run(loop.end, attempt, outcome)
                    if ended is not None and attempt.is_over:
                        await ended(held)
                elif until_idle and await self._threads.run(loop.is_idle):
                    return
                else:
                    await asyncio.sleep(POLL_SECONDS)
        except BaseException:
            loop.stop.set()
            raise

    async def __aenter__(self) -> "Runner":
        await self._threads.run(self._sync.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._threads.run(self._sync.__exit__, kind, error, trace)


async def _outcome(attempt: Attempt, handler: Handler) -> Outcome:
    try:
        working = handler(attempt)
        if inspect.isawaitable(working):
            return Outcome(await working)
    except Paused as error:
        return sync_executor.paused(attempt._sync, error)
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise  # it is we who are cancelled: the task is handed back
        return Outcome(error=error)
    except BaseException as error:  # noqa: BLE001 # every kind of it is the task's end
        return Outcome(error=error)
    # Not the task's fault: every other one would fail by it, too.
    raise Misuse(f"a handler is a coroutine function, not {handler!r}")


class Tasks:
    """See `hardsave.Tasks`."""

    def __init__(self, sync: sync_ledger.Tasks, threads: Threads) -> None:
        self._sync = sync
        self._threads = threads

    async def add(
        self,
        id: str,
        text: str = "",
        *,
        key: str | None = None,
        max_attempts: int | None = None,
        priority: int = 0,
        not_before: datetime | None = None,
        after: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Task:
        return await self._threads.run(
            self._sync.add,
            id,
            text,
            key=key,
            max_attempts=max_attempts,
            priority=priority,
            not_before=not_before,
            after=after,
            metadata=metadata,
        )

    async def get(self, id: str) -> Task:
        return await self._threads.run(self._sync.get, id)

    async def find(
        self,
        *,
        state: str | None = None,
        newest_first: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Page[Task]:
        return await self._threads.run(
            self._sync.find, state=state, newest_first=newest_first, limit=limit, after=after
        )

    async def history(self, id: str) -> list[TaskEvent]:
        return await self._threads.run(self._sync.history, id)

    async def happened(self, after: int = 0, *, limit: int = sync_ledger.PAGE) -> list[TaskEvent]:
        return await self._threads.run(self._sync.happened, after, limit=limit)

    async def bookmark(self, reader: str, number: int | None = None) -> int:
        return await self._threads.run(self._sync.bookmark, reader, number)

    async def stats(self) -> TaskStats:
        return await self._threads.run(self._sync.stats)

    async def retry(
        self,
        id: str,
        *,
        unknown: UnknownPolicy | None = None,
        force: bool = False,
        key: str | None = None,
    ) -> Task:
        return await self._threads.run(self._sync.retry, id, unknown=unknown, force=force, key=key)

    async def cancel(self, id: str, *, key: str | None = None) -> Task:
        return await self._threads.run(self._sync.cancel, id, key=key)

    async def roll_back(self, id: str) -> Task:
        return await self._threads.run(self._sync.roll_back, id)

    async def answer(
        self, id: str, answer: Any, *, question: str | None = None, key: str | None = None
    ) -> Task:
        return await self._threads.run(self._sync.answer, id, answer, question=question, key=key)

    async def forget(self, *, keep_completed: int | None = None) -> int:
        return await self._threads.run(self._sync.forget, keep_completed=keep_completed)

    @property
    def iterations(self) -> Awaitable[int]:
        return self._threads.run(lambda: self._sync.iterations)

    async def iterate(self) -> int:
        return await self._threads.run(self._sync.iterate)

    @contextlib.asynccontextmanager
    async def attempt(
        self,
        id: str,
        *,
        force: bool = False,
        unknown: UnknownPolicy = "retry",
        retry: Retry = DEFAULT,
    ) -> AsyncIterator[Attempt]:
        held = await self.claim(id, force=force, unknown=unknown, retry=retry)
        async with held as attempt:
            yield attempt

    async def claim(
        self,
        id: str,
        *,
        force: bool = False,
        unknown: UnknownPolicy = "retry",
        retry: Retry = DEFAULT,
    ) -> Attempt:
        claim = functools.partial(self._sync.claim, id, force=force, unknown=unknown, retry=retry)
        return await claimed(self._threads, claim)

    def runner(
        self,
        session: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        take_over: bool = False,
        recovery: Recovery | None = None,
    ) -> Runner:
        runner = self._sync.runner(
            session, lease_seconds=lease_seconds, take_over=take_over, recovery=recovery
        )
        return Runner(runner, self._threads)

    async def recover(self, *, take_over: bool = False, dry_run: bool = False) -> RecoveryReport:
        return await self._threads.run(self._sync.recover, take_over=take_over, dry_run=dry_run)

    async def close(self) -> None:
        await self._threads.run(self._sync.close)
