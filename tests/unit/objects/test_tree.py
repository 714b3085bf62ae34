"""From a value to objects and back: the value, its types, and no more objects than needed."""

from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Corrupt, Unstorable
from hardsave.objects import envelope
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.growth import Growth
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.shadow import Shadow
from hardsave.objects.tree import INLINE_BYTES, MAX_TREE_DEPTH, SPLIT_BYTES
from hardsave.objects.types import Types
from tests.unit.objects import models
from tests.unit.objects.shelf import MIB, Shelf
from tests.unit.objects.strategies import examples, messages, portrait, storable

FLAVOURS: dict[str, Callable[[int], Any]] = {
    "number": lambda n: n,
    "text": lambda n: f"{n:05}",
    "long text": lambda n: f"{n} ".ljust(200, "x"),
    "moment": lambda n: (n, 1.5, None),
    "point": lambda n: models.Point(n, -n),
    "member": lambda n: (n, models.Mood.CALM),
}
SHAPES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": lambda items: {f"key {n}": item for n, item in enumerate(items)},
    "odd dict": lambda items: {item: n for n, item in enumerate(items)},
    "record": models.Record,
    "slotted": models.Slotted,
    "note": lambda items: models.Note(content=items),
    "open": lambda items: models.Open.model_validate({f"f{n}": i for n, i in enumerate(items)}),
    "packet": lambda items: models.Packet(items, len(items)),
}


def filled(shape: str, flavour: str, count: int) -> Any:
    return SHAPES[shape]([FLAVOURS[flavour](n) for n in range(count)])


large = st.builds(
    filled, st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(FLAVOURS)), st.integers(0, 200)
)
states = st.recursive(
    large | storable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.builds(models.Record, inner, inner)
    ),
    max_leaves=6,
)


def shelf() -> Shelf:
    return Shelf(Codec(models.registry()))


# There and back


@examples(40)
@given(states)
def test_every_state_comes_back_as_itself(state: object) -> None:
    here = shelf()
    root = here.build(state)
    assert portrait(here.reader.load(root)) == portrait(state)
    assert here.root_of(here.reader.load(root)) == root


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_large_container_of_each_shape_is_split_and_comes_back(shape: str, flavour: str) -> None:
    state = filled(shape, flavour, 1200 if flavour == "number" else 360)
    here = shelf()
    root = here.build(state)
    assert here.objects[root][0] == envelope.SEQUENCE
    assert portrait(here.reader.load(root)) == portrait(state)


def test_large_containers_inside_each_other_come_back() -> None:
    state = {
        "messages": [{"role": "tool", "output": filled("list", "long text", 50)} for _ in "abc"],
        "deep": [(models.Record(filled("odd dict", "moment", 300)),)],
        "sets": {"a": filled("set", "text", 900)},
    }
    here = shelf()
    assert portrait(here.reader.load(here.build(state))) == portrait(state)


def test_a_state_need_not_be_a_container() -> None:
    values: list[object] = [None, 0, "", b"", [], (), {}, set(), "x" * 200_000, b"y" * 3000]
    for value in values:
        here = shelf()
        root = here.build(value)
        assert portrait(here.reader.load(root)) == portrait(value)
        assert len(here.objects) == 1


def test_a_split_object_of_a_class_that_nobody_registered_comes_back_as_plain_data() -> None:
    here = shelf()
    root = here.build({"a": models.Record("x" * 3000, (1,))})
    plain = Shelf(Codec(Types()))
    plain.objects = here.objects
    assert plain.reader.load(root) == {"a": {"content": "x" * 3000, "note": (1,)}}


def test_split_sets_and_maps_of_a_class_that_nobody_registered_come_with_pairs() -> None:
    here = Shelf(Codec(Types()))
    points = [models.Point(n, 0) for n in range(300)]
    pairs = [(("x", n), ("y", 0)) for n in range(300)]
    assert here.reader.load(here.build(set(points))) == set(pairs)
    assert here.reader.load(here.build(frozenset(points))) == frozenset(pairs)
    assert here.reader.load(here.build(dict.fromkeys(points, 1))) == dict.fromkeys(pairs, 1)


# One value, one address


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        ((1,), [1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (0.0, -0.0),
        (models.Record(1), {"content": 1, "note": None}),
        (models.Mood.CALM, "calm"),
    ],
)
def test_what_python_may_call_equal_has_another_address(one: object, other: object) -> None:
    here = shelf()
    around = messages(30)
    assert here.root_of(one) != here.root_of(other)
    assert here.root_of([*around, one]) != here.root_of([*around, other])
    assert here.root_of({"m": around, "x": [one]}) != here.root_of({"m": around, "x": [other]})


def test_shapes_have_different_addresses() -> None:
    roots = {shelf().root_of(filled(other, "text", 800)) for other in SHAPES}
    assert len(roots) == len(SHAPES)


def test_the_order_in_which_a_large_set_was_filled_does_not_matter() -> None:
    names = [f"name {n}" for n in range(1000)]
    backwards = set(names[500:])
    backwards.update(names[:500])
    assert shelf().root_of(set(names)) == shelf().root_of(backwards)


def test_the_addresses_of_a_format_have_not_changed() -> None:
    here = shelf()
    found = {
        "short": here.root_of([1, "a"]).hex(),
        "split": here.root_of({"messages": messages(100), "step": 7}).hex(),
        "shapes": here.root_of([filled(shape, "text", 500) for shape in SHAPES]).hex(),
    }
    assert found == {
        "short": "3078eaacd92eeabf7b5f2bebce02df0aeb0e266c",
        "split": "75853661bcf01d60c581d5899696c3d456b7e516",
        "shapes": "eabc2e7381d4b0a423085e4466c0690973f3ce3e",
    }


def test_equal_parts_are_stored_once() -> None:
    here = shelf()
    here.build({"a": messages(200)})
    alone = len(here.objects)
    here.build({"a": messages(200), "b": messages(200), "c": [messages(200)]})
    assert len(here.objects) < alone + 10


# Where a value stands


def test_the_limits_are_part_of_the_format() -> None:
    assert (INLINE_BYTES, SPLIT_BYTES, MAX_TREE_DEPTH) == (128, 2048, 32)


def test_a_short_value_stands_inside_its_parent_and_a_longer_one_does_not() -> None:
    filler = ["f" * 100] * 30  # so that the list is split
    for size, objects in [(INLINE_BYTES, 0), (INLINE_BYTES + 1, 1)]:
        value = b"x" * (size - 2)
        here = shelf()
        here.build([*filler, value])
        kinds = [data[0] for data in here.objects.values()]
        assert kinds.count(envelope.VALUE) == objects


def test_a_container_is_split_only_beyond_the_limit() -> None:
    for size, kind in [(SPLIT_BYTES, envelope.VALUE), (SPLIT_BYTES + 1, envelope.SEQUENCE)]:
        value = [b"x" * (size - 4)]
        here = shelf()
        assert len(here.codec.encode(value)) == size
        assert here.objects[here.build(value)][0] == kind


def test_every_object_that_is_made_is_reachable() -> None:
    here = shelf()
    root = here.build({"m": messages(300), "s": filled("set", "long text", 50)})
    assert here.reachable(root) == here.objects.keys()


# Depth


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = "x" * 3000
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize("depth", [1, MAX_TREE_DEPTH - 1, MAX_TREE_DEPTH, MAX_TREE_DEPTH + 1, 1000])
def test_nesting_of_any_depth_around_a_long_text_comes_back(depth: int) -> None:
    here = shelf()
    root = here.build(nested(depth, lambda inner: [inner]))
    found = here.reader.load(root)
    for _ in range(depth):
        assert type(found) is list
        found = found[0]
    assert found == "x" * 3000
    kinds = [data[0] for data in here.objects.values()]
    assert kinds.count(envelope.SEQUENCE) == min(depth, MAX_TREE_DEPTH)


@pytest.mark.parametrize(
    "wrap", [lambda inner: {"a": inner}, lambda inner: [0, {"b": inner}]], ids=["dict", "both"]
)
def test_saving_deep_nesting_again_and_again_gives_the_same_address(
    wrap: Callable[[Any], Any],
) -> None:
    here = shelf()
    state = nested(150, wrap)
    memory = Shadow(here.builder)
    assert memory.save(state)[0] == here.root_of(state)
    assert memory.save(state)[0] == here.root_of(state)


# What cannot be stored


@pytest.mark.parametrize(
    "save",
    [
        lambda here, state: here.builder.root(state, Out()),
        lambda here, state: Shadow(here.builder).save(state),
        lambda here, state: Growth(here.builder, here.verbatim(), None).append(state),
    ],
    ids=["build", "shadow", "growth"],
)
def test_the_path_to_what_cannot_be_stored_is_exact_in_large_states_too(
    save: Callable[[Shelf, object], object],
) -> None:
    state: dict[Any, Any] = {"messages": messages(1000), "odd key": {}, 7: [(1, {"a": "x" * 3000})]}
    places: list[tuple[Any, Any, str]] = [
        (state["messages"][3], "image", "state.messages[3].image"),
        (state["messages"], 999, "state.messages[999]"),
        (state["odd key"], (1, 2), "state['odd key'][(1, 2)]"),
        (state[7][0][1], "b", "state[7][0][1].b"),
    ]
    for container, step, path in places:
        before = container[step] if isinstance(container, list) else None
        container[step] = object()
        with pytest.raises(Unstorable) as caught:
            save(shelf(), state)
        assert caught.value.path == path
        if isinstance(container, list):
            container[step] = before
        else:
            del container[step]


def test_the_path_to_what_cannot_be_stored_is_exact_in_the_members_of_a_large_set() -> None:
    class Thing:
        pass

    state = {"a": {"b": [{*range(3000), Thing()}]}}
    with pytest.raises(Unstorable, match=r"^state\.a\.b\[0\].*Thing has no stored form"):
        shelf().build(state)


class Unused(Codec):
    """Has nothing to do."""

    def encode(self, value: object, path: str = "state") -> bytes:
        raise AssertionError(f"encoded {path}")

    sketch = encode


LONG = [
    "x" * (MIB + 1),
    "é" * (MIB // 2) + "x",
    "€" * (MIB // 3 + 1),
    "\ud800" * (MIB // 3 + 1),
    "🙂" * (MIB // 4) + "x",
    b"x" * (MIB + 1),
]
LONGEST = ["x" * MIB, "é" * (MIB // 2), "€" * (MIB // 3) + "x", "🙂" * (MIB // 4), b"x" * MIB]


@pytest.mark.parametrize("number", range(len(LONG)))
def test_a_value_above_the_cap_is_refused_before_anything_is_encoded(number: int) -> None:
    value = LONG[number]
    builder = Builder(Unused(), MIB)
    for state, path in [
        (value, "state"),
        ([1, value], "state[1]"),
        ({"messages": [0, 1, 2, {"image": value}]}, "state.messages[3].image"),
        ({"a": [[], {"b": {}}, {"odd name": [value]}]}, "state.a[2]['odd name'][0]"),
        ({7: {(1, 2): value}}, "state[7][(1, 2)]"),
    ]:
        with pytest.raises(Unstorable, match=r"longer than max_value_bytes \(1048576\)") as caught:
            Shadow(builder).save(state)
        assert caught.value.path == path
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("number", range(len(LONGEST)))
def test_a_value_exactly_at_the_cap_is_stored(number: int) -> None:
    here = shelf()
    state = {"a": [LONGEST[number]]}
    root, out = Shadow(here.builder).save(state)
    here.put(out)
    assert here.reader.load(root) == state


def test_a_value_above_the_cap_is_refused_when_appended() -> None:
    here = shelf()
    for start in ({}, {"messages": messages(50)}):
        root = here.build(start)
        growth = Growth(here.builder, here.verbatim(), root)
        with pytest.raises(Unstorable, match="max_value_bytes") as caught:
            growth.append({"messages": [1, {"image": LONG[0]}]})
        assert caught.value.path == "state.messages[1].image"


def test_a_value_above_the_cap_is_refused_when_it_is_new_in_a_known_state() -> None:
    here = shelf()
    state: dict[str, Any] = {"messages": messages(1000), "step": 1}
    for container, step, path in [
        (state["messages"][700], "image", "state.messages[700].image"),
        (state, "picture", "state.picture"),
    ]:
        memory = Shadow(here.builder)
        memory.save(state)
        container[step] = LONG[0]
        with pytest.raises(Unstorable, match="max_value_bytes") as caught:
            memory.save(state)
        assert caught.value.path == path
        del container[step]


LONG_TEXT = LONG[0]
NESTED = {
    "tuple": (LONG_TEXT,),
    "dataclass": models.Record(LONG_TEXT),
    "pydantic": [models.Note(content=LONG_TEXT)],
    "msgspec": models.Packet(LONG_TEXT),
    "dict": models.Table(a=LONG_TEXT),
}
HIDDEN = {
    "set": {LONG_TEXT},
    "key": {LONG_TEXT: 1},
    "bytearray": [bytearray(MIB + 1)],
    "str": [models.Text(LONG_TEXT)],
}


@pytest.mark.parametrize("name", NESTED)
def test_a_value_above_the_cap_is_refused_in_other_containers(name: str) -> None:
    with pytest.raises(Unstorable, match="max_value_bytes"):
        Shadow(shelf().builder).save({"a": NESTED[name]})


@pytest.mark.parametrize("name", HIDDEN)
def test_a_value_above_the_cap_is_refused_wherever_it_lies(name: str) -> None:
    with pytest.raises(Unstorable, match="max_value_bytes"):
        Shadow(shelf().builder).save({"a": HIDDEN[name]})


@pytest.mark.parametrize("name", [*NESTED, *HIDDEN])
def test_a_value_above_the_cap_is_refused_wherever_it_lies_when_appended(name: str) -> None:
    here = shelf()
    value = {**NESTED, **HIDDEN}[name]
    with pytest.raises(Unstorable, match="max_value_bytes"):
        Growth(here.builder, here.verbatim(), None).append({"a": value})


def test_checking_sizes_ends_for_what_contains_itself() -> None:
    loop: list[Any] = []
    loop += [loop, loop]
    with pytest.raises(Unstorable, match="contains itself"):
        Shadow(shelf().builder).save({"a": loop})


# Damage


def stands_as(here: Shelf, kind: int, refs: tuple[Hash, ...], payload: object) -> Hash:
    out = Out()
    address = out.put(kind, refs, ormsgpack.packb(payload))
    here.put(out)
    return address


@pytest.mark.parametrize("kind", [envelope.LEAF, envelope.NODE, envelope.EDGE, 0x00, 0x21, 0xFF])
def test_another_kind_where_a_value_should_stand_is_corrupt(kind: int) -> None:
    here = shelf()
    address = stands_as(here, kind, (), [])
    with pytest.raises(Corrupt, match="stands where a value should"):
        here.reader.load(address)
    inside = stands_as(here, envelope.SEQUENCE, (address,), [0, None, 1, False, [None]])
    data = here.objects[inside].replace(b"\x91\xc0", b"\x91\xc7\x00\x01")
    here.objects[inside] = data
    with pytest.raises(Corrupt, match="stands where a value should"):
        here.reader.load(inside)


def test_a_value_with_references_is_corrupt() -> None:
    here = shelf()
    address = stands_as(here, envelope.VALUE, (bytes(20),), None)
    with pytest.raises(Corrupt, match="stands where a value should"):
        here.reader.load(address)


@pytest.mark.parametrize("kind", [envelope.VALUE, envelope.LEAF, envelope.NODE, envelope.SEQUENCE])
def test_another_kind_where_an_edge_should_be_is_corrupt(kind: int) -> None:
    here = shelf()
    wrong = stands_as(here, kind, (), [False, []])
    root = stands_as(here, envelope.SEQUENCE, (wrong,), [0, None, 5, True, []])
    with pytest.raises(Corrupt, match="is not an edge"):
        here.reader.load(root)


@pytest.mark.parametrize("kind", [envelope.VALUE, envelope.LEAF, envelope.EDGE, envelope.SEQUENCE])
def test_another_kind_where_a_node_should_be_is_corrupt(kind: int) -> None:
    here = shelf()
    wrong = stands_as(here, kind, (), [5])
    upper = stands_as(here, envelope.EDGE, (wrong,), [False, [5]])
    lower = stands_as(here, envelope.EDGE, (upper,), [True, []])
    root = stands_as(here, envelope.SEQUENCE, (lower,), [0, None, 5, True, []])
    with pytest.raises(Corrupt, match="is not a node"):
        here.reader.load(root)


@pytest.mark.parametrize("kind", [envelope.VALUE, envelope.NODE, envelope.EDGE, envelope.SEQUENCE])
def test_another_kind_where_a_leaf_should_be_is_corrupt(kind: int) -> None:
    here = shelf()
    wrong = stands_as(here, kind, (), [5])
    edge = stands_as(here, envelope.EDGE, (wrong,), [False, [1]])
    root = stands_as(here, envelope.SEQUENCE, (edge,), [0, None, 1, True, []])
    with pytest.raises(Corrupt, match="stands where a leaf should"):
        here.reader.load(root)


@pytest.mark.parametrize("count", [2, 4, -1, 10**9, 2**60])
def test_a_sequence_of_another_length_than_it_says_is_corrupt(count: int) -> None:
    here = shelf()
    root = stands_as(here, envelope.SEQUENCE, (), [0, None, count, False, [1, 2, 3]])
    with pytest.raises(Corrupt, match="than it says"):
        here.reader.load(root)


def test_a_leaf_with_fewer_items_than_its_edge_says_is_corrupt() -> None:
    here = shelf()
    leaf = stands_as(here, envelope.LEAF, (), [1, 2])
    edge = stands_as(here, envelope.EDGE, (leaf,), [False, [3]])
    root = stands_as(here, envelope.SEQUENCE, (edge,), [0, None, 3, True, []])
    with pytest.raises(Corrupt, match="shorter than it says"):
        here.reader.load(root)


@pytest.mark.parametrize(
    "payload",
    [
        5,
        [0, None],
        [99, None, 0, False, []],
        [0, None, 3, True, []],
        [0, None, 3, False, 5],
        [0, None, "3", False, []],
        [4, None, 1, False, [[], 1]],
        [2, None, 1, False, [[]]],
    ],
)
def test_a_root_with_a_malformed_payload_is_corrupt(payload: object) -> None:
    here = shelf()
    root = stands_as(here, envelope.SEQUENCE, (), payload)
    with pytest.raises(Corrupt):
        here.reader.load(root)


@pytest.mark.parametrize("payload", [5, [True, []], [False, [3, 4]], [False, ["a"]], [False]])
def test_an_edge_with_a_malformed_payload_is_corrupt(payload: object) -> None:
    here = shelf()
    leaf = stands_as(here, envelope.LEAF, (), [1, 2, 3])
    refs = () if payload == [True, []] else (leaf,)
    edge = stands_as(here, envelope.EDGE, refs, payload)
    root = stands_as(here, envelope.SEQUENCE, (edge,), [0, None, 7, True, []])
    with pytest.raises(Corrupt):
        here.reader.load(root)


@pytest.mark.parametrize("payload", [5, [1], ["a", "b"], [1, 2, 3], {"a": 1}, None])
def test_a_node_with_a_malformed_payload_is_corrupt(payload: object) -> None:
    here = shelf()
    leaves = (
        stands_as(here, envelope.LEAF, (), [1]),
        stands_as(here, envelope.LEAF, (), [2, 3]),
    )
    node = stands_as(here, envelope.NODE, leaves, payload)
    upper = stands_as(here, envelope.EDGE, (node,), [False, [3]])
    lower = stands_as(here, envelope.EDGE, (upper,), [True, []])
    root = stands_as(here, envelope.SEQUENCE, (lower,), [0, None, 3, True, []])
    with pytest.raises(Corrupt):
        here.reader.load(root)


@pytest.mark.parametrize("payload", [5, None, True])
def test_a_leaf_with_a_malformed_payload_is_corrupt(payload: object) -> None:
    here = shelf()
    leaf = stands_as(here, envelope.LEAF, (), payload)
    edge = stands_as(here, envelope.EDGE, (leaf,), [False, [3]])
    root = stands_as(here, envelope.SEQUENCE, (edge,), [0, None, 3, True, []])
    with pytest.raises(Corrupt):
        here.reader.load(root)
