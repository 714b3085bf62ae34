"""One attempt for coroutines: what a handler of `hardsave.aio` holds while it works.

Steps may be coroutine functions, and are awaited on the caller's own loop; only what they write
goes through a thread.
"""

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from hardsave.errors import HardsaveError
from hardsave.logs import log
from hardsave.tasks import attempt as sync_attempt
from hardsave.tasks.child_lock import ChildLock
from hardsave.tasks.retry import Retry
from hardsave.tasks.step_calls import Call
from hardsave.tasks.steps import Given, UnknownPolicy
from hardsave.tasks.task import Task

_log = log(__name__)

T = TypeVar("T")
P = ParamSpec("P")


class Threads(Protocol):
    """Where calls that block are run, in the context of the caller."""

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def run_to_the_end(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same; a caller that is cancelled meanwhile is told so only afterwards."""

    async def run_function(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same as `run`, for a function of the user's: it may take for ever, and holds up
        no other call but those of such functions."""

    async def run_apart(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same as `run_to_the_end`, in a thread of its own, however busy the others are."""


async def begun(threads: Threads, begin: Callable[[], T], undo: Callable[[T], None]) -> T:
    """What a thread begins. A caller that is cancelled meanwhile never gets it, and no other code
    would end it: so it is undone. If that fails it is cancelled all the same, and it is logged."""
    made: list[T] = []
    try:
        await threads.run_to_the_end(lambda: made.append(begin()))
    except asyncio.CancelledError:
        for each in made:
            try:
                await threads.run_to_the_end(undo, each)
            except HardsaveError:
                _log.exception("%r was begun for a call that was cancelled, and stays so", each)
        raise
    return made[0]


async def claimed(threads: Threads, claim: Callable[[], sync_attempt.Attempt]) -> "Attempt":
    return Attempt(await begun(threads, claim, sync_attempt.Attempt.hand_back), threads)


class Attempt:
    """See `hardsave.tasks.attempt.Attempt`. To be used with `async with`."""

    def __init__(self, sync: sync_attempt.Attempt, threads: Threads) -> None:
        self._sync = sync
        self._threads = threads
        self._block = contextlib.ExitStack()

    @property
    def id(self) -> str:
        return self._sync.id

    @property
    def task(self) -> Task:
        return self._sync.task

    @property
    def number(self) -> int:
        return self._sync.number

    @property
    def is_over(self) -> bool:
        return self._sync.is_over

    @property
    def is_lost(self) -> bool:
        return self._sync.is_lost

    def lost(self) -> None:
        self._sync.lost()

    def __repr__(self) -> str:
        return repr(self._sync)

    @overload
    async def step(
        self,
        name: str,
        fn: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        key: str | None = None,
        unknown: UnknownPolicy | None = None,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> T: ...
    @overload
    async def step(
        self,
        name: str,
        fn: Callable[..., T],
        /,
        *args: Any,
        key: str | None = None,
        unknown: UnknownPolicy | None = None,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> T: ...
    async def step(
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        key: str | None = None,
        unknown: UnknownPolicy | None = None,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> Any:
        enclosing, given = sync_attempt.enclosing_step(self._sync), Given(args, kwargs)
        call = await begun(
            self._threads,
            lambda: sync_attempt.begin_step(
                self._sync, name, given, enclosing=enclosing, key=key, unknown=unknown, retry=retry
            ),
            Call.never_run,
        )
        if call.is_recorded:
            return call.value
        token = call.enter()
        try:
            value = await self._run(call, fn, given)
            return await self._threads.run_to_the_end(call.done, value)  # it has happened
        finally:
            call.exit(token)

    async def _run(self, call: Call, fn: Callable[..., Any], given: Given) -> Any:
        while True:
            call.check()
            try:
                return await self._called(fn, given)
            except Exception as error:
                seconds = await self._threads.run_to_the_end(call.again, error)
                if seconds is None:
                    raise
            await asyncio.sleep(seconds)

    async def _called(self, fn: Callable[..., Any], given: Given) -> Any:
        """Coroutines here, plain functions in a thread: they may block."""
        if inspect.iscoroutinefunction(fn):
            return await fn(*given.args, **given.kwargs)
        value = await self._threads.run_function(fn, *given.args, **given.kwargs)
        return await value if inspect.isawaitable(value) else value

    def once(self, name: str) -> str:
        return self._sync.once(name)

    async def progress(self, done: int, total: int = 0) -> None:
        await self._threads.run(self._sync.progress, done, total)

    async def ask(self, question: str, *, key: str | None = None) -> Any:
        return await self._threads.run(self._sync.ask, question, key=key)

    def child_lock(self) -> ChildLock:
        return self._sync.child_lock()

    async def complete(self, result: Any = None) -> None:
        await self._threads.run_to_the_end(self._sync.complete, result)

    async def fail(self, error: BaseException | str) -> None:
        await self._threads.run_to_the_end(self._sync.fail, error)

    async def hand_back(self) -> None:
        await self._threads.run_to_the_end(self._sync.hand_back)

    async def __aenter__(self) -> "Attempt":
        self._block.enter_context(sync_attempt.working(self._sync))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._block.close()
        return await self._threads.run_to_the_end(sync_attempt.end_block, self._sync, error)
