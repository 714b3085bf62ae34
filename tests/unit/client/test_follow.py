"""Events over a stream that breaks, falls behind and ends."""

import json
import threading
from typing import Any

import pytest

from hardsave.client import RemoteVault, connect
from hardsave.client.follow import RemoteFollowing
from hardsave.client.reading import Unreadable
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from tests.unit.client.scripted import BUSY, LOST, Parts, Scripted, problem, scripted

HELLO = b'id: start\nevent: hello\ndata: {"project": null, "heartbeat_seconds": 15}\n\n'
BYE = b"event: bye\ndata: {}\n\n"


def event(number: int, timeline: str | None = "main") -> dict[str, Any]:
    return {
        "kind": "rewind",
        "timeline": timeline,
        "task": None,
        "created_at": "2026-01-31T14:00:00+00:00",
        "checkpoint": None,
        "data": {"number": number, "raw": {"$bytes": "AP8="}},
    }


def message(id: str, *numbers: int) -> bytes:
    data = json.dumps({"items": [event(number) for number in numbers]})
    return f"id: {id}\nevent: events\ndata: {data}\n\n".encode()


def reload(reason: str) -> bytes:
    return f'id: now\nevent: reload\ndata: {{"reason": "{reason}"}}\n\n'.encode()


def taken(following: RemoteFollowing, count: int) -> list[int]:
    return [next(following).data["number"] for _ in range(count)]  # type: ignore[index] # has data


@pytest.fixture
def following(server: Scripted, vault: RemoteVault) -> RemoteFollowing:
    server.says("/happened", {"items": [], "next": "0"})
    return vault.follow()


def test_it_begins_when_it_is_asked_for_not_when_it_is_first_read(
    server: Scripted, following: RemoteFollowing
) -> None:
    assert "cursor" not in server.asked("/happened")[0].query
    assert server.asked("/events") == []
    server.says("/events", Parts((HELLO, message("1", 1))))
    assert taken(following, 1) == [1]
    assert server.asked("/events")[0].headers["last-event-id"] == "0"


def test_events_are_records_with_values_as_they_were(
    server: Scripted, following: RemoteFollowing
) -> None:
    server.says("/events", Parts((HELLO, message("1", 1))))
    found = next(following)
    assert (found.kind, found.timeline, found.checkpoint) == ("rewind", "main", None)
    assert found.data == {"number": 1, "raw": b"\x00\xff"}
    assert found.created_at.tzinfo is not None


def test_a_stream_that_breaks_goes_on_behind_the_last_message(
    server: Scripted, following: RemoteFollowing
) -> None:
    cut = message("9", 9)[:-1]  # is not whole
    server.says(
        "/events",
        Parts((HELLO, message("1", 1, 2), cut), ends=True),
        LOST,
        BUSY,
        Parts((HELLO, message("2", 3))),
    )
    assert taken(following, 3) == [1, 2, 3]
    asked = [each.headers["last-event-id"] for each in server.asked("/events")]
    assert asked == ["0", "1", "1", "1"]


def test_a_heartbeat_may_move_the_place_where_a_stream_goes_on(
    server: Scripted, following: RemoteFollowing
) -> None:
    beats = Parts((HELLO, message("1", 1), b": .\n\n", b": .\nid: 5\n\n"), ends=True)
    server.says("/events", beats, Parts((HELLO, message("6", 6))))
    assert taken(following, 2) == [1, 6]
    assert [each.headers["last-event-id"] for each in server.asked("/events")] == ["0", "5"]


def test_the_ids_of_events_never_lead_past_one_that_was_not_taken(
    server: Scripted, following: RemoteFollowing
) -> None:
    server.says("/events", Parts((HELLO, message("1", 1, 2), message("2", 3))))
    assert [next(following).id for _ in range(3)] == ["0", "1", "2"]


@pytest.mark.parametrize("reason", ["far_behind", "slow"])
def test_what_the_stream_has_missed_is_read_from_the_own_last_id(
    server: Scripted, following: RemoteFollowing, reason: str
) -> None:
    server.says(
        "/events",
        Parts((HELLO, message("1", 1) + reload(reason) + message("9", 9))),
        Parts((HELLO, message("5", 5))),
    )
    server.says(
        "/happened",
        {"items": [event(2), event(3)], "next": "3"},
        {"items": [event(4)], "next": "4"},
        {"items": [], "next": "4"},
    )
    assert taken(following, 5) == [1, 2, 3, 4, 5]
    asked = [each.query.get("cursor") for each in server.asked("/happened")]
    assert asked == [None, "1", "3", "4"]
    assert server.asked("/events")[1].headers["last-event-id"] == "4"


def test_an_id_that_the_server_does_not_know_is_told_instead_of_a_gap(
    server: Scripted, vault: RemoteVault
) -> None:
    server.says("/events", Parts((HELLO, reload("unknown_id"))))
    with pytest.raises(Conflict, match="'elsewhere'"):
        next(vault.follow(after="elsewhere"))


def test_events_of_other_timelines_are_left_out_of_what_is_read_by_the_page(
    server: Scripted, vault: RemoteVault
) -> None:
    of_a_task = {**event(4, None), "task": "t1"}
    every = [event(1), event(2, "other"), event(3), of_a_task, event(5, None)]
    server.says("/happened", {"items": every, "next": "5"})
    found = vault.follow(after="0", timeline="main").read()
    assert [each.data["number"] for each in found if each.data] == [1, 3, 5]
    server.says("/events", Parts((HELLO,), ends=True), Parts((HELLO, message("4", 4))))
    following = vault.follow(after="3", timeline="main")
    assert taken(following, 1) == [4]
    assert {each.query["timeline"] for each in server.asked("/events")} == {"main"}


def test_a_look_does_not_wait_and_repeats_nothing(
    server: Scripted, following: RemoteFollowing
) -> None:
    server.says("/events", Parts((HELLO, message("2", 1, 2))))
    assert taken(following, 1) == [1]
    assert [each.id for each in following.read()] == ["2"]  # had come already
    server.says("/happened", {"items": [event(3)], "next": "3"}, {"items": [], "next": "3"})
    assert [each.id for each in following.read()] == ["3"]
    assert following.read() == []
    assert [each.query["cursor"] for each in server.asked("/happened")[1:]] == ["2", "3"]
    server.says("/events", Parts((HELLO, message("4", 4))))
    assert taken(following, 1) == [4]
    assert server.asked("/events")[-1].headers["last-event-id"] == "3"


def test_a_server_that_says_goodbye_is_asked_again(
    server: Scripted, following: RemoteFollowing
) -> None:
    server.says("/events", Parts((HELLO, BYE)), Parts((HELLO, message("1", 1))))
    assert taken(following, 1) == [1]


@pytest.mark.parametrize(
    ("close", "said"), [("the following", (HELLO,)), ("the vault", (HELLO,)), ("the vault", ())]
)
def test_a_thread_that_waits_is_woken_when_it_is_closed(
    server: Scripted, vault: RemoteVault, close: str, said: tuple[bytes, ...]
) -> None:
    following = vault.follow(after="0")
    server.says("/events", Parts(said))
    ended = threading.Event()

    def wait() -> None:
        assert [*following] == []
        ended.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while not server.asked("/events"):
        ended.wait(0.01)
    (following if close == "the following" else vault).close()
    assert ended.wait(10)
    thread.join()


def test_a_stream_that_begins_while_it_is_closed_ends(server: Scripted, vault: RemoteVault) -> None:
    following = vault.follow(after="0")

    def close(_: Any) -> Parts:
        following.close()
        return Parts(())  # nothing comes that would wake it

    server.says("/events", close)
    ended: list[list[Any]] = []
    thread = threading.Thread(target=lambda: ended.append([*following]), daemon=True)
    thread.start()
    thread.join(10)
    assert ended == [[]]


def test_a_server_that_is_gone_for_long_is_an_error_and_may_be_asked_again(
    server: Scripted, vault: RemoteVault
) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 40
        return now

    server.says("/events", LOST)
    following = RemoteFollowing(vault._calls, "7", None, clock=clock)
    with pytest.raises(Unavailable, match="hardsave serve"):
        next(following)
    server.says("/events", Parts((HELLO, message("8", 8))))
    assert taken(following, 1) == [8]
    assert server.asked("/events")[-1].headers["last-event-id"] == "7"
    following.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(401, "token", "this token is wrong"), Misuse),
        (problem(404, "not_found", "there is no project"), NotFound),
        (Parts((b"id: 1\nevent: events\ndata: {\n\n",)), Unreadable),
        (Parts((b"id: 1\nevent: events\ndata: []\n\n",)), Unreadable),
        (Parts((b'id: 1\nevent: events\ndata: {"items": [1]}\n\n',)), Unreadable),
    ],
)
def test_what_another_try_does_not_change_is_an_error_at_once(
    server: Scripted, vault: RemoteVault, answer: Any, kind: type[Exception]
) -> None:
    server.says("/events", answer)
    with pytest.raises(kind), vault.follow(after="0") as following:
        next(following)
    assert len(server.asked("/events")) == 1


def test_a_value_that_only_looks_like_a_spelling_ends_no_stream(
    server: Scripted, following: RemoteFollowing
) -> None:
    data = {**event(1), "data": {"answer": {"$int": "x"}}}
    said = f"id: 1\nevent: events\ndata: {json.dumps({'items': [data]})}\n\n".encode()
    server.says("/events", Parts((HELLO, said)))
    assert next(following).data == {"answer": {"$int": "x"}}


def test_a_server_that_comes_back_elsewhere_is_not_confused_with_another() -> None:
    """Each vault has its own connections."""
    with scripted() as one, scripted() as other:
        for each in (one, other):
            each.says("/happened", {"items": [], "next": each.url})
        with connect(one.url) as first, connect(other.url) as second:
            assert first.follow()._last == one.url
            assert second.follow()._last == other.url
