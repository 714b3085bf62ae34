"""Appending without reading gives what saving the merged state would give."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Misuse, Unstorable
from hardsave.objects.codec import Codec
from hardsave.objects.growth import Growth
from hardsave.objects.hashing import Hash
from hardsave.objects.shadow import Shadow
from hardsave.objects.types import Types
from tests.unit.objects import models
from tests.unit.objects.shelf import Shelf
from tests.unit.objects.strategies import examples, messages, portrait

State = dict[Any, Any]


def merged(state: State, delta: State) -> State:
    """What an append means: lists grow, everything else is replaced, new keys come last."""
    grown = dict(state)
    for key, value in delta.items():
        both = type(grown.get(key)) is list and type(value) is list
        grown[key] = [*grown[key], *value] if both else value
    return copy.deepcopy(grown)


class Grown:
    """A state that grows, with a plain model beside it. Nothing is registered."""

    def __init__(self, state: State | None = None) -> None:
        self.here = Shelf(Codec(Types()))
        self.state: State = copy.deepcopy(state or {})
        self.root: Hash | None = None if state is None else self.here.build(state)
        self.growth = self.resumed()

    def resumed(self) -> Growth:
        return Growth(self.here.builder, self.here.verbatim(), self.root)

    def append(self, delta: State, *, fresh: bool = False) -> int:
        """Append, compare with saving the merged state; how many bytes were new."""
        if fresh:
            self.growth = self.resumed()
        self.state = merged(self.state, delta)
        self.root, out = self.growth.append(delta)
        new = self.here.put(out)
        assert self.root == self.here.root_of(self.state)
        self.here.reachable(self.root)  # a missing object would be a KeyError
        return new

    def save(self) -> None:
        """Save the whole state through a shadow instead."""
        self.root, out = Shadow(self.here.builder).save(self.state)
        self.here.put(out)
        self.growth = self.resumed()

    def load(self) -> Any:
        assert self.root is not None
        return self.here.reader.load(self.root)


# The same root


KEYS = ["messages", "log", "step", "odd name", "\ud800", "", 1, -(2**70), (1, "a"), (), None, b"k"]


def _texts(numbers: list[int]) -> list[Any]:
    return [f"{n} ".ljust(n % 300, "y") for n in numbers]


lists = st.lists(st.integers(0, 10**6), max_size=12).map(_texts) | st.integers(0, 40).map(messages)
others = st.sampled_from(
    [
        None,
        True,
        5,
        "short",
        "x" * 1000,
        "x" * 3000,
        (1, 2),
        {"a": [1]},
        {1: {2}},
        models.Point(1, 2),
        models.Record("x" * 200, [models.Mood.CALM]),
        [models.Point(3, 4), models.Mood.WILD, (models.Point(5),)],
        [],
        float("nan"),
    ]
)
deltas = st.dictionaries(st.sampled_from(KEYS), lists | others, max_size=4)


@examples(80)
@given(deltas, st.lists(st.tuples(deltas, st.sampled_from(["kept", "fresh", "saved"])), max_size=8))
def test_any_appends_give_the_root_of_saving_the_merged_state(
    start: State, steps: list[tuple[State, str]]
) -> None:
    grown = Grown(start)
    for delta, how in steps:
        if how == "saved":
            grown.save()
        grown.append(delta, fresh=how == "fresh")


@examples(15)
@given(st.lists(st.integers(0, 25), min_size=1, max_size=25))
def test_a_conversation_that_grows_gives_the_root_of_saving_it(counts: list[int]) -> None:
    grown = Grown()
    for turn, count in enumerate(counts):
        grown.append({"messages": messages(count, first=turn * 100), "turn": turn})
    assert grown.load() == grown.state


@pytest.mark.parametrize("count", [0, 1, 5, 8, 9, 20, 300])
def test_a_list_of_any_length_grows(count: int) -> None:
    grown = Grown({"messages": messages(count), "step": 0})
    for number in range(30):
        grown.append({"messages": messages(1, first=1000 + number)}, fresh=number % 3 == 0)
    assert grown.load() == grown.state


def test_a_state_that_begins_with_nothing_grows() -> None:
    grown = Grown()
    grown.append({})
    assert grown.load() == {}
    grown.append({"a": [1]})
    grown.append({"a": [2], "b": 1})
    assert grown.load() == {"a": [1, 2], "b": 1}


def test_a_state_may_grow_beyond_the_limit_and_shrink_below_it() -> None:
    grown = Grown({"step": 1})
    for value in ("x" * 5000, 1, "y" * 5000, messages(50), None, [], messages(3), "z", "z" * 1900):
        grown.append({"a": value, "step": 2})
        grown.append({"b": value}, fresh=True)
        grown.append({"b": None})


def test_new_keys_come_last_and_known_ones_keep_their_place() -> None:
    for pad in ("", "x" * 3000):
        grown = Grown({"b": 1, "pad": pad, "a": 2})
        grown.append({"c": 3, "a": 4, "A": 5})
        assert list(grown.load()) == ["b", "pad", "a", "c", "A"]


@pytest.mark.parametrize("pad", ["", "x" * 3000])
def test_keys_of_any_kind_are_found_again(pad: str) -> None:
    grown = Grown({"pad": pad})
    for turn in range(3):
        for key in KEYS:
            grown.append({key: [turn]}, fresh=turn == 1)
    assert grown.load() == {"pad": pad, **{key: [0, 1, 2] for key in KEYS}}


def test_a_key_that_begins_like_another_is_another() -> None:
    keys: list[Any] = ["a", "aa", "ab", "", 1, 12, 128, (1,), (1, 2), b"a", b"ab", "1"]
    grown = Grown({"pad": "x" * 3000, **{key: [1] for key in keys}})
    for key in reversed(keys):
        grown.append({key: [2]})


@pytest.mark.parametrize("keys", [(1, True), (1, 1.0), (0, False)])
def test_keys_that_are_equal_in_python_are_one_key(keys: tuple[Any, Any]) -> None:
    grown = Grown({keys[0]: [1], "pad": "x" * 3000})
    grown.append({keys[1]: [2]})
    assert grown.load()[1 if keys[0] else 0] == [1, 2]


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(10**400, id="huge"),
        pytest.param(-(10**400), id="minus huge"),
        2**64,
        float("inf"),
        -0.0,
        1.5,
    ],
)
def test_numbers_of_any_size_may_be_keys(key: float) -> None:
    for pad in ("", "x" * 3000):
        grown = Grown({"pad": pad})
        grown.append({key: [1]})
        grown.append({key: [2]}, fresh=True)


def test_only_a_list_grows_and_only_by_a_list() -> None:
    for pad in ("", "x" * 3000):
        grown = Grown({"pad": pad, "tuple": (1,), "dict": {"a": 1}, "list": [1], "text": "a"})
        grown.append({"tuple": [2], "dict": {"b": 2}, "list": (2,), "text": "b"})
        expected = {"pad": pad, "tuple": [2], "dict": {"b": 2}, "list": (2,), "text": "b"}
        assert portrait(grown.load()) == portrait(expected)


def test_a_list_that_was_replaced_does_not_come_back() -> None:
    for between in (5, None, (1,), "x" * 3000):
        grown = Grown({"messages": messages(40), "pad": "x" * 3000})
        grown.append({"messages": messages(1, first=50)})
        grown.append({"messages": between})
        grown.append({"messages": messages(20, first=60)})
        grown.append({"messages": [1]})
        assert grown.load()["messages"] == [*messages(20, first=60), 1]


# Together with a shadow


def test_appends_and_saves_may_alternate() -> None:
    grown = Grown({"messages": messages(20)})
    for turn in range(6):
        grown.append({"messages": messages(10, first=turn * 10), "turn": turn})
        grown.state["messages"][turn]["content"] = "edited"
        del grown.state["messages"][:turn]
        grown.save()
        assert portrait(grown.load()) == portrait(grown.state)


def test_a_state_that_was_appended_is_nothing_new_to_a_shadow() -> None:
    grown = Grown({"messages": messages(300)})
    grown.append({"messages": messages(100, first=500), "step": 1})
    root, out = Shadow(grown.here.builder).save(grown.state)
    assert root == grown.root
    assert grown.here.put(out) == 0


# Values of classes that nobody registered


def test_values_of_unknown_classes_survive_appends() -> None:
    kept = {
        "point": models.Point(1, 2),
        "in a list": [models.Record(models.Point(1)), models.Mood.CALM],
        "in a tuple": ({models.Point(3)}, models.Right.READ),
        "as keys": {models.Point(4): models.Colour.BLUE},
    }
    for pad in ("", "x" * 3000):
        grown = Grown({**kept, "list": [models.Point(9)], "pad": pad})
        for turn in range(3):
            grown.append({"list": [models.Point(turn), turn]}, fresh=True)
            grown.append({"in a list": [models.Packet(turn)]})
        types = Types()
        for cls in models.CLASSES:
            types.register(cls)
        knowing = Shelf(Codec(types))
        knowing.objects = grown.here.objects
        assert portrait(knowing.reader.load(grown.root or b"")) == portrait(grown.state)


def test_a_large_value_of_an_unknown_class_survives_the_growth_of_a_list_beside_it() -> None:
    record = models.Record(messages(50), "x" * 3000)
    grown = Grown({"record": record, "list": messages(30)})
    for turn in range(5):
        grown.append({"list": [turn]}, fresh=True)


def test_a_large_value_of_an_unknown_class_survives_the_change_of_a_key_beside_it() -> None:
    record = models.Open.model_validate({f"f{n}": f"{n}" * 30 for n in range(40)})
    grown = Grown({"record": record, "step": 1})
    grown.append({"step": 2})


# What is read and written


def long_conversation(count: int) -> Grown:
    grown = Grown({"messages": messages(count), "step": 1})
    grown.here.fetched = 0
    grown.growth = grown.resumed()
    return grown


def appended(grown: Grown, delta: State) -> tuple[int, int]:
    """(objects read, bytes of new objects), without the comparison."""
    before = grown.here.fetched
    grown.root, out = grown.growth.append(delta)
    return grown.here.fetched - before, grown.here.put(out)


def test_appending_reads_and_writes_as_little_for_a_long_list_as_for_a_short_one() -> None:
    for count in (100, 10_000):
        grown = long_conversation(count)
        assert grown.here.fetched < 10
        read, written = appended(grown, {"messages": messages(1, first=20_000)})
        assert read < 15
        assert written < 2048
        for number in range(30):
            delta = {"messages": messages(1, first=30_000 + number), "step": number}
            read, written = appended(grown, delta)
            assert read == 0
            assert written < 3 * 1024


def test_replacing_a_key_does_not_read_the_lists_beside_it() -> None:
    grown = long_conversation(2000)
    read, written = appended(grown, {"step": 2})
    assert read < 10
    assert written < 1024


# Nothing is shared with the caller


@pytest.mark.parametrize("pad", ["", "x" * 3000])
def test_changing_a_delta_after_its_append_changes_nothing(pad: str) -> None:
    grown = Grown({"list": [], "pad": pad})
    for turn in range(4):
        inner = {"turn": turn, "more": ["x" * 200]}
        delta: State = {"list": [inner], "dict": {"a": [turn]}, ("odd",): [[turn]]}
        grown.append(delta)
        before = grown.load()
        inner["more"].append("changed")  # type: ignore[attr-defined] # it is the list above
        delta["list"].append("changed")
        delta["dict"]["a"].clear()
        delta[("odd",)][0].append("changed")
        assert portrait(grown.load()) == portrait(before)
        grown.append({"step": turn, "list": []})
    assert portrait(grown.load()) == portrait(grown.state)


def test_changing_what_was_read_before_changes_nothing() -> None:
    grown = Grown({"list": [[1], [2]]})
    loaded = grown.load()
    loaded["list"][0].append("changed")
    grown.append({"list": [[3]]})
    assert grown.load() == {"list": [[1], [2], [3]]}


# Refusals


@pytest.mark.parametrize(
    "state",
    [
        None,
        5,
        "text",
        [1],
        (1,),
        models.Record(1),
        models.Record("x" * 3000),
        messages(50),
        {1, 2},
        set(range(5000)),
    ],
)
def test_a_state_that_is_no_dict_cannot_grow(state: object) -> None:
    here = Shelf(Codec(models.registry()))
    root = here.build(state)
    with pytest.raises(Misuse, match="append needs a state that is a dict; use save"):
        Growth(here.builder, here.verbatim(), root)


Put = Callable[[object], State]


@pytest.mark.parametrize("start", [{}, {"messages": messages(50), "step": 1}], ids=["new", "split"])
@pytest.mark.parametrize(
    ("put", "path"),
    [
        (lambda bad: {"step": bad}, "state.step"),
        (lambda bad: {"new": {"a": [bad]}}, "state.new.a[0]"),
        (lambda bad: {"odd name": {7: bad}}, "state['odd name'][7]"),
        (lambda bad: {"messages": [1, {"image": bad}]}, "state.messages[1].image"),
    ],
    ids=["scalar", "nested", "odd", "list"],
)
def test_the_path_to_what_cannot_be_stored_is_that_of_the_delta(
    start: State, put: Put, path: str
) -> None:
    grown = Grown(start)
    with pytest.raises(Unstorable) as caught:
        grown.growth.append(put(object()))
    assert caught.value.path == path


def test_the_path_in_a_list_that_is_not_split_yet_counts_from_its_beginning() -> None:
    grown = Grown({"messages": [1, 2, 3]})
    with pytest.raises(Unstorable) as caught:
        grown.growth.append({"messages": [object()]})
    assert caught.value.path == "state.messages[3]"
