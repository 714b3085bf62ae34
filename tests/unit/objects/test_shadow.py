"""A shadow finds what changed: the root is always that of building from scratch."""

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Unstorable
from hardsave.objects import shadow as shadow_module
from hardsave.objects.codec import Codec
from hardsave.objects.shadow import RUN_BYTES, Shadow
from hardsave.objects.tree import SPLIT_BYTES
from hardsave.objects.view import view
from tests.unit.objects import models
from tests.unit.objects.shelf import Shelf
from tests.unit.objects.strategies import examples, messages, portrait

State = dict[Any, Any]


def shelf() -> Shelf:
    return Shelf(Codec(models.registry()))


class Saved:
    """A state that is saved again and again, and checked each time."""

    def __init__(self, state: Any) -> None:
        self.here = shelf()
        self.memory = Shadow(self.here.builder)
        self.state = state

    def save(self) -> int:
        """Save, compare with building from scratch; how many bytes were new."""
        root, out = self.memory.save(self.state)
        new = self.here.put(out)
        assert root == self.here.root_of(self.state)
        self.here.reachable(root)  # a missing object would be a KeyError
        assert portrait(self.here.reader.load(root)) == portrait(self.state)
        return new


@contextmanager
def short_runs() -> Iterator[None]:
    """Runs so short that a state of 20 messages has many of them."""
    with mock.patch.object(shadow_module, "RUN_BYTES", SPLIT_BYTES + 500):
        yield


# Edits. Each changes the state in place, with chance choosing where.

Edit = Callable[[State, random.Random], None]


def texts(state: State) -> list[Any]:
    """The messages, made anew if something else was put in their place."""
    if not isinstance(state.get("messages"), list):
        state["messages"] = messages(25)
    found: list[Any] = state["messages"]
    return found


def place(items: list[Any], chance: random.Random) -> int:
    return chance.randrange(len(items)) if items else 0


def append(state: State, chance: random.Random) -> None:
    texts(state).extend(messages(chance.randrange(1, 4), first=chance.randrange(10**6)))


def insert(state: State, chance: random.Random) -> None:
    items = texts(state)
    items[(at := place(items, chance)) : at] = messages(
        chance.randrange(1, 12), first=chance.randrange(10**6)
    )


def remove(state: State, chance: random.Random) -> None:
    items = texts(state)
    at = place(items, chance)
    del items[at : at + chance.randrange(1, 9)]


def remove_at_the_front(state: State, chance: random.Random) -> None:
    del texts(state)[: chance.randrange(1, 9)]


def slide(state: State, chance: random.Random) -> None:
    remove_at_the_front(state, chance)
    append(state, chance)


def edit_inside(state: State, chance: random.Random) -> None:
    items = texts(state)
    if items and isinstance(message := items[place(items, chance)], dict):
        message["content"] = f"edited {chance.random()}".ljust(chance.randrange(400))


def edit_twice(state: State, chance: random.Random) -> None:
    edit_inside(state, chance)
    insert(state, chance)
    edit_inside(state, chance)


def turn_one_into_true(state: State, chance: random.Random) -> None:
    items = texts(state)
    if items and isinstance(message := items[place(items, chance)], dict):
        message["seen"] = {int: True, bool: 1.0, float: 1}[type(message.get("seen", 1))]


def reorder_keys(state: State, chance: random.Random) -> None:
    items = texts(state)
    if items and isinstance(message := items[place(items, chance)], dict):
        message["role"] = message.pop("role", "user")
    state["messages"] = state.pop("messages")


def swap(state: State, chance: random.Random) -> None:
    items = texts(state)
    if items:
        one, other = place(items, chance), place(items, chance)
        items[one], items[other] = items[other], items[one]


def shuffle(state: State, chance: random.Random) -> None:
    chance.shuffle(texts(state))


def shrink(state: State, chance: random.Random) -> None:
    del texts(state)[chance.randrange(3) :]


def grow(state: State, chance: random.Random) -> None:
    texts(state).extend(messages(chance.randrange(15, 40), first=chance.randrange(10**6)))


def put_a_scalar_in_its_place(state: State, chance: random.Random) -> None:
    state["messages"] = chance.choice([None, 5, "text", True])


def put_another_container_in_its_place(state: State, chance: random.Random) -> None:
    kinds: list[Callable[[list[str]], Any]] = [tuple, models.Record, dict.fromkeys, set]
    state["messages"] = chance.choice(kinds)([f"{n}" * 50 for n in range(60)])


def change_a_nested_list(state: State, chance: random.Random) -> None:
    output = state.setdefault("tool", {"output": []})["output"]
    output.extend(f"{chance.random()}" * 9 for _ in range(chance.randrange(30)))
    if output and chance.random() < 0.5:
        del output[: chance.randrange(len(output))]


def add_a_large_message(state: State, chance: random.Random) -> None:
    lines = [f"{n} {chance.random()}" * 4 for n in range(chance.randrange(30, 90))]
    items = texts(state)
    items.insert(place(items, chance), {"role": "tool", "lines": lines})


def edit_a_large_message(state: State, chance: random.Random) -> None:
    for message in texts(state):
        if isinstance(message, dict) and message.get("lines"):
            message["lines"][place(message["lines"], chance)] = chance.random()
            del message["lines"][: chance.randrange(2)]


def change_odd_values(state: State, chance: random.Random) -> None:
    state[(1, "odd")] = {chance.randrange(5), "set"}
    state["record"] = models.Record([models.Point(n) for n in range(chance.randrange(80))])
    state["record"].note = float("nan") if chance.random() < 0.5 else "\ud800"
    state["step"] = chance.randrange(3)


def drop_a_key(state: State, chance: random.Random) -> None:
    if state:
        del state[chance.choice(list(state))]


EDITS: list[Edit] = [
    append,
    insert,
    remove,
    remove_at_the_front,
    slide,
    edit_inside,
    edit_twice,
    turn_one_into_true,
    reorder_keys,
    swap,
    shuffle,
    shrink,
    grow,
    put_a_scalar_in_its_place,
    put_another_container_in_its_place,
    change_a_nested_list,
    add_a_large_message,
    edit_a_large_message,
    change_odd_values,
    drop_a_key,
]
edits = st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 10**6)), max_size=12)


@examples(60)
@given(st.integers(0, 60), edits)
def test_any_edits_give_the_root_of_building_from_scratch(
    count: int, steps: list[tuple[Edit, int]]
) -> None:
    with short_runs():
        saved = Saved({"messages": messages(count), "step": 1})
        saved.save()
        for edit, number in steps:
            edit(saved.state, random.Random(number))
            saved.save()


@examples(25)
@given(st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 10**6)), min_size=2, max_size=8))
def test_several_edits_between_two_saves_are_all_found(steps: list[tuple[Edit, int]]) -> None:
    with short_runs():
        saved = Saved({"messages": messages(60), "step": 1})
        for _ in range(3):
            saved.save()
            for edit, number in steps:
                edit(saved.state, random.Random(number))


@pytest.mark.parametrize("edit", EDITS)
def test_each_edit_of_a_long_conversation_gives_the_root_of_building_from_scratch(
    edit: Edit,
) -> None:
    saved = Saved({"messages": messages(220), "step": 1})
    saved.save()
    for number in range(3):
        edit(saved.state, random.Random(number))
        saved.save()


@examples(20)
@given(st.lists(st.integers(0, 90), min_size=1, max_size=6))
def test_a_bare_list_may_be_the_state(counts: list[int]) -> None:
    with short_runs():
        saved = Saved([])
        for first, count in enumerate(counts):
            saved.state = messages(count, first=first)
            saved.save()


REPEATED = ["a" * 700, "b" * 700, {"large": ["c" * 90] * 40}]
splices = st.tuples(
    st.integers(0, 40), st.integers(0, 12), st.lists(st.sampled_from(REPEATED), max_size=12)
)


@examples(60)
@given(st.lists(st.sampled_from(REPEATED), max_size=40), st.lists(splices, max_size=5))
def test_items_that_repeat_are_not_taken_for_each_other(
    items: list[Any], steps: list[tuple[int, int, list[Any]]]
) -> None:
    with short_runs():
        saved = Saved(items)
        saved.save()
        for low, gone, new in steps:
            items[low : low + gone] = new
            saved.save()


@pytest.mark.parametrize("grown", [-40, -9, -3, -1, 1, 3, 9, 40])
def test_a_list_of_equal_items_may_shrink_and_grow(grown: int) -> None:
    with short_runs():
        saved = Saved(["x" * 700] * 60)
        saved.save()
        saved.state = ["x" * 700] * (60 + grown)
        saved.save()
        saved.state[7] = saved.state[-2] = "changed"
        saved.save()


@pytest.mark.parametrize("new", [1, 4, 5, 30])
def test_equal_items_behind_a_head_that_moves_stay_in_their_places(new: int) -> None:
    with short_runs():
        saved = Saved(["head" * 175, *["x" * 700] * 40])
        saved.save()
        saved.state = ["new" * 200] * new + saved.state
        saved.save()
        del saved.state[: new // 2]
        saved.save()


@pytest.mark.parametrize("theirs", [ormsgpack.Ext(5, b"x"), ormsgpack.Fragment(b"\x01")])
def test_what_only_the_encoder_understands_is_refused_in_a_later_save(theirs: object) -> None:
    state: State = {"messages": [{"text": "word " * 100} for _ in range(500)]}
    shadow = Shadow(shelf().builder)
    shadow.save(state)
    state["messages"].append({"text": theirs})
    with pytest.raises(Unstorable, match=r"state\.messages\[500\]\.text"):
        shadow.save(state)


def test_a_state_may_become_anything_else() -> None:
    saved = Saved(None)
    long = messages(130)
    for state in (
        None,
        long,
        tuple(long),
        {"a": long},
        models.Record(long),
        models.Slotted(long),
        5,
        "x" * 100_000,
        {"a": long, "b": tuple(long)},
        {"b": tuple(long), "a": long},
        {1: long},
        {True: long},
        {"a": "x" * 100_000},
        [],
        set(range(5000)),
    ):
        saved.state = state
        saved.save()


def test_a_list_at_the_border_of_being_split_keeps_its_address() -> None:
    with short_runs():
        saved = Saved([])
        limit = SPLIT_BYTES + 500
        for size in (limit - 30, limit + 30, limit - 1, limit, limit + 1, 100, limit * 3, limit):
            saved.state = ["x" * 100] * (size // 102)
            saved.state.append("y" * (size % 102))
            saved.save()


# What a small change costs


def conversation() -> Saved:
    saved = Saved({"messages": messages(1000), "step": 1, "plan": {"goal": "x", "done": []}})
    saved.save()
    return saved


def cost(saved: Saved) -> int:
    root, out = saved.memory.save(saved.state)
    new = saved.here.put(out)
    assert root == saved.here.root_of(saved.state)
    return new


def _change_content(items: list[Any], at: int) -> None:
    items[at]["content"] = "changed".ljust(250)


def _change_type(items: list[Any], at: int) -> None:
    items[at]["seen"] = True


def _reorder(items: list[Any], at: int) -> None:
    items[at]["id"] = items[at].pop("id")


def _insert(items: list[Any], at: int) -> None:
    items.insert(at, {"role": "new", "content": "x" * 250})


def _remove(items: list[Any], at: int) -> None:
    del items[at]


def _replace(items: list[Any], at: int) -> None:
    items[at] = 5


@pytest.mark.parametrize(
    "change", [_change_content, _change_type, _reorder, _insert, _remove, _replace]
)
def test_a_small_change_anywhere_makes_few_bytes(change: Callable[[list[Any], int], None]) -> None:
    saved = conversation()
    for at in (0, 1, 2, 333, 500, 777, 990):
        change(saved.state["messages"], at)
        assert 0 < cost(saved) <= 3 * 1024


def test_appending_a_message_makes_few_bytes() -> None:
    saved = conversation()
    costs = []
    for number in range(25):
        saved.state["messages"] += messages(1, first=5000 + number)
        saved.state["step"] += 1
        costs.append(cost(saved))
    assert max(costs) <= 3 * 1024
    assert sum(costs) / len(costs) < 1024


def test_sliding_a_window_over_a_conversation_makes_few_bytes() -> None:
    saved = conversation()
    for number in range(10):
        del saved.state["messages"][0]
        saved.state["messages"] += messages(1, first=5000 + number)
        assert cost(saved) <= 4 * 1024


def test_changing_another_key_makes_few_bytes() -> None:
    saved = conversation()
    saved.state["plan"]["done"].append("first")
    assert 0 < cost(saved) <= 1024
    saved.state["another"] = True
    assert 0 < cost(saved) <= 1024


def test_saving_the_same_again_makes_nothing() -> None:
    saved = conversation()
    assert cost(saved) == 0
    saved.state = copy.deepcopy(saved.state)
    _, out = saved.memory.save(saved.state)
    assert len(out) == 0


def test_a_small_change_does_not_write_the_unchanged_again() -> None:
    saved = conversation()
    saved.state["messages"][500]["content"] = "changed"
    _, out = saved.memory.save(saved.state)
    assert sum(map(len, out.values())) < 2 * RUN_BYTES


def test_a_change_inside_a_large_nested_container_makes_few_bytes() -> None:
    saved = Saved({"sessions": {str(n): messages(200, first=n * 1000) for n in range(5)}})
    saved.save()
    saved.state["sessions"]["3"][100]["content"] = "changed"
    assert 0 < cost(saved) <= 3 * 1024
    saved.state["sessions"]["4"].insert(0, "new")
    assert 0 < cost(saved) <= 3 * 1024


# Nothing is shared with the caller


def test_changing_a_state_after_its_save_changes_nothing_that_was_recorded() -> None:
    saved = conversation()
    before = copy.deepcopy(saved.state)
    root, out = saved.memory.save(saved.state)
    saved.here.put(out)
    seen = view(saved.here.reader, root)
    saved.state["messages"][0]["content"] = "changed"
    saved.state["messages"].clear()
    saved.state["plan"]["done"].append("changed")
    assert saved.here.reader.load(root) == before
    assert seen == before
    saved.save()


def test_changing_what_was_loaded_changes_nothing_that_was_recorded() -> None:
    saved = conversation()
    root, out = saved.memory.save(saved.state)
    saved.here.put(out)
    loaded = saved.here.reader.load(root)
    loaded["messages"][0]["content"] = "changed"
    loaded["messages"].clear()
    assert saved.here.reader.load(root) == saved.state


def test_an_edit_that_is_undone_before_the_save_is_no_change() -> None:
    saved = conversation()
    message = saved.state["messages"][10]
    content, message["content"] = message["content"], "changed"
    message["content"] = content
    assert cost(saved) == 0


def test_an_edit_that_is_undone_after_a_save_gives_the_first_root_again() -> None:
    saved = conversation()
    first, _ = saved.memory.save(saved.state)
    saved.state["messages"][10]["seen"] = True
    assert saved.memory.save(saved.state)[0] != first
    saved.state["messages"][10]["seen"] = 1
    assert saved.memory.save(saved.state)[0] == first


# Refusals


PATHS: list[tuple[Callable[[State, object], object], str]] = [
    (lambda state, bad: state.update(new=bad), "state.new"),
    (lambda state, bad: state.update(new={"a": [bad]}), "state.new.a[0]"),
    (lambda state, bad: state["messages"].append(bad), "state.messages[1000]"),
]
LATER_PATHS: list[tuple[Callable[[State, object], object], str]] = [
    (lambda state, bad: state["messages"][3].update(image=bad), "state.messages[3].image"),
    (lambda state, bad: state["messages"][700].update(image=bad), "state.messages[700].image"),
    (lambda state, bad: state["messages"].append({"image": bad}), "state.messages[1000].image"),
    (lambda state, bad: state["messages"].insert(9, [bad]), "state.messages[9][0]"),
]


def refused_path(put: Callable[[State, object], object]) -> str:
    saved = conversation()
    put(saved.state, object())
    with pytest.raises(Unstorable) as caught:
        saved.memory.save(saved.state)
    return caught.value.path


@pytest.mark.parametrize(("put", "path"), PATHS, ids=[path for _, path in PATHS])
def test_the_path_to_what_is_new_and_cannot_be_stored_is_exact(
    put: Callable[[State, object], object], path: str
) -> None:
    assert refused_path(put) == path


@pytest.mark.parametrize(("put", "path"), LATER_PATHS, ids=[path for _, path in LATER_PATHS])
def test_the_path_to_what_is_new_inside_a_known_container_is_exact(
    put: Callable[[State, object], object], path: str
) -> None:
    assert refused_path(put) == path
