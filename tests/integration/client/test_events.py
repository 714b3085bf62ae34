"""Events of a real server, over connections that break."""

import itertools
import threading
from typing import Any

import pytest

import hardsave
from hardsave.client import RemoteFollowing, connect
from hardsave.defaults import LIVE_EVENTS
from tests.integration.client.conftest import Both
from tests.integration.client.relay import cutting
from tests.unit.server.job_server import OWN_TOKEN


def told(event: Any) -> tuple[Any, ...]:
    one = event.checkpoint
    return event.kind, event.timeline, event.task, event.by, None if one is None else one.id


def test_saves_operations_and_tasks_come_in_the_order_in_which_they_happened(both: Both) -> None:
    mine, other = both.local.follow(), both.remote.follow()
    line = both.local.timeline("main")
    line.save({"a": 1}, metadata={"pair": (1, 2)})
    both.remote.timeline("main").append({"b": [b"\x00"]})
    line.rewind("main:1")
    both.local.tasks.add("t1", "Do it")
    line.undo()
    expected = [next(mine) for _ in range(5)]
    found = [next(other) for _ in range(5)]
    assert [told(event) for event in found] == [told(event) for event in expected]
    first = found[0].checkpoint
    assert first is not None
    assert first.metadata == {"pair": (1, 2)}
    assert first.state == {"a": 1}
    assert found[2].created_at == expected[2].created_at


def test_a_place_is_gone_on_from_by_its_id(both: Both) -> None:
    line = both.local.timeline("main")
    with both.remote.follow() as following:
        line.save({"n": 1})
        place = next(following).id
    for number in (2, 3):
        line.save({"n": number})
    again = both.remote.follow(after=place)
    seen = [next(again).checkpoint for _ in range(2)]
    assert [one and one.seq for one in seen] == [2, 3]
    assert [one.checkpoint and one.checkpoint.seq for one in both.remote.follow(place).read()] == [
        2,
        3,
    ]


def test_one_timeline_can_be_followed(both: Both) -> None:
    with both.remote.follow(timeline="mine") as following:
        both.local.timeline("other").save({"a": 1})
        both.local.timeline("mine").save({"a": 1})
        assert next(following).timeline == "mine"


def test_an_id_of_another_store_is_refused(both: Both) -> None:
    with pytest.raises(hardsave.HardsaveError):
        next(both.remote.follow(after="of-another-store"))


def test_no_event_is_missing_or_comes_twice_however_often_the_connection_breaks(both: Both) -> None:
    count, cuts = 400, 0
    line = both.local.timeline("main")

    def save() -> None:
        for number in range(count):
            line.save({"n": number})

    def most_bytes() -> int:
        """Too few for a message, for some, and enough for the longest."""
        nonlocal cuts
        cuts += 1
        return (1_500, 6_000, 30_000, 140_000)[cuts % 4]

    with (
        cutting(both.port, most_bytes) as url,
        connect(url, token=OWN_TOKEN) as vault,
        vault.follow() as following,
    ):
        saving = threading.Thread(target=save)
        saving.start()
        seen = [event.checkpoint for event in itertools.islice(following, count)]
        saving.join()
    assert [one and one.seq for one in seen] == [*range(1, count + 1)]
    assert cuts > 5


def test_an_event_that_comes_after_a_long_silence_is_seen(both: Both) -> None:
    """Also where none of the waiting was noticed."""
    following: RemoteFollowing = both.remote.follow()
    timer = threading.Timer(0.5, both.local.timeline("main").save, [{"a": 1}])
    timer.start()
    assert next(following).kind == "checkpoint_saved"
    timer.join()


def test_a_client_that_was_away_for_long_reads_all_that_it_has_missed(both: Both) -> None:
    """More than a server keeps for streams: it says so, and the rest is read by the page."""
    count = LIVE_EVENTS + 150
    line = both.local.timeline("main")
    with both.remote.follow() as following:
        line.save({"n": 0})
        place = next(following).id
    for number in range(count):
        line.save({"n": number})
    seen = [event.checkpoint for event in itertools.islice(both.remote.follow(place), count)]
    assert [one and one.seq for one in seen] == [*range(2, count + 2)]
