"""What changed between two states: all of it, nothing else, and without reading the rest."""

import copy
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.objects.codec import Codec
from hardsave.objects.diff import StateDiff, StatePath, diff
from tests.unit.objects import models
from tests.unit.objects.shelf import Shelf
from tests.unit.objects.strategies import examples, messages, portrait, storable


def compared(old: object, new: object) -> StateDiff:
    here = Shelf(Codec(models.registry()))
    return diff(here.reader, here.build(old), here.build(new))


def words(found: StateDiff) -> dict[str, list[str]]:
    sides = {"added": found.added, "removed": found.removed, "changed": found.changed}
    return {side: [str(path) for path in paths] for side, paths in sides.items() if paths}


# Paths


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "state"),
        (("messages", 3, "content"), "messages[3].content"),
        (("odd name", 0), "['odd name'][0]"),
        ((("a", 1), "b"), "[('a', 1)].b"),
        ((None,), "[None]"),
    ],
)
def test_a_path_reads_as_people_write_it(path: tuple[Any, ...], text: str) -> None:
    assert str(StatePath(path)) == text


# Small and split states alike


@pytest.mark.parametrize("pad", [[], messages(60, first=10_000)], ids=["small", "split"])
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"changed": ["a"]}),
        ({"a": 1}, {"a": True}, {"changed": ["a"]}),
        ({"a": 1}, {"a": 1.0}, {"changed": ["a"]}),
        ({"a": [1]}, {"a": (1,)}, {"changed": ["a"]}),
        ({"a": 1}, {"b": 1}, {"added": ["b"], "removed": ["a"]}),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, {"added": ["a[2]"]}),
        ({"a": [1, 2, 3]}, {"a": [2, 3]}, {"removed": ["a[0]"]}),
        ({"a": [1, 2, 3]}, {"a": [1, 9, 3]}, {"changed": ["a[1]"]}),
        ({"a": [1, 2]}, {"a": [0, 1, 2]}, {"added": ["a[0]"]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, {"changed": ["a[0].b"]}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1, "d": 2}}}, {"added": ["a.b.d"]}),
        ({"a": None}, {"a": {"b": 1}}, {"changed": ["a"]}),
        ({"a": {1}}, {"a": {2}}, {"changed": ["a"]}),
        ({"a": float("nan")}, {"a": float("nan")}, {}),
        ({7: 1}, {7: 2}, {"changed": ["[7]"]}),
        ({(1, 2): {"x": 1}}, {(1, 2): {}}, {"removed": ["[(1, 2)].x"]}),
        ({"m": models.Mood.CALM}, {"m": models.Mood.WILD}, {"changed": ["m"]}),
    ],
)
def test_each_difference_has_its_path(
    old: dict[Any, Any], new: dict[Any, Any], expected: dict[str, list[str]], pad: list[Any]
) -> None:
    found = compared({**old, "pad": pad}, {**new, "pad": pad})
    assert words(found) == expected


@examples(30)
@given(storable)
def test_a_state_does_not_differ_from_itself(state: object) -> None:
    assert words(compared(state, copy.deepcopy(state))) == {}


@examples(30)
@given(st.dictionaries(st.text(max_size=3), storable, max_size=4), st.data())
def test_what_is_not_named_is_equal(old: dict[str, Any], data: st.DataObject) -> None:
    new = {**old, **data.draw(st.dictionaries(st.text(max_size=3), storable, max_size=2))}
    if old:
        del new[data.draw(st.sampled_from(sorted(old)))]
    found = compared(old, new)
    touched = {path[0] for path in (*found.added, *found.removed, *found.changed)}
    for key in {*old, *new} - touched:
        assert portrait(old[key]) == portrait(new[key])
    assert {path[0] for path in found.added if len(path) == 1} == new.keys() - old.keys()
    assert {path[0] for path in found.removed if len(path) == 1} == old.keys() - new.keys()


@examples(20)
@given(st.integers(0, 10**6), st.integers(0, 150), st.integers(0, 6))
def test_a_list_less_what_was_removed_is_the_other_less_what_was_added(
    chance_number: int, count: int, edits: int
) -> None:
    chance = random.Random(chance_number)
    old = messages(count)
    new: list[Any] = copy.deepcopy(old)
    for number in range(edits):
        at = chance.randrange(len(new) + 1)
        match chance.randrange(3):
            case 0:
                new[at:at] = messages(chance.randrange(4), first=1000 + number * 10)
            case 1:
                del new[at : at + chance.randrange(4)]
            case _ if at < len(new):
                new[at]["content"] = f"edited {number}"
    found = compared(old, new)
    removed = {path[0] for path in found.removed if len(path) == 1}
    added = {path[0] for path in found.added if len(path) == 1}
    inside = {path[0] for path in (*found.changed, *found.added, *found.removed) if path}
    left = [item for at, item in enumerate(old) if at not in removed]
    right = [(at, item) for at, item in enumerate(new) if at not in added]
    assert len(left) == len(right)
    assert all(
        one == other for one, (at, other) in zip(left, right, strict=True) if at not in inside
    )


# Large states


Items = list[Any]
CHANGES: dict[str, tuple[Callable[[Items], object], dict[str, list[str]]]] = {
    "edit": (lambda m: m[5000].update(content="new"), {"changed": ["messages[5000].content"]}),
    "insertion": (lambda m: m.insert(3000, "new"), {"added": ["messages[3000]"]}),
    "removal": (lambda m: m.pop(7000), {"removed": ["messages[7000]"]}),
    "append": (lambda m: m.append("new"), {"added": ["messages[10000]"]}),
    "growth": (
        lambda m: m.extend(["new"] * 40),
        {"added": [f"messages[{n}]" for n in range(10_000, 10_040)]},
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        "edit",
        "insertion",
        "removal",
        "append",
        "growth",
    ],
)
def test_a_change_in_a_long_conversation_is_one_path_and_reads_little(name: str) -> None:
    change, expected = CHANGES[name]
    here = Shelf(Codec(models.registry()))
    items: Items = list(messages(10_000))
    first = here.build({"messages": items, "step": 1})
    change(items)
    second = here.build({"messages": items, "step": 1})
    here.fetched = 0
    assert words(diff(here.reader, first, second)) == expected
    assert here.fetched < 120


def test_a_state_that_is_the_same_is_not_read_at_all() -> None:
    here = Shelf()
    root = here.build({"messages": messages(100)})
    assert words(diff(here.reader, root, root)) == {}
    assert here.fetched == 0


def test_a_whole_state_that_became_another_kind_is_one_change() -> None:
    for old, new in [(messages(50), 5), ({"a": messages(50)}, messages(50)), ([1], {"a": 1})]:
        assert words(compared(old, new)) == {"changed": ["state"]}


def test_a_split_container_is_compared_with_one_that_is_not() -> None:
    assert words(compared({"m": messages(50)}, {"m": messages(2)})) == {
        "removed": [f"m[{n}]" for n in range(2, 50)]
    }
    assert words(compared([1], [1, *messages(50)])) == {"added": [f"[{n}]" for n in range(1, 51)]}


@pytest.mark.parametrize("length", [100, 130, 300, 900])
def test_an_insertion_that_splits_a_list_is_one_addition(length: int) -> None:
    """Long items lie in a small list as they are, and in a split one as objects."""
    for count in range(1, 30):
        old = [f"{n} ".ljust(length, ".") for n in range(count)]
        new = ["new".ljust(length, ".")]
        assert words(compared(old, new + old)) == {"added": ["[0]"]}
        assert words(compared(new + old, old)) == {"removed": ["[0]"]}


def test_a_split_object_is_compared_by_its_fields() -> None:
    old, new = models.Record("x" * 3000, 1), models.Record("x" * 3000, 2)
    assert words(compared({"r": old}, {"r": new})) == {"changed": ["r.note"]}


def test_lists_of_the_same_few_values_are_compared_in_no_time() -> None:
    """Lining them up pair by pair takes the cube of their length: 800 of them, seconds."""
    old, new = [0] * 800, [0, 1] * 400
    began = time.process_time()
    found = compared(old, new)
    assert time.process_time() - began < 1
    assert len(found.added) == len(found.removed)
    assert words(compared(old, [*old[:300], 7, *old[300:]])) == {"added": ["[300]"]}
