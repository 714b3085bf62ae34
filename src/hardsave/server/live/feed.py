"""Looks for news again and again, for as long as there are clients, and wakes them.

A feed runs in the event loop; each look is a call in a thread, of which the hub has a few of its
own. What it looks at is a `Source`, what a client has seen of it a `Reader`.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from hardsave.errors import HardsaveError
from hardsave.logs import log
from hardsave.server.live.asked import Asked
from hardsave.tasks.threads import Crew

T = TypeVar("T")

_SLOWER = 1.5  # with each look that finds nothing
_TROUBLED_SECONDS = 0.25  # between two looks at first, if a look fails
_MOST_TROUBLED_SECONDS = 5.0


class Source(Protocol):
    """What a feed looks at: `open`, `look` and `close` one at a time, each in a thread."""

    quickest_seconds: float  # between two looks, after one that has found something
    slowest_seconds: float

    def __str__(self) -> str:
        """What it is, for the log."""

    def open(self) -> None:
        """Before the first look."""

    def look(self) -> Callable[[], bool]:
        """What comes back is called in the event loop, and says whether there is something to
        tell."""

    def close(self) -> None:
        """After the last look."""

    async def joined(self, asked: Asked) -> "Reader":
        """In the event loop: one more client."""


class Reader(Protocol):
    """What a client has seen. Used in the event loop."""

    def hello(self, heartbeat_seconds: float) -> bytes:
        """The first message."""

    def next(self) -> bytes:
        """The next message; none if there is nothing to tell."""

    def heartbeat(self) -> bytes:
        """What shows that the stream goes on."""


class Feed:
    """Polls a source. Made and used in the event loop; ends by `stop`, or if looks fail for
    `patience_seconds`."""

    def __init__(
        self,
        source: Source,
        crew: Crew,
        *,
        heartbeat_seconds: float,
        patience_seconds: float,
    ) -> None:
        self.source = source
        self.clients = 0
        self.beats = 0  # heartbeats until now
        self.turn = asyncio.Event()  # set, and replaced, when there is something to tell
        self.is_over = False
        self.says_bye = False
        self._crew = crew
        self._heartbeat_seconds = heartbeat_seconds
        self._patience_seconds = patience_seconds
        self._pause = source.quickest_seconds
        self._failing_since: float | None = None
        self._stopping = asyncio.Event()
        self._opening = asyncio.ensure_future(in_thread(crew, source.open))
        self.task = asyncio.ensure_future(self._run())

    async def opened(self) -> None:
        """Wait for the source; its error, if it could not be opened."""
        await asyncio.shield(self._opening)

    def stop(self, *, bye: bool = False) -> None:
        """End all streams, with a word or without."""
        self.is_over = True
        self.says_bye = self.says_bye or bye
        self._stopping.set()
        self._wake()

    def _wake(self) -> None:
        turn, self.turn = self.turn, asyncio.Event()
        turn.set()

    async def _run(self) -> None:
        await asyncio.wait([self._opening])
        if self._opening.exception() is not None:
            self.stop()
            return
        beating = asyncio.ensure_future(self._beat())
        try:
            while not self.is_over:
                await self._look()
                await self._rest()
        finally:
            beating.cancel()
            await in_thread(self._crew, self.source.close)

    async def _beat(self) -> None:
        """By itself: also while a look takes long."""
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            self.beats += 1
            self._wake()

    async def _look(self) -> None:
        try:
            is_news = (await in_thread(self._crew, self.source.look))()
        except Exception as error:  # noqa: BLE001 # reported, and the streams end if it stays so
            self._failed(error)
            return
        if self._failing_since is not None:
            self._failing_since = None
            log(__name__).warning("%s can be read again", self.source)
        if is_news:
            self._pause = self.source.quickest_seconds
            self._wake()
        else:
            self._pause = min(self._pause * _SLOWER, self.source.slowest_seconds)

    def _failed(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since, self._pause = now, _TROUBLED_SECONDS
            trace = None if isinstance(error, HardsaveError) else error
            log(__name__).error("%s cannot be read: %s", self.source, error, exc_info=trace)
        elif now - self._failing_since >= self._patience_seconds:
            log(__name__).error("%s still cannot be read; its streams end", self.source)
            self.stop()
        self._pause = min(self._pause * 2, _MOST_TROUBLED_SECONDS, self._patience_seconds)

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._pause):
                await self._stopping.wait()
        except TimeoutError:
            pass


async def in_thread(crew: Crew, call: Callable[[], T]) -> T:
    return await asyncio.wrap_future(crew.submit(call))
