"""The events of one project and user: read and encoded once, however many clients are told."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

from hardsave import Vault
from hardsave.defaults import LIVE_EVENTS
from hardsave.server.live import ids, sse
from hardsave.server.live.asked import Asked
from hardsave.server.live.backlog import Backlog, Item, Wanted
from hardsave.server.live.feed import in_thread
from hardsave.tasks.threads import Crew
from hardsave.values.text import dumps
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.history.follow import RELOAD, Event
from hardsave.vault.vault import generation

OpenVault = Callable[[str, str | None], AbstractContextManager[Vault]]
Encode = Callable[[Event[Checkpoint]], Mapping[str, Any]]

_MOST_FRAMES = 32  # messages that are kept until the next ones, for clients at the same place


class ProjectEvents:
    """A source; see `feed.Source`. `open_vault` and `encode` are called in threads."""

    quickest_seconds = 0.1
    slowest_seconds = 0.25

    def __init__(
        self, project: str, user: str | None, crew: Crew, open_vault: OpenVault, encode: Encode
    ) -> None:
        self._project = project
        self._user = user
        self._crew = crew
        self._open_vault = partial(open_vault, project, user)
        self._encode = encode
        self._loading = asyncio.Lock()
        self._frames: dict[tuple[int, Wanted], tuple[bytes, int]] = {}
        self._vault: Vault
        self._generation: bytes
        self._using: ExitStack
        self.backlog: Backlog

    def __str__(self) -> str:
        return f"live events of project {self._project!r}, user {self._user!r}"

    # As a source

    def open(self) -> None:
        with ExitStack() as using:
            self._vault = using.enter_context(self._open_vault())
            self._generation = generation(self._vault)
            self.backlog = Backlog(self._vault.follow().after)
            self._using = using.pop_all()

    def look(self) -> Callable[[], bool]:
        events, position = read(self._vault, self.backlog.position, LIVE_EVENTS)
        now = generation(self._vault)
        if now != self._generation or any(event.kind == RELOAD for event in events):
            return partial(self._begin_anew, self._vault.follow().after, now)
        if len(events) > LIVE_EVENTS:
            return partial(self._jump, self._vault.follow().after)
        return partial(self._take, [self._item(event) for event in events], position)

    def close(self) -> None:
        self._using.close()

    def _take(self, items: list[Item], position: int) -> bool:
        if position != self.backlog.position:
            self.backlog.add(items, position)
            self._frames.clear()
        return bool(items)

    def _jump(self, position: int) -> bool:
        self.backlog.jump(position)
        self._frames.clear()
        return True

    def _begin_anew(self, position: int, generation: bytes) -> bool:
        self._generation = generation
        self.backlog.begin_anew(position)
        self._frames.clear()
        return True

    def _item(self, event: Event[Checkpoint]) -> Item:
        data = dumps(self._encode(event)).encode("ascii")
        return Item(event.number, event.kind, event.timeline, event.task, data)

    # For clients

    async def joined(self, asked: Asked) -> "EventReader":
        if not asked.cursor:
            return EventReader(self, asked.wanted, self.backlog.position)
        number = ids.decode(self._project, self._user, asked.cursor, self._generation)
        if number is None or not await self._is_there(number):
            return EventReader(self, asked.wanted, self.backlog.position, missed="unknown_id")
        async with self._loading:  # of many that come at once, the others find what one has read
            if number < self.backlog.floor:
                await self._load(number)
        if self.backlog.is_far_behind(number):
            return EventReader(self, asked.wanted, self.backlog.position, missed="far_behind")
        return EventReader(self, asked.wanted, number)

    async def _is_there(self, number: int) -> bool:
        """Whether there is this number: it may be one that this feed has yet to see, and it is none
        if the store was put back to how it was before."""
        return number <= self.backlog.position or number <= await in_thread(
            self._crew, self._latest
        )

    def _latest(self) -> int:
        with self._open_vault() as vault:
            return vault.follow().after

    async def _load(self, after: int) -> None:
        """Put what happened behind a number before the backlog, unless it is too much."""
        upto = self.backlog.floor
        most, most_bytes = self.backlog.room_before()
        items = await in_thread(self._crew, partial(self._read_back, after, upto, most))
        if items is not None and sum(len(item.data) for item in items) <= most_bytes:
            self.backlog.add_before(items, after, upto)

    def _read_back(self, after: int, upto: int, most: int) -> list[Item] | None:
        # The client may be gone before this ends, and the feed's own vault with it.
        with self._open_vault() as vault:
            found, _ = read(vault, after, most, upto=upto)
            return [self._item(event) for event in found] if len(found) <= most else None

    def frame(self, number: int, wanted: Wanted) -> tuple[bytes, int]:
        """The message for a client that has seen all up to a number, and what it has seen then.
        Clients at the same place are given the very same bytes."""
        found = self._frames.get((number, wanted))
        if found is None:
            if len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            data, upto = self.backlog.part(number, wanted)
            made = sse.items("events", data, id=self.id(upto)) if data else b""
            found = self._frames[number, wanted] = made, upto
        return found

    def id(self, number: int) -> str:
        return ids.encode(self._project, self._user, number, self._generation)

    def hello(self, number: int, heartbeat_seconds: float) -> bytes:
        about = {"project": self._project, "heartbeat_seconds": heartbeat_seconds}
        return sse.message("hello", about, id=self.id(number))


class EventReader:
    """A client's place in the events; see `feed.Reader`."""

    def __init__(
        self,
        source: ProjectEvents,
        wanted: Wanted,
        number: int,
        *,
        missed: sse.Reason | None = None,
    ) -> None:
        self._source = source
        self._wanted = wanted
        self._missed = missed
        self._era = source.backlog.era
        self._number = number  # all up to it was told, or is not wanted
        self._told = number  # what the client knows of that

    def hello(self, heartbeat_seconds: float) -> bytes:
        return self._source.hello(self._number, heartbeat_seconds)

    def next(self) -> bytes:
        backlog = self._source.backlog
        if self._missed is None and (self._number < backlog.floor or self._era != backlog.era):
            self._missed = backlog.lost
        if self._missed is not None:
            return self._reload(self._missed, backlog.position)
        frame = b""
        while not frame and self._number < backlog.position:
            frame, self._number = self._source.frame(self._number, self._wanted)
        if frame:
            self._told = self._number
        return frame

    def _reload(self, reason: sse.Reason, position: int) -> bytes:
        self._missed = None
        self._era = self._source.backlog.era
        self._number = self._told = position
        return sse.reload(reason, id=self._source.id(position))

    def heartbeat(self) -> bytes:
        id = "" if self._told == self._number else self._source.id(self._number)
        self._told = self._number
        return sse.heartbeat(id=id)


def read(
    vault: Vault, after: int, most: int, *, upto: int | None = None
) -> tuple[list[Event[Checkpoint]], int]:
    """The events behind a number, in order, and the number that all were read up to. More than
    `most` only if there are more: then not all."""
    following = vault.follow(after)
    events: list[Event[Checkpoint]] = []
    while len(events) <= most and (found := following.read()):
        events += found
        if upto is not None and following.after >= upto:
            break
    return [event for event in events if upto is None or event.number <= upto], following.after
