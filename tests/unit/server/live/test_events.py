"""The events of a project, looked at step by step: nothing is missed, and nothing comes twice."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hardsave
from hardsave import Vault
from hardsave.defaults import LIVE_EVENTS
from hardsave.errors import Unavailable
from hardsave.server.live import ids
from hardsave.server.live.asked import Asked
from hardsave.server.live.backlog import Wanted
from hardsave.server.live.events import EventReader, ProjectEvents
from hardsave.tasks.threads import Crew
from hardsave.vault.history.follow import Event
from tests.unit.server.live.sse_client import message

PROJECT, USER = "p", "kim"


def encode(event: Event[Any]) -> dict[str, Any]:
    label = event.kind if event.checkpoint is None else event.checkpoint.name
    return {"kind": event.kind, "label": label}


class Stage:
    """A store, a source, and clients of it."""

    def __init__(self) -> None:
        self.vault = hardsave.open("memory://", user=USER)
        self.other = self.vault.as_user("lee", create=True)
        self.line = self.vault.timeline("main")
        self.saved: list[str] = []
        self.uses = 0
        self.encoded: list[str] = []
        self.crew = Crew(2, "test")
        self.source = ProjectEvents(PROJECT, USER, self.crew, self.opened, self.encode)

    @contextlib.contextmanager
    def opened(self, project: str, user: str | None) -> Iterator[Vault]:
        assert (project, user) == (PROJECT, USER)
        self.uses += 1
        yield self.vault
        self.uses -= 1

    def encode(self, event: Event[Any]) -> dict[str, Any]:
        made = encode(event)
        self.encoded.append(made["label"])
        return made

    def save(self, count: int = 1) -> None:
        for _ in range(count):
            self.saved.append(f"n{len(self.saved)}")
            self.line.save(len(self.saved), name=self.saved[-1])

    def look(self) -> bool:
        return self.source.look()()

    def join(self, cursor: str = "", wanted: Wanted = Wanted()) -> EventReader:  # noqa: B008 # it is a tuple
        async def joined() -> EventReader:
            return await self.source.joined(Asked(PROJECT, USER, "t", cursor, wanted))

        return asyncio.run(joined())

    def id(self, number: int) -> str:
        return ids.encode(PROJECT, USER, number)


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    made.source.open()
    yield made
    made.source.close()
    made.crew.close()
    made.vault.close()
    assert made.uses == 0


def told(reader: EventReader) -> list[str]:
    """The labels of all that there is to tell."""
    found: list[str] = []
    while data := reader.next():
        found += message(data).labels
    return found


def test_all_events_of_a_look_are_one_message_and_the_same_bytes_for_all(stage: Stage) -> None:
    stage.save(2)
    readers = [stage.join() for _ in range(3)]
    assert [reader.next() for reader in readers] == [b""] * 3
    stage.look()
    before = [stage.join() for _ in range(2)]
    stage.save(3)
    assert stage.look()
    frames = [reader.next() for reader in readers]
    assert [message(frame).labels for frame in frames] == [stage.saved] * 3
    assert frames[0] is frames[1] is frames[2]
    later = [reader.next() for reader in before]
    assert message(later[0]).labels == stage.saved[2:]
    assert later[0] is later[1]
    assert stage.encoded == stage.saved  # each once


def test_clients_with_the_same_filter_are_given_the_same_bytes(stage: Stage) -> None:
    wanted = [Wanted(None, frozenset({"fork"})) for _ in range(2)]
    readers = [stage.join(wanted=each) for each in wanted]
    stage.save()
    stage.line.fork("@", name="other")
    stage.look()
    one, other = (reader.next() for reader in readers)
    assert message(one).labels == ["fork"]
    assert one is other


def test_the_id_of_a_message_is_the_place_behind_it(stage: Stage) -> None:
    reader = stage.join()
    stage.save(2)
    stage.look()
    id = message(reader.next()).id
    stage.save()
    assert told(stage.join(id)) == []  # not looked at yet
    stage.look()
    assert told(stage.join(id)) == stage.saved[2:]
    assert message(stage.join().hello(15)).id == stage.id(3)


def test_hello_says_where_the_stream_starts(stage: Stage) -> None:
    stage.save(3)
    stage.look()
    about = {"project": PROJECT, "heartbeat_seconds": 15}
    assert message(stage.join().hello(15)) == ("hello", stage.id(3), about)
    assert message(stage.join(stage.id(1)).hello(15)) == ("hello", stage.id(1), about)


def test_a_client_goes_on_from_before_the_feed_began() -> None:
    stage = Stage()
    stage.save(500)
    stage.source.open()
    stage.save(3)
    stage.look()
    assert told(stage.join(stage.id(100))) == stage.saved[100:]
    assert told(stage.join(stage.id(40))) == stage.saved[40:]
    assert len(stage.encoded) == 463  # what is there is not read again
    stage.save()
    stage.look()
    assert told(stage.join(stage.id(40))) == stage.saved[40:]
    assert stage.uses == 1  # the feed itself


@pytest.mark.parametrize("began", ["before", "after"])
def test_a_client_that_has_missed_too_much_is_told_to_reload(began: str) -> None:
    stage = Stage()
    if began == "before":
        stage.source.open()
    for _ in range(2):
        stage.save(LIVE_EVENTS // 2 + 1)
        if began == "before":
            stage.look()
    if began == "after":
        stage.source.open()
    far, near = stage.join(stage.id(1)), stage.join(stage.id(2))
    assert message(far.next()) == ("reload", stage.id(LIVE_EVENTS + 2), {"reason": "far_behind"})
    assert told(near) == stage.saved[2:]
    stage.save()
    stage.look()
    assert told(far) == told(near) == stage.saved[-1:]


def test_a_client_whose_events_are_too_large_together_is_told_to_reload(stage: Stage) -> None:
    stage.source._encode = lambda event: {"label": "x" * 100_000}
    stage.save(30)
    stage.source.backlog.jump(30)
    assert message(stage.join(stage.id(0)).next()).data == {"reason": "far_behind"}
    assert stage.source.backlog.floor == 30  # nothing of it is kept
    assert len(told(stage.join(stage.id(20)))) == 10


@pytest.mark.parametrize(
    "cursor",
    [
        "garbage",
        ids.encode("q", USER, 1),
        ids.encode(PROJECT, "lee", 1),
        ids.encode(PROJECT, None, 1),
        ids.encode(PROJECT, USER, 3),  # there is none: the store was put back
        "\N{SNOWMAN}",
    ],
)
def test_an_id_that_is_none_of_these_events_is_told_so(stage: Stage, cursor: str) -> None:
    stage.save(2)
    stage.look()
    reader = stage.join(cursor)
    assert message(reader.next()) == ("reload", stage.id(2), {"reason": "unknown_id"})
    assert reader.next() == b""
    stage.save()
    stage.look()
    assert told(reader) == stage.saved[2:]


def test_clients_are_told_that_numbers_were_given_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.save(3)
    stage.look()
    readers = [stage.join(), stage.join(stage.id(1))]
    assert told(readers[1]) == stage.saved[1:]
    stage.save(2)  # in a store that had lost what came before, so the numbers look right
    monkeypatch.setattr("hardsave.server.live.events.generation", lambda vault: b"another")
    assert stage.look()
    newest = ids.encode(PROJECT, USER, 5, b"another")
    for reader in readers:
        assert message(reader.next()) == ("reload", newest, {"reason": "store_changed"})
        assert reader.next() == b""
    assert message(stage.join(stage.id(4)).next()).data == {"reason": "unknown_id"}
    stage.save()
    stage.look()
    for reader in (*readers, stage.join(newest)):
        assert told(reader) == stage.saved[5:]


def test_an_id_that_the_feed_has_not_seen_yet_is_no_unknown_one(stage: Stage) -> None:
    stage.save(3)
    reader = stage.join(stage.id(2))
    assert reader.next() == b""
    stage.look()
    assert told(reader) == stage.saved[2:]


def test_a_client_that_does_not_read_is_told_to_reload_when_it_does(stage: Stage) -> None:
    slow = stage.join()
    for _ in range(5):
        stage.save(LIVE_EVENTS // 2)
        stage.look()
    newest = stage.id(len(stage.saved))
    assert message(slow.next()) == ("reload", newest, {"reason": "slow"})
    assert slow.next() == b""
    stage.save()
    stage.look()
    assert told(slow) == stage.saved[-1:]


def test_a_feed_that_has_missed_too_much_encodes_none_of_it(stage: Stage) -> None:
    reader = stage.join()
    stage.save(LIVE_EVENTS + 1)
    assert stage.look()
    assert stage.encoded == []
    assert message(reader.next()).data == {"reason": "far_behind"}
    stage.save()
    stage.look()
    assert told(reader) == stage.saved[-1:]


def test_a_heartbeat_moves_a_client_on_that_wants_nothing_of_what_happened(stage: Stage) -> None:
    reader = stage.join(wanted=Wanted("other"))
    assert message(reader.heartbeat()) == ("", "", None)
    stage.save(3)
    stage.look()
    assert reader.next() == b""
    assert message(reader.heartbeat()) == ("", stage.id(3), None)
    assert message(reader.heartbeat()) == ("", "", None)


def test_a_heartbeat_says_no_id_that_a_message_has_said(stage: Stage) -> None:
    reader = stage.join()
    stage.save()
    stage.look()
    assert told(reader) == stage.saved
    assert message(reader.heartbeat()) == ("", "", None)


def test_what_is_numbered_and_is_no_event_moves_clients_on_without_waking_them(
    stage: Stage,
) -> None:
    stage.vault.tasks.add("t")
    with stage.vault.tasks.attempt("t") as attempt:
        stage.look()
        reader = stage.join()
        attempt.step("a", lambda: 1)
        before = stage.source.backlog.position
        assert not stage.look()
        assert stage.source.backlog.position == before + 1
        assert reader.next() == b""
        assert message(reader.heartbeat()).id == stage.id(before + 1)


def test_a_client_that_was_late_is_told_all_in_one_message(stage: Stage) -> None:
    quick, late = stage.join(), stage.join()
    stage.save(2)
    stage.look()
    assert message(quick.next()).labels == stage.saved
    stage.save(2)
    stage.look()
    assert message(late.next()).labels == stage.saved


def test_messages_for_clients_at_many_places_are_not_all_kept(stage: Stage) -> None:
    readers = []
    for _ in range(100):
        readers.append(stage.join())
        stage.save()
        stage.look()
    assert [len(told(reader)) for reader in readers] == list(range(100, 0, -1))
    assert len(stage.source._frames) <= 32


def test_an_event_that_cannot_be_encoded_is_not_skipped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stage.join()
    stage.save(2)

    def failing(event: Event[Any]) -> dict[str, Any]:
        raise Unavailable("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(stage.source, "_encode", failing)
        with pytest.raises(Unavailable):
            stage.look()
    stage.save()
    stage.look()
    assert told(reader) == stage.saved


def test_a_vault_that_cannot_be_followed_is_let_go(stage: Stage) -> None:
    stage.vault.close()
    source = ProjectEvents(PROJECT, USER, stage.crew, used(stage), encode)
    with pytest.raises(hardsave.Misuse):
        source.open()
    assert stage.uses == 1  # the stage's own


def used(stage: Stage) -> Callable[[str, str | None], Any]:
    @contextlib.contextmanager
    def opened(project: str, user: str | None) -> Iterator[Vault]:
        stage.uses += 1
        try:
            yield stage.vault
        finally:
            stage.uses -= 1

    return opened


STEPS = st.sampled_from(["save", "save 3", "other", "look", "join", "again", "read", "read one"])


@given(st.lists(STEPS, max_size=40))
def test_every_client_is_told_everything_once_and_in_order(steps: list[str]) -> None:
    stage = Stage()
    stage.source.open()
    clients: list[tuple[EventReader, int, list[str], list[str]]] = []
    for step in steps:
        if step.startswith("save"):
            stage.save(int(step.partition(" ")[2] or 1))
        elif step == "other":
            stage.other.timeline("main").save(0, expect=hardsave.ANY_HEAD)
        elif step == "look":
            stage.look()
        elif step == "join":
            reader = stage.join()
            at = ids.decode(PROJECT, USER, message(reader.hello(1)).id)
            assert at is not None
            clients.append((reader, at, [], [message(reader.hello(1)).id]))
        else:
            _go_on(stage, clients, step)
    stage.look()
    for reader, at, seen, _ in clients:
        assert seen + told(reader) == stage.saved[at:]


def _go_on(
    stage: Stage, clients: list[tuple[EventReader, int, list[str], list[str]]], step: str
) -> None:
    """All clients read, or come again with the ids that they have seen last."""
    for place, (reader, at, seen, last) in enumerate(clients):
        if step == "again":
            clients[place] = stage.join(last[-1]), at, seen, last
        while step.startswith("read") and (data := reader.next()):
            seen += message(data).labels
            last.append(message(data).id)
            if step == "read one":
                break
