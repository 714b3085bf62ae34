"""Threads for handlers, in lanes: slow writes never keep quick reads waiting. Each lane has a
bounded queue, and past it a request is refused: one that waits for ever holds its caller up."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from hardsave.server.errors import busy
from hardsave.tasks.threads import Crew

T = TypeVar("T")


class Lane:
    """So many calls at once, and so many that wait. Used by one event loop."""

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self._crew = Crew(threads, f"hardsave-serve-{name}")
        self._most = threads + waiting
        self._taken = 0

    async def run(self, call: Callable[[], T]) -> T:
        """What the call comes to. A caller that goes away does not free its place: the thread is
        at work until the call has ended."""
        if self._taken >= self._most:
            raise busy()
        running = asyncio.wrap_future(self._crew.submit(call))
        self._taken += 1
        running.add_done_callback(self._ended)
        return await asyncio.shield(running)

    def _ended(self, running: "asyncio.Future[T]") -> None:
        self._taken -= 1
        if not running.cancelled():
            running.exception()  # seen, also where the caller has gone away
