"""Stored containers read like Python's own, and read only what is touched."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.objects.codec import Codec
from hardsave.objects.types import Types
from hardsave.objects.view import StateList, StateMap, plain, view
from tests.unit.objects import models
from tests.unit.objects.shelf import Shelf
from tests.unit.objects.strategies import examples, messages, portrait


def shelf() -> Shelf:
    return Shelf(Codec(models.registry()))


def viewed(value: object) -> Any:
    here = shelf()
    return view(here.reader, here.build(value))


# Kinds


def test_what_is_small_comes_plain() -> None:
    for value in ([1, 2], (1,), {"a": 1}, {1}, None, "x" * 5000, models.Record(1)):
        assert portrait(viewed(value)) == portrait(value)


def test_what_was_split_comes_as_a_view() -> None:
    assert isinstance(viewed(messages(50)), StateList)
    assert isinstance(viewed(tuple(messages(50))), StateList)
    assert isinstance(viewed({"messages": messages(50)}), StateMap)
    assert isinstance(viewed(models.Record("x" * 3000)), StateMap)


def test_a_set_comes_plain_even_if_it_was_split() -> None:
    for value in ({f"{n}" * 9 for n in range(500)}, frozenset(range(5000))):
        assert portrait(viewed(value)) == portrait(value)


def test_views_lead_to_views_and_end_in_plain_data() -> None:
    state = {"a": {"messages": messages(50)}, "pad": "x" * 3000}
    found = viewed(state)
    assert isinstance(found["a"], StateMap)
    assert isinstance(found["a"]["messages"], StateList)
    assert found["a"]["messages"][7] == messages(50)[7]
    assert type(found["a"]["messages"][7]) is dict
    assert found["pad"] == "x" * 3000


# Lists


LONG = [f"{n} ".ljust(n % 150) for n in range(400)]
STORED = viewed(LONG)
places = st.integers(-450, 450) | st.none()


@examples(100)
@given(places, places, st.integers(-60, 60).filter(bool) | st.none())
def test_a_slice_is_the_slice_of_the_list(
    low: int | None, high: int | None, step: int | None
) -> None:
    found = STORED[low:high:step]
    assert type(found) is list
    assert found == LONG[low:high:step]


@pytest.mark.parametrize("at", [0, 1, 199, 399, -1, -400])
def test_an_item_is_the_item_of_the_list(at: int) -> None:
    assert STORED[at] == LONG[at]


@pytest.mark.parametrize("at", [400, -401, 10**9])
def test_an_item_beyond_the_end_is_an_index_error(at: int) -> None:
    with pytest.raises(IndexError):
        STORED[at]


def test_a_slice_with_a_step_of_zero_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="zero"):
        STORED[::0]


def test_every_item_of_every_length_is_in_its_place() -> None:
    for count in (0, 1, 2, 17, 100, 900):
        items = [f"{n} ".ljust(150) for n in range(count)]
        found = viewed([*items, "x" * 3000])  # the long one: so that it is always split
        assert [found[at] for at in range(count)] == items
        assert found[:count] == items


def test_a_list_iterates_searches_and_counts_like_a_list() -> None:
    items = [*LONG, 1, True, LONG[3]]
    found = viewed(items)
    assert isinstance(found, Sequence)
    assert portrait(list(found)) == portrait(items)
    assert portrait(list(reversed(found))) == portrait(items[::-1])
    assert len(found) == len(items)
    assert LONG[250] in found
    assert "nowhere" not in found
    assert found.index(LONG[99]) == 99
    assert found.count(LONG[3]) == 2
    assert list(viewed(messages(700))) == messages(700)


def test_a_tuple_stays_a_tuple() -> None:
    found = viewed(tuple(LONG))
    assert found == tuple(LONG)
    assert found != LONG
    assert type(found.load()) is tuple
    assert found[5:8] == LONG[5:8]


# Maps


def test_a_map_reads_like_a_dict() -> None:
    items: dict[Any, Any] = {f"key {n}": f"{n}" * 20 for n in range(300)}
    items |= {7: "seven", (1, 2): "pair", None: [messages(30)]}
    found = viewed(items)
    assert isinstance(found, Mapping)
    assert list(found) == list(items)
    assert len(found) == 303
    assert found[(1, 2)] == "pair"
    assert found[7] == found.get(7) == "seven"
    assert "key 250" in found
    assert "key 300" not in found
    assert found.get("key 300", "nothing") == "nothing"
    with pytest.raises(KeyError):
        found["key 300"]
    assert dict(found.items()) == items
    assert list(found.values())[-2:] == ["pair", [messages(30)]]


def test_an_object_reads_by_its_fields_and_loads_as_itself() -> None:
    record = models.Record("x" * 3000, messages(50))
    found = viewed(record)
    assert list(found) == ["content", "note"]
    assert found["note"][3] == messages(50)[3]
    assert found == record
    assert portrait(found.load()) == portrait(record)


def test_a_map_with_keys_of_a_class_that_nobody_registered_reads_like_a_dict() -> None:
    here = Shelf(Codec(Types()))
    root = here.build({models.Point(n, 0): "x" * 50 for n in range(100)})
    found = view(here.reader, root)
    assert found[(("x", 7), ("y", 0))] == "x" * 50
    assert found == here.reader.load(root)


# Equality and words


def test_a_view_is_equal_to_what_it_shows() -> None:
    state = {"messages": messages(100)}
    found = viewed(state)
    assert found == state
    assert state == found
    assert found == viewed(state)
    assert found["messages"] == state["messages"]
    assert found != {"messages": messages(99)}
    assert found["messages"] != tuple(messages(100))
    assert found["messages"] != messages(100)[::-1]
    assert found != 5


def test_a_view_cannot_be_hashed_or_changed() -> None:
    found = viewed({"messages": messages(100)})
    for container in (found, found["messages"]):
        with pytest.raises(TypeError):
            hash(container)
        with pytest.raises(TypeError):
            container[0] = 1


def test_a_view_says_what_it_is_without_its_content() -> None:
    found = viewed({"messages": messages(100), "step": 1})
    assert repr(found) == "<stored map with keys ['messages', 'step']>"
    assert repr(found["messages"]) == "<stored list of 100>"
    assert repr(viewed(tuple(messages(100)))) == "<stored tuple of 100>"


def test_plain_loads_views_and_leaves_everything_else() -> None:
    assert portrait(plain(viewed({"m": messages(100)}))) == portrait({"m": messages(100)})
    assert plain(5) == 5
    value = [1]
    assert plain(value) is value


# How much is read


@pytest.fixture(scope="module")
def long_state() -> tuple[Shelf, bytes]:
    here = shelf()
    return here, here.build({"messages": messages(10_000), "step": 7, "notes": messages(40)})


def fetched(here: Shelf) -> int:
    found, here.fetched = here.fetched, 0
    return found


def test_reading_the_last_items_reads_little(long_state: tuple[Shelf, bytes]) -> None:
    here, root = long_state
    fetched(here)
    last = view(here.reader, root)["messages"][-20:]
    assert last == messages(20, first=9980)
    assert fetched(here) < 20 + 25


def test_reading_one_item_anywhere_reads_little(long_state: tuple[Shelf, bytes]) -> None:
    here, root = long_state
    found = view(here.reader, root)["messages"]
    for at in (0, 1, 4999, 5000, 9998, -1):
        fetched(here)
        assert found[at] == messages(10_000)[at]
        assert fetched(here) < 20


def test_reading_a_slice_in_the_middle_reads_little(long_state: tuple[Shelf, bytes]) -> None:
    here, root = long_state
    found = view(here.reader, root)["messages"]
    fetched(here)
    assert found[5000:5050] == messages(50, first=5000)
    assert fetched(here) < 50 + 60
    assert found[5000:5050:10] == messages(50, first=5000)[::10]
    assert fetched(here) < 5 + 60


def test_reading_a_key_reads_none_of_the_others(long_state: tuple[Shelf, bytes]) -> None:
    here, root = long_state
    fetched(here)
    found = view(here.reader, root)
    assert found["step"] == 7
    assert fetched(here) < 5  # the root, and what leads from it to its keys
    assert len(found["messages"]) == 10_000
    assert fetched(here) == 1
    assert "notes" in found
    assert list(found) == ["messages", "step", "notes"]
    assert repr(found)
    assert fetched(here) == 0


def test_iterating_reads_in_batches_and_begins_at_once(
    long_state: tuple[Shelf, bytes],
) -> None:
    here, root = long_state
    found = view(here.reader, root)["messages"]
    fetched(here)
    coming = iter(found)
    assert next(coming) == messages(1)[0]
    assert fetched(here) < 500
    assert sum(1 for _ in coming) == 9999
    assert fetched(here) < 10_000 * 1.6


# Making


@pytest.mark.parametrize("kind", [list, tuple])
def test_items_that_lists_share_are_made_once(kind: Any) -> None:
    here, calls = shelf(), []

    def make(item: Any) -> Any:
        calls.append(item)
        return ("made", item)

    known: dict[bytes, Any] = {}
    items = [*messages(50), 1]
    for grown in (items, [*items, {"text": "y" * 500}]):
        found = view(here.reader, here.build(kind(grown))).made(make, known)
        assert found == kind(("made", item) for item in grown)
    assert sorted(map(repr, calls)) == sorted(map(repr, [*items, 1, {"text": "y" * 500}]))
