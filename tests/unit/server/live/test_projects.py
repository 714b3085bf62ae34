"""Which projects have changed."""

import asyncio
from collections.abc import Mapping

import pytest

from hardsave.server.live import ids
from hardsave.server.live.asked import Asked
from hardsave.server.live.projects import ProjectChanges, ProjectsReader, changes
from tests.unit.server.live.sse_client import message


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ({}, {}, []),
        ({"a": 1, "b": 1}, {"a": 1, "b": 1}, []),
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, ["a"]),
        ({"b": 1}, {"a": None, "b": 1}, ["a"]),
        ({"a": None, "b": 1}, {}, ["a", "b"]),
    ],
)
def test_a_project_that_is_new_gone_or_other_has_changed(
    before: Mapping[str, object], now: Mapping[str, object], changed: list[str]
) -> None:
    assert changes(before, now) == changed


def joined(source: ProjectChanges, cursor: str = "") -> ProjectsReader:
    return asyncio.run(source.joined(Asked(None, "kim", "t", cursor)))


def test_a_client_is_told_each_project_once_for_all_of_its_changes() -> None:
    stamps: dict[str, object] = {"a": 1, "b": 1}
    source = ProjectChanges(lambda: stamps)
    source.open()
    quick, slow = joined(source), joined(source)
    assert not source.look()()
    assert quick.next() == b""
    told = []
    for project, stamp in (("b", 2), ("a", 2), ("b", 3), ("c\n\N{SNOWMAN}", 1)):
        stamps[project] = stamp
        assert source.look()()
        told.append(message(quick.next()).data["items"])
        assert quick.next() == b""
    assert told == [["b"], ["a"], ["b"], ["c\n\N{SNOWMAN}"]]
    assert message(slow.next()) == ("projects", "", {"items": ["a", "b", "c\n\N{SNOWMAN}"]})
    assert slow.next() == joined(source).next() == b""


def test_clients_at_the_same_place_are_given_the_same_bytes() -> None:
    stamps: dict[str, object] = {}
    source = ProjectChanges(lambda: stamps)
    source.open()
    one, other = joined(source), joined(source)
    stamps["a"] = 1
    source.look()()
    frame = one.next()
    assert frame is other.next()


def test_a_client_that_comes_again_reads_its_list_anew() -> None:
    source = ProjectChanges(dict)
    source.open()
    hello = message(joined(source).hello(15))
    assert hello.data == {"project": None, "heartbeat_seconds": 15}
    assert ids.decode(None, "kim", hello.id) is not None
    again = joined(source, hello.id)
    assert message(again.next()) == ("reload", hello.id, {"reason": "unknown_id"})
    assert again.next() == b""
    assert message(again.heartbeat()) == ("", "", None)
