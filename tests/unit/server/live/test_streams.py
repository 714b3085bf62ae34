"""Streams of a real server, read over real sockets, beside real writers."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Vault
from hardsave.errors import Unavailable
from hardsave.server import connection
from hardsave.server.live.ids import encode as id_of
from hardsave.server.projects import Project
from hardsave.server.vaults import Vaults
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.history.follow import Event
from tests.unit.server.live.live_server import Live, encode, live
from tests.unit.server.live.sse_client import LIMIT, Listener


class Room:
    """A store on disk, and who uses its vaults."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 's.db'}"
        self.vault = hardsave.open(self.url)
        self.line = self.vault.timeline("main")
        self.project = Project("p", "p", str(folder), self.url, is_here=True)
        self.vaults = Vaults()
        self.uses = 0

    @contextlib.contextmanager
    def open_vault(self, project: str, user: str | None) -> Iterator[Vault]:
        if project == "none":
            raise hardsave.NotFound("there is no project 'none'")
        with self.vaults.of(self.project, user) as vault:
            self.uses += 1
            try:
                yield vault
            finally:
                self.uses -= 1

    def save(self, *labels: str, timeline: str = "main") -> None:
        line = self.vault.timeline(timeline)
        for label in labels:
            line.save(label, name=label, expect=hardsave.ANY_HEAD)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path)
    with made.vault:
        yield made
    made.vaults.close()


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what happens in another thread."""
    end = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


def named(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def listening(stack: ExitStack, server: Live, count: int, **options: Any) -> list[Listener]:
    made = [stack.enter_context(server.listen(**options)) for _ in range(count)]
    for each in made:
        each.next("hello")
    return made


def test_all_clients_are_told_all_events_in_order(room: Room) -> None:
    with live(room.open_vault) as server, ExitStack() as stack:
        listeners = listening(stack, server, 5)
        for label in named(30):
            room.save(label)
        room.line.fork("@", name="other")
        for listener in listeners:
            assert listener.labels(31) == [*named(30), "fork"]


def test_the_stream_begins_with_hello(room: Room) -> None:
    room.save("before")
    with live(room.open_vault) as server, server.listen() as listener:
        assert listener.headers["Content-Type"] == "text/event-stream"
        about = {"project": "p", "heartbeat_seconds": 15}
        assert listener.next("hello") == ("hello", id_of("p", None, 1), about)
        room.save("after")
        assert listener.labels(1) == ["after"]


def test_a_client_that_comes_again_goes_on_where_it_was(room: Room) -> None:
    with live(room.open_vault) as server:
        with server.listen() as first:
            first.next("hello")
            room.save(*named(3))
            assert first.labels(3) == named(3)
        until(lambda: not server.hub.clients)
        room.save(*named(4, "away"))
        with server.resumed(first) as second:
            assert second.next("hello").id == first.last
            assert second.labels(4) == named(4, "away")
    with live(room.open_vault) as server, server.resumed(first) as third:  # another server
        third.next("hello")
        assert third.labels(4) == named(4, "away")


def test_reconnects_amid_writers_miss_nothing_and_repeat_nothing(room: Room) -> None:
    writers, each = 3, 100
    failed: list[BaseException] = []

    def write(number: int) -> None:
        for label in named(each, f"w{number}-"):
            room.save(label, timeline=f"t{number}")
            time.sleep(0.004)

    def read(server: Live, start: str, every: int) -> None:
        """Leaves after some messages, and comes back with the last id."""
        listener, seen = server.listen(last=start), list[str]()
        try:
            while len(seen) < writers * each:
                listener.next("hello")
                for _ in range(every):
                    seen += listener.next("events").labels
                    if len(seen) >= writers * each:
                        break
                listener = server.resumed(listener)
            assert seen == happened()
        except BaseException as error:  # noqa: BLE001 # told by the test
            failed.append(error)
        finally:
            listener.__exit__()

    def happened() -> list[str | None]:
        events = islice(room.vault.follow(after=0), writers * each)
        return [event.checkpoint.name for event in events if event.checkpoint]

    with live(room.open_vault) as server:
        start = id_of("p", None, 0)
        threads = [
            *(threading.Thread(target=write, args=(number,)) for number in range(writers)),
            *(threading.Thread(target=read, args=(server, start, each)) for each in (1, 2, 3, 5)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
    assert failed == []


def large(event: Event[Any]) -> dict[str, Any]:
    return {**encode(event), "fill": "x" * 1_000_000}


def test_a_client_that_does_not_read_holds_nothing_up_and_reloads(room: Room) -> None:
    with (
        live(room.open_vault, large) as server,
        server.listen(receive_bytes=4_096) as slow,
        server.listen() as quick,
    ):
        slow.next("hello")
        quick.next("hello")
        labels, seen = named(30), list[str]()
        for at in range(0, 30, 3):  # 30 MB: more than lies in the buffers of two sockets
            room.save(*labels[at : at + 3])
            seen += quick.labels(3)
        assert seen == labels
        found: list[str] = []
        while (message := next(slow.messages)).event == "events":
            found += message.labels
        assert found == labels[: len(found)]
        assert message[0::2] == ("reload", {"reason": "slow"})
        assert message.id == quick.last
        room.save("after")
        assert slow.labels(1) == quick.labels(1) == ["after"]


def test_a_client_that_has_missed_too_much_reloads(room: Room) -> None:
    room.save(*named(1_001))
    with live(room.open_vault) as server, server.listen(last=id_of("p", None, 0)) as listener:
        newest = id_of("p", None, 1_001)
        assert listener.next("hello").id == newest
        assert listener.next("reload") == ("reload", newest, {"reason": "far_behind"})
        room.save("after")
        assert listener.labels(1) == ["after"]


@pytest.mark.parametrize("cursor", ["garbage", id_of("q", None, 1), id_of("p", "kim", 1)])
def test_an_id_of_something_else_reloads(room: Room, cursor: str) -> None:
    room.save("before")
    with live(room.open_vault) as server, server.listen(last=cursor) as listener:
        listener.next("hello")
        assert listener.next("reload").data == {"reason": "unknown_id"}
        room.save("after")
        assert listener.labels(1) == ["after"]


def test_users_are_told_of_their_own_alone(room: Room) -> None:
    with (
        room.vault.as_user("kim", create=True) as kim,
        live(room.open_vault) as server,
        server.listen(user="kim") as hers,
        server.listen() as ours,
    ):
        hers.next("hello")
        ours.next("hello")
        kim.timeline("main").save(1, name="of kim")
        room.save("ours")
        kim.timeline("main").save(2, name="of kim too")
        assert hers.labels(2) == ["of kim", "of kim too"]
        assert ours.labels(1) == ["ours"]


def test_a_client_is_told_what_it_has_asked_for(room: Room) -> None:
    with (
        live(room.open_vault, heartbeat_seconds=0.05) as server,
        server.listen(timeline="a") as of_a,
        server.listen(kinds="fork,task_added") as of_kinds,
    ):
        of_a.next("hello")
        of_kinds.next("hello")
        room.save("one", timeline="a")
        room.save("two", timeline="b")
        room.vault.tasks.add("t")
        room.vault.timeline("b").fork("@", name="c")
        room.save("three", timeline="a")
        assert of_a.labels(2) == ["one", "three"]
        assert of_kinds.labels(2) == ["task_added", "fork"]
        room.save("four", timeline="b")
        newest = id_of("p", None, room.vault.follow().after)
        for each in (of_a, of_kinds):
            while each.last != newest:
                message = next(each.messages)
                assert not message.event  # a heartbeat has told it
                each.last = message.id or each.last


def test_a_heartbeat_comes_while_nothing_happens(room: Room) -> None:
    with live(room.open_vault, heartbeat_seconds=0.02) as server, server.listen() as listener:
        listener.next("hello")
        assert [next(listener.messages) for _ in range(3)] == [("", "", None)] * 3


def test_two_hundred_clients_are_told_goodbye(room: Room) -> None:
    with live(room.open_vault, most_of_token=200) as server, ExitStack() as stack:
        listeners = listening(stack, server, 200)
        stuck = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        room.save("last")
        for each in listeners:
            assert each.labels(1) == ["last"]
        server.stop()
        for each in listeners:
            assert each.next("bye").data == {}
            assert list(each.messages) == []
        assert stuck.recv(1) == b""
        assert (server.hub.clients, room.uses) == (0, 0)


def test_a_client_that_does_not_read_does_not_keep_the_server_from_ending(room: Room) -> None:
    with (
        live(room.open_vault, large) as server,
        server.listen(receive_bytes=4_096) as slow,
        server.listen() as quick,
    ):
        slow.next("hello")
        quick.next("hello")
        for at in range(4):
            room.save(*named(3, f"{at} "))
            quick.labels(3)
        server.stop()
        assert quick.next("bye").data == {}
        assert room.uses == 0


def test_there_are_so_many_clients_and_no_more(room: Room) -> None:
    def refused(server: Live, token: str) -> str | None:
        with server.listen(token=token) as listener:
            assert listener.status in (200, 503)
            return listener.headers["Retry-After"]

    one, two = {"token": "one"}, {"token": "two"}
    with live(room.open_vault, most=4, most_of_token=3) as server:
        with ExitStack() as stack:
            listening(stack, server, 3, **one)
            assert refused(server, "one") == "5"
            listening(stack, server, 1, **two)
            assert refused(server, "three") == "5"
        until(lambda: not server.hub.clients)
        assert refused(server, "one") is None


def test_streams_take_no_place_of_connections_that_wait(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST", 4)
    with live(room.open_vault) as server, ExitStack() as stack:
        listeners = listening(stack, server, 10)
        room.save("for all")
        for each in listeners:
            assert each.labels(1) == ["for all"]


def test_the_last_client_takes_its_vault_with_it(room: Room) -> None:
    with live(room.open_vault) as server:
        with ExitStack() as stack:
            listeners = listening(stack, server, 3)
            listeners += listening(stack, server, 1, user="kim")
            assert room.uses == 2
            listeners.pop().__exit__()
            until(lambda: room.uses == 1)
            listeners.pop().__exit__()
            until(lambda: server.hub.clients == 2)
            room.save("still")
            assert listeners[0].labels(1) == ["still"]
        until(lambda: room.uses == 0)
        assert server.hub._feeds == {}
        with server.listen() as again:
            again.next("hello")
            assert room.uses == 1


def test_what_cannot_be_opened_is_answered(room: Room) -> None:
    with live(room.open_vault) as server:
        for _ in range(2):
            with server.listen(project="none") as listener:
                assert listener.status == 404
        with server.listen(project=None) as listener:
            assert listener.status == 400  # there is no list of projects
        assert (server.hub.clients, server.hub._feeds) == (0, {})


class Breaking(MemoryStore):
    """Cannot be read while it is told so."""

    is_broken = False

    def latest_number(self, user: str | None) -> int:
        if self.is_broken:
            raise Unavailable("the disk is gone")
        return super().latest_number(user)


@contextlib.contextmanager
def breaking() -> Iterator[tuple[Breaking, Vault, Callable[..., Any]]]:
    store = Breaking()
    with Vault(store) as vault:
        yield store, vault, lambda project, user: contextlib.nullcontext(vault)


def test_a_store_that_fails_for_a_while_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with (
        breaking() as (store, vault, open_vault),
        live(open_vault, heartbeat_seconds=0.02) as server,
        server.listen() as listener,
    ):
        listener.next("hello")
        store.is_broken = True
        until(lambda: bool(caplog.records))
        vault.timeline("main").save(1, name="meanwhile")
        assert next(listener.messages).event == ""  # the stream goes on
        store.is_broken = False
        assert listener.labels(1) == ["meanwhile"]
    assert [record.message for record in caplog.records] == [
        "live events of project 'p', user None cannot be read: the disk is gone",
        "live events of project 'p', user None can be read again",
    ]


def test_streams_end_if_the_store_fails_for_long(caplog: pytest.LogCaptureFixture) -> None:
    with breaking() as (store, _, open_vault), live(open_vault, patience_seconds=0.1) as server:
        with server.listen() as listener, server.listen() as other:
            listener.next("hello")
            other.next("hello")
            store.is_broken = True
            assert [*listener.messages, *other.messages] == []  # without goodbye
        with server.listen() as listener:
            assert listener.status == 503
        store.is_broken = False
        with server.listen() as listener:
            listener.next("hello")
    assert "its streams end" in caplog.text


def test_a_client_of_all_projects_is_told_which_have_changed(room: Room) -> None:
    stamps: dict[str, object] = {"a": 1, "b": 1}
    with (
        live(room.open_vault, stamps=lambda: dict(stamps)) as server,
        server.listen(project=None) as listener,
    ):
        assert listener.next("hello").data["project"] is None
        stamps.update(b=2)
        assert listener.next("projects").data == {"items": ["b"]}
        with server.resumed(listener, project=None) as again:
            again.next("hello")
            assert again.next("reload").data == {"reason": "unknown_id"}
        server.stop()
