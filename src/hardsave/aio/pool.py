"""The threads that an awaited vault runs its calls in."""

import asyncio
import weakref
from asyncio import current_task
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from hardsave.errors import Misuse
from hardsave.logs import log
from hardsave.objects.records import Id
from hardsave.tasks.threads import Crew
from hardsave.vault.events import EventName
from hardsave.vault.request_key import repeats
from hardsave.vault.restore import own_moves

T = TypeVar("T")
P = ParamSpec("P")

THREADS = 16

_log = log(__name__)


class Pool:
    """The threads of one vault, and its handlers that are coroutine functions.

    Functions of the caller have threads of their own: they may take for ever, and the vault's calls
    must not wait for them.
    """

    def __init__(self, lender: "Pool | None" = None) -> None:
        """With a `lender`: its threads, with handlers of its own."""
        self._lender = lender
        self._calls: Crew = Crew(THREADS, "hardsave-aio") if lender is None else lender._calls
        self._functions: Crew = (
            Crew(THREADS, "hardsave-aio-step") if lender is None else lender._functions
        )
        self.handlers: dict[str, list[Callable[..., Awaitable[Any]]]] = {}
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        return self._is_closed or (self._lender is not None and self._lender.is_closed)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._start(self._calls, call, *args, **kwargs)

    async def run_once(
        self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[T, bool]:
        """What a request with a key comes to, and whether it was carried out now: it may have been
        answered from the log."""
        repeated: list[Id] = []
        token = repeats.set(repeated)
        try:
            running = self._start(self._calls, call, *args, **kwargs)
        finally:
            repeats.reset(token)
        return await running, not repeated

    async def run_to_the_end(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await to_the_end(self._start(self._calls, call, *args, **kwargs))

    async def run_function(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._start(self._functions, fn, *args, **kwargs)

    async def run_apart(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        apart = Crew(1, "hardsave-aio-apart")
        running = self._start(apart, call, *args, **kwargs)
        apart.close()
        return await to_the_end(running)

    def _start(
        self, crew: Crew, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> "asyncio.Future[T]":
        if self.is_closed:
            raise Misuse("this vault is closed; open it again")
        # In a copy of the caller's context: what an attempt saves is known to be its own, and so is
        # a head that the task has moved.
        bound, context, task = partial(call, *args, **kwargs), copy_context(), current_task()
        context.run(own_moves.task.set, None if task is None else weakref.ref(task))
        return asyncio.wrap_future(crew.submit(partial(context.run, bound)))

    async def tell(self, event: EventName, about: object) -> None:
        for handler in tuple(self.handlers.get(event, ())):
            try:
                await handler(about)
            except Exception:  # noqa: BLE001 # anything at all: what has been saved is saved
                _log.exception("a handler of %s failed: %r", event, handler)
            except asyncio.CancelledError:
                task = current_task()
                if task is not None and task.cancelling():
                    raise  # it is we who are cancelled
                _log.exception("a handler of %s was cancelled: %r", event, handler)

    async def close(self) -> None:
        """When all calls have been made. What a function does, and for how long, is its own."""
        self._is_closed = True
        if self._lender is not None:
            return
        self._functions.close()
        await asyncio.wrap_future(self._calls.close())


async def to_the_end(running: "asyncio.Future[T]") -> T:
    """What a thread comes to. The caller does not go on before that, however often it is cancelled;
    then it is."""
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None and running.exception() is None:
        raise cancelled
    return running.result()
