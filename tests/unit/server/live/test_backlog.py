"""The newest events of a feed: in order, complete above the floor, and bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.server.live import backlog as backlogs
from hardsave.server.live.backlog import Backlog, Item, Wanted

ALL = Wanted()


def item(number: int, size: int = 3, **about: str) -> Item:
    data = str(number).encode().ljust(size)
    return Item(number, about.get("kind", "k"), about.get("timeline"), about.get("task"), data)


def items(first: int, last: int, size: int = 3) -> list[Item]:
    return [item(number, size) for number in range(first, last + 1)]


def told(backlog: Backlog, number: int, wanted: Wanted = ALL) -> list[int]:
    """All that a client is told that has seen all up to a number."""
    found: list[int] = []
    while number < backlog.position:
        data, number = backlog.part(number, wanted)
        found += map(int, data)
    return found


def test_a_client_is_told_what_lies_behind_its_place() -> None:
    backlog = Backlog(10)
    backlog.add(items(11, 13), 13)
    backlog.add(items(14, 15), 17)
    assert told(backlog, 10) == [11, 12, 13, 14, 15]
    assert told(backlog, 13) == [14, 15]
    assert backlog.part(15, ALL) == ([], 17)


def test_a_place_that_the_feed_has_not_reached_yet_stays() -> None:
    backlog = Backlog(10)
    assert backlog.part(12, ALL) == ([], 12)
    backlog.add(items(11, 13), 13)
    assert told(backlog, 12) == [13]


def test_a_message_has_as_much_as_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlogs, "_PART_BYTES", 10)
    backlog = Backlog(0)
    backlog.add([*items(1, 6, size=4), item(7, size=100), *items(8, 9)], 9)
    parts, number = [], 0
    while number < 9:
        data, number = backlog.part(number, ALL)
        parts.append([int(each) for each in data])
    assert parts == [[1, 2, 3], [4, 5, 6], [7], [8, 9]]


def test_what_does_not_fit_goes_the_oldest_first() -> None:
    backlog = Backlog(0, most=4)
    backlog.add(items(1, 3), 3)
    assert (backlog.floor, backlog.lost) == (0, "slow")
    backlog.add(items(4, 6), 6)
    assert (backlog.floor, told(backlog, 2)) == (2, [3, 4, 5, 6])


def test_many_bytes_go_as_many_events_do() -> None:
    backlog = Backlog(0, most_bytes=10)
    backlog.add(items(1, 3, size=4), 3)
    assert (backlog.floor, told(backlog, 1)) == (1, [2, 3])
    backlog.add([item(4, size=11)], 4)
    assert (backlog.floor, told(backlog, 4)) == (4, [])


def test_what_was_read_back_is_put_before_unless_something_is_missing_between() -> None:
    backlog = Backlog(10, most=6)
    backlog.add(items(11, 12), 12)
    backlog.add_before(items(8, 10), 7, 10)
    assert (backlog.floor, told(backlog, 7)) == (7, [8, 9, 10, 11, 12])
    backlog.add_before(items(1, 5), 0, 5)
    assert backlog.floor == 7
    backlog.add(items(13, 15), 15)
    assert (backlog.floor, told(backlog, 9)) == (9, [10, 11, 12, 13, 14, 15])


def test_after_a_jump_nothing_below_is_there() -> None:
    backlog = Backlog(0, most=4)
    backlog.add(items(1, 3), 3)
    backlog.jump(5_000)
    assert (backlog.floor, backlog.position, backlog.lost) == (5_000, 5_000, "far_behind")
    backlog.add(items(5_001, 5_001), 5_001)
    assert told(backlog, 5_000) == [5_001]
    backlog.add(items(5_002, 5_005), 5_005)
    assert (backlog.floor, backlog.lost) == (5_001, "slow")


def test_far_behind_is_half_of_what_there_is_room_for() -> None:
    backlog = Backlog(0, most=6, most_bytes=40)
    assert backlog.room_before() == (3, 20)
    backlog.add(items(1, 4), 4)
    assert [backlog.is_far_behind(number) for number in (0, 1, 4, 5)] == [True, False, False, False]
    assert backlog.room_before() == (0, 8)
    backlog.add([item(5, size=20)], 5)
    assert backlog.is_far_behind(3)
    backlog.jump(9)
    assert backlog.is_far_behind(8)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ALL, [1, 2, 3, 4]),
        (Wanted("main"), [1, 3]),  # 3 names neither: it may be about any timeline
        (Wanted("other"), [2, 3]),
        (Wanted(None, frozenset({"saved", "task"})), [1, 2, 4]),
        (Wanted("main", frozenset({"saved"})), [1]),
        (Wanted("none", frozenset({"saved"})), []),
    ],
)
def test_a_client_is_told_what_it_wants(wanted: Wanted, found: list[int]) -> None:
    backlog = Backlog(0)
    some = [
        item(1, kind="saved", timeline="main"),
        item(2, kind="saved", timeline="other"),
        item(3, kind="retained"),
        item(4, kind="task", task="t"),
    ]
    backlog.add(some, 4)
    assert told(backlog, 0, wanted) == found


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(1, 9)), max_size=30),
    st.integers(1, 12),
    st.integers(1, 40),
)
def test_it_is_bounded_and_complete_above_its_floor(
    rounds: list[tuple[int, int, int]], most: int, most_bytes: int
) -> None:
    backlog, every = Backlog(0, most=most, most_bytes=most_bytes), list[int]()
    for count, beyond, size in rounds:
        first = backlog.position + 1
        backlog.add(items(first, first + count - 1, size), first + count - 1 + beyond)
        every += range(first, first + count)
        for seen in range(backlog.floor, backlog.position + 1):
            assert told(backlog, seen) == [number for number in every if number > seen]
        kept = backlog._items
        assert len(kept) <= most
        assert sum(len(each.data) for each in kept) == backlog._bytes <= most_bytes
