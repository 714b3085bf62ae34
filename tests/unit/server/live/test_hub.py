"""The hub in an event loop of the test: clients that go away at any moment leave nothing behind."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import hardsave
from hardsave import Vault
from hardsave.defaults import LIVE_PROJECTS, MAX_OPEN_PROJECTS
from hardsave.errors import Unavailable
from hardsave.server.errors import Refused
from hardsave.server.live import hub as hubs
from hardsave.server.live.asked import Asked
from hardsave.server.live.hub import Hub, Stream
from hardsave.stores.memory.store import MemoryStore
from tests.unit.server.live.live_server import encode
from tests.unit.server.live.sse_client import LIMIT, message

ASKED = Asked("p", None, "t")


class Gate(MemoryStore):
    """Reads wait for the gate, and fail if they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.is_broken = False
        self.waiting = threading.Event()

    def latest_number(self, user: str | None) -> int:
        if not self.gate.is_set():
            self.waiting.set()
        assert self.gate.wait(LIMIT)
        if self.is_broken:
            raise Unavailable("the disk is gone")
        return super().latest_number(user)


class Room:
    """A vault, and how often it is in use."""

    def __init__(self) -> None:
        self.store = Gate()
        self.vault = Vault(self.store)
        self.uses = 0
        self.failing: Exception | None = None

    @contextlib.contextmanager
    def open_vault(self, project: str, user: str | None) -> Iterator[Vault]:
        if self.failing is not None:
            raise self.failing
        self.uses += 1
        try:
            yield self.vault
        finally:
            self.uses -= 1


@contextlib.asynccontextmanager
async def hub_of(room: Room, **options: Any) -> AsyncIterator[Hub]:
    """A hub of which nothing is left in the end."""
    hub = Hub(room.open_vault, encode, **options)
    yield hub
    room.store.gate.set()
    await hub.close()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert (hub.clients, room.uses) == (0, 0)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not is_so():  # noqa: ASYNC110 # a thread makes it so
            await asyncio.sleep(0.002)


async def event_of(stream: Stream) -> str:
    async with asyncio.timeout(LIMIT):
        return message(await anext(stream)).event


def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    async def session() -> None:
        room = Room()
        async with hub_of(room) as hub:
            async with hub.stream(ASKED) as stream:
                assert await event_of(stream) == "hello"
                assert (hub.clients, room.uses) == (1, 1)
            await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
            assert (hub.clients, room.uses) == (0, 0)

    asyncio.run(session())


def test_streams_are_of_so_many_projects_and_leave_room_for_others() -> None:
    async def scene() -> None:
        async with hub_of(Room(), most_projects=2) as hub, contextlib.AsyncExitStack() as clients:
            for project, user in (("p", None), ("p", "ada"), ("q", None)):
                await clients.enter_async_context(hub.stream(Asked(project, user, "t")))
            with pytest.raises(Refused, match="live streams of 2 projects") as caught:
                await clients.enter_async_context(hub.stream(Asked("r", None, "t")))
            assert (caught.value.status, caught.value.code) == (503, "busy")
            await clients.aclose()
            async with hub.stream(Asked("r", None, "t")):
                assert hub.clients == 1

    asyncio.run(scene())
    assert LIVE_PROJECTS < MAX_OPEN_PROJECTS


def test_a_client_can_be_cancelled_while_it_waits() -> None:
    async def session() -> None:
        room = Room()
        async with hub_of(room) as hub:
            begun = asyncio.Event()

            async def read() -> None:
                async with hub.stream(ASKED) as stream:
                    async for _ in stream:
                        begun.set()

            reading = asyncio.ensure_future(read())
            async with hub.stream(ASKED) as other:
                assert await event_of(other) == "hello"
                await begun.wait()
                reading.cancel()
                await asyncio.wait([reading])
                assert hub.clients == 1
                room.vault.timeline("main").save(1, name="after")
                assert await event_of(other) == "events"

    asyncio.run(session())


def test_a_client_can_be_cancelled_while_its_vault_is_opened() -> None:
    async def session() -> None:
        room = Room()
        async with hub_of(room) as hub:
            room.store.gate.clear()

            async def read() -> None:
                async with hub.stream(ASKED):
                    raise AssertionError("it was cancelled before")

            reading = asyncio.ensure_future(read())
            await asyncio.to_thread(room.store.waiting.wait, LIMIT)
            reading.cancel()
            await asyncio.wait([reading])
            assert reading.cancelled()
            assert hub.clients == 0
            room.store.gate.set()
            await until(lambda: room.uses == 0)

    asyncio.run(session())


def test_what_keeps_a_feed_from_beginning_is_raised_for_each_client() -> None:
    async def session() -> None:
        room = Room()
        room.failing = hardsave.NotFound("there is no such project")
        async with hub_of(room) as hub:

            async def enter() -> None:
                async with hub.stream(ASKED):
                    raise AssertionError("it cannot be opened")

            found = await asyncio.gather(*(enter() for _ in range(3)), return_exceptions=True)
            assert found == [room.failing] * 3
            room.failing = None
            async with hub.stream(ASKED) as stream:
                assert await event_of(stream) == "hello"

    asyncio.run(session())


def test_a_client_that_comes_does_not_wait_for_those_of_a_feed_that_ended() -> None:
    async def session() -> None:
        room = Room()
        async with (
            hub_of(room, patience_seconds=0.01) as hub,
            contextlib.AsyncExitStack() as staying,
        ):
            async with hub.stream(ASKED) as old:
                assert await event_of(old) == "hello"
                room.store.is_broken = True
                with pytest.raises(StopAsyncIteration):
                    await anext(old)
                room.store.is_broken = False
                new = await staying.enter_async_context(hub.stream(ASKED))
                assert await event_of(new) == "hello"
                with pytest.raises(StopAsyncIteration):
                    await anext(old)
            await hub.close()
            assert await event_of(new) == "bye"

    asyncio.run(session())


def test_a_look_that_takes_long_holds_neither_heartbeats_nor_the_end_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hubs, "_CLOSE_SECONDS", 0.01)

    async def session() -> None:
        room = Room()
        async with hub_of(room, heartbeat_seconds=0.005) as hub, hub.stream(ASKED) as stream:
            assert await event_of(stream) == "hello"
            room.store.gate.clear()
            await asyncio.to_thread(room.store.waiting.wait, LIMIT)
            assert [await event_of(stream) for _ in range(3)] == ["", "", ""]
            await hub.close()
            assert await event_of(stream) == "bye"
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            assert room.uses == 1  # it is in use until the look has ended
            with pytest.raises(Refused, match="the server stops"):
                async with hub.stream(ASKED):
                    raise AssertionError("it was closed")

    asyncio.run(session())
