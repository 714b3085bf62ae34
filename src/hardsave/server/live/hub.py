"""The live hub of the server: all streams of events, and the feeds that they share.

There is one feed for each project and user that has clients. A stream ends with its client, with
the hub, or with a feed that cannot read its store any more.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from hardsave.defaults import (
    LIVE_CLIENTS,
    LIVE_CLIENTS_OF_TOKEN,
    LIVE_HEARTBEAT_SECONDS,
    LIVE_PATIENCE_SECONDS,
    LIVE_PROJECTS,
)
from hardsave.errors import Misuse
from hardsave.server.errors import Refused, stopping
from hardsave.server.live.asked import Asked
from hardsave.server.live.events import Encode, OpenVault, ProjectEvents
from hardsave.server.live.feed import Feed, Reader, Source
from hardsave.server.live.projects import ProjectChanges, Stamps
from hardsave.server.live.sse import BYE
from hardsave.tasks.threads import Crew

_THREADS = 4
_RETRY_SECONDS = 5
_CLOSE_SECONDS = 1.0  # that looks at stores have to end when the hub is closed

_Key = tuple[str, str | None] | None  # project and user; None: which projects change


class Stream:
    """The messages for one client, as they come."""

    def __init__(self, feed: Feed, reader: Reader, hello: bytes) -> None:
        self._feed = feed
        self._reader = reader
        self._hello = hello
        self._beats = feed.beats
        self._is_over = False

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> bytes:
        while not (message := self._next()):
            if self._is_over:
                raise StopAsyncIteration
            await self._feed.turn.wait()
        return message

    def _next(self) -> bytes:
        """What there is to tell now, if anything."""
        if self._is_over:
            return b""
        if self._feed.is_over:
            self._is_over = True
            return BYE if self._feed.says_bye else b""
        if self._hello:
            hello, self._hello = self._hello, b""
            return hello
        message = self._reader.next()
        if not message and self._beats != self._feed.beats:
            self._beats = self._feed.beats
            message = self._reader.heartbeat()
        return message


class Hub:
    """All streams of this process. Used by one event loop.

    `open_vault(project, user)` is entered and left in threads of the hub, not always in the same
    one; `encode(event)`, which makes JSON of an event, is called there while the vault is open, and
    so is `stamps()`, which has for each project something that is another one after a change.
    """

    def __init__(
        self,
        open_vault: OpenVault,
        encode: Encode,
        *,
        stamps: Stamps | None = None,
        most: int = LIVE_CLIENTS,
        most_of_token: int = LIVE_CLIENTS_OF_TOKEN,
        most_projects: int = LIVE_PROJECTS,
        heartbeat_seconds: float = LIVE_HEARTBEAT_SECONDS,
        patience_seconds: float = LIVE_PATIENCE_SECONDS,
    ) -> None:
        self._open_vault = open_vault
        self._encode = encode
        self._stamps = stamps
        self._most = most
        self._most_of_token = most_of_token
        self._most_projects = most_projects
        self._heartbeat_seconds = heartbeat_seconds
        self._patience_seconds = patience_seconds
        self._crew = Crew(_THREADS, "hardsave-serve-live")
        self._places: Counter[str] = Counter()  # by the names of tokens
        self._feeds: dict[_Key, Feed] = {}
        self._running: set[asyncio.Task[None]] = set()  # feeds that have ended, too, until they did
        self._is_closed = False

    @property
    def clients(self) -> int:
        return self._places.total()

    @asynccontextmanager
    async def stream(self, asked: Asked) -> AsyncIterator[Stream]:
        """The messages for a client, as long as the block lasts. What keeps it from beginning is
        raised on entering it: `Refused`, or what the store has raised."""
        with self._place(asked.token), self._feed(asked) as feed:
            await feed.opened()
            reader = await feed.source.joined(asked)
            yield Stream(feed, reader, reader.hello(self._heartbeat_seconds))

    async def close(self) -> None:
        """Say goodbye to all clients, and let all vaults go. Does not wait for clients to read
        that."""
        self._is_closed = True
        for feed in self._feeds.values():
            feed.stop(bye=True)
        if self._running:
            await asyncio.wait(self._running, timeout=_CLOSE_SECONDS)
        if not self._running:
            self._crew.close()

    @contextmanager
    def _place(self, token: str) -> Iterator[None]:
        if self._is_closed:
            raise stopping()
        if self.clients >= self._most:
            raise _busy(f"the server has {self._most} live streams, and takes no more")
        if self._places[token] >= self._most_of_token:
            raise _busy(
                f"token {token!r} has {self._most_of_token} live streams, as many as it may"
            )
        self._places[token] += 1
        try:
            yield
        finally:
            self._places[token] -= 1
            if not self._places[token]:
                del self._places[token]

    @contextmanager
    def _feed(self, asked: Asked) -> Iterator[Feed]:
        """The feed for what is asked for, which ends with its last client."""
        key = None if asked.project is None else (asked.project, asked.user)
        feed = self._feeds.get(key)
        if feed is None or feed.is_over:
            self._check_projects(asked.project)
            feed = self._feeds[key] = self._begun(self._source(key))
        feed.clients += 1
        try:
            yield feed
        finally:
            feed.clients -= 1
            if not feed.clients:
                feed.stop()
                if self._feeds.get(key) is feed:
                    del self._feeds[key]

    def _check_projects(self, project: str | None) -> None:
        """A feed keeps its project's store open: if there were feeds of as many as a server opens,
        requests about any other project would be refused."""
        known = {key[0] for key in self._feeds if key is not None}
        if project is not None and project not in known and len(known) >= self._most_projects:
            raise _busy(f"there are live streams of {self._most_projects} projects, and no more")

    def _source(self, key: _Key) -> Source:
        if key is not None:
            return ProjectEvents(*key, self._crew, self._open_vault, self._encode)
        if self._stamps is None:
            raise Misuse("name the project whose events are asked for: project=ID")
        return ProjectChanges(self._stamps)

    def _begun(self, source: Source) -> Feed:
        feed = Feed(
            source,
            self._crew,
            heartbeat_seconds=self._heartbeat_seconds,
            patience_seconds=self._patience_seconds,
        )
        self._running.add(feed.task)
        feed.task.add_done_callback(self._running.discard)
        return feed


def _busy(why: str) -> Refused:
    detail = f"{why}; close one, or ask /api/v1/happened from time to time"
    return Refused(503, "busy", detail, headers=(("Retry-After", str(_RETRY_SECONDS)),))
