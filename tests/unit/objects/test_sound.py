"""Objects from elsewhere: what a builder makes is sound, and what it cannot make is refused."""

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Corrupt, Misuse
from hardsave.objects import envelope, wire
from hardsave.objects.codec import Codec
from hardsave.objects.envelope import EDGE, LEAF, NODE, SEQUENCE, VALUE, seal
from hardsave.objects.hashing import Hash
from hardsave.objects.sound import (
    MAX_NESTING,
    MAX_STATE_BYTES,
    VALUES,
    Part,
    Sound,
    Standing,
    standing,
)
from hardsave.objects.tree import MAX_TREE_DEPTH
from hardsave.objects.types import Types
from tests.unit.objects import models
from tests.unit.objects.shelf import Shelf
from tests.unit.objects.strategies import examples, storable

SOUND = Sound()
ENCODE = Codec().encode
A, B = bytes(20), bytes([1]) * 20
MARK = wire.REF_MARK


def stand(shelf: Shelf, address: Hash, known: dict[Hash, Standing]) -> Standing:
    """Check an object and all below it, children first."""
    if address not in known:
        data = shelf.objects[address]
        parts = SOUND.parts(data)
        assert [part.address for part in parts] == list(envelope.unseal(data).refs)
        for part in parts:
            stand(shelf, part.address, known)
        known[address] = standing(data[0], parts, len(data), known)
    return known[address]


@examples(100)
@given(storable)
def test_whatever_a_builder_makes_is_sound(value: Any) -> None:
    shelf = Shelf(Codec(models.registry()))
    assert stand(shelf, shelf.build(value), {}).kind in VALUES


@pytest.mark.parametrize(
    "value",
    [
        [f"message {n} " * 30 for n in range(300)],
        {f"key {n}" * 40: "v" * 200 for n in range(100)},
        {"k" * 300_000: "v" * 300, "other": "w" * 3_000},
        {frozenset(range(3_000)): "x" * 200, "rest": "y" * 3_000},
        ["\ud800" * 1_000, 1 << 20_000, b"\xc1" * 500_000],
        [[n] * 700 for n in range(20)],
    ],
)
def test_long_things_of_every_shape_are_sound(value: Any) -> None:
    shelf = Shelf()
    known: dict[Hash, Standing] = {}
    stand(shelf, shelf.build(value), known)
    assert known.keys() == shelf.objects.keys()


def test_a_state_nested_as_deep_as_can_be_is_sound() -> None:
    value: Any = "end"
    for _ in range(MAX_TREE_DEPTH + 10):
        value = [value, "x" * 3_000]
    for _ in range(1_100):  # deeper than ormsgpack goes
        value = [value]
    shelf = Shelf()
    stand(shelf, shelf.build([value, "y" * 3_000]), {})
    many: Any = "end"
    for _ in range(2 * MAX_TREE_DEPTH):
        many = [many, "x" * 3_000]
    assert stand(shelf, shelf.build(many), {}).nesting == MAX_TREE_DEPTH


def test_keys_that_only_their_classes_tell_apart_are_no_damage() -> None:
    encoded = Codec(models.registry()).encode({models.Colour.RED: 1, models.Colour.RED.value: 2})
    SOUND.parts(seal(VALUE, [], encoded))


NEST = b"\x91" * 50_000 + b"\xc0"
FORGED = {
    "no payload": seal(VALUE, [], b""),
    "two values": seal(VALUE, [], b"\x01\x02"),
    "two values, the second like what marks the end": seal(VALUE, [], b"\x01" + wire.binary(A)),
    "half a value": seal(VALUE, [], b"\xc4\x14" + bytes(19)),
    "an array without its end": seal(VALUE, [], b"\x93\x01"),
    "an array of four billion": seal(VALUE, [], b"\xdd\xff\xff\xff\xff\x01"),
    "a map of four billion": seal(VALUE, [], b"\xdf\xff\xff\xff\xff\x01"),
    "a text of four gigabytes": seal(VALUE, [], b"\xdb\xff\xff\xff\xffx"),
    "bytes of four gigabytes": seal(VALUE, [], b"\xc6\xff\xff\xff\xffx"),
    "an extension of four gigabytes": seal(VALUE, [], b"\xc9\xff\xff\xff\xff\x02x"),
    "a byte that begins nothing": seal(VALUE, [], b"\xc1"),
    "a text that is not UTF-8": seal(VALUE, [], b"\xa2\xc3\x28"),
    "a long text that is not UTF-8": seal(VALUE, [], b"\xdb\x00\x10\x00\x00" + b"\xff" * (1 << 20)),
    "nested too deep": seal(VALUE, [], NEST),
    "tuples nested too deep": seal(VALUE, [], b"\xc7\x01\x02" * 41_000),
    "a tuple with something after it": seal(VALUE, [], wire.ext(wire.TUPLE, b"\x90\x00")),
    "a tuple that takes from what follows": seal(VALUE, [], b"\x92\xd4\x02\x91\x05\x06"),
    "a tuple of no array": seal(VALUE, [], wire.ext(wire.TUPLE, b"\x05")),
    "an unknown extension": seal(VALUE, [], wire.ext(99, b"x")),
    "a date that is none": seal(VALUE, [], wire.ext(wire.DATE, b"not a date")),
    "a number that is none": seal(VALUE, [], wire.ext(wire.DECIMAL, b"1.2.3")),
    "a set of lists": seal(VALUE, [], wire.ext(wire.SET, b"\x91\x90")),
    "a key that cannot be one": seal(VALUE, [], b"\x81\x90\x02"),
    "a value that refers": seal(VALUE, [A], b"\x91" + MARK),
    "a value that marks": seal(VALUE, [], b"\x91" + MARK),
    "a mark that is not empty": seal(LEAF, [A], b"\x92" + wire.ext(wire.REF, b"x") + b"\x01"),
    "a leaf that is no array": seal(LEAF, [], b"\x01"),
    "a leaf of nothing": seal(LEAF, [], b"\x90"),
    "a leaf with a mark too few": seal(LEAF, [A, B], b"\x91" + MARK),
    "a leaf with a mark too many": seal(LEAF, [A], b"\x92" + MARK + MARK),
    "a leaf with a mark inside an item": seal(LEAF, [A], b"\x91\x91" + MARK),
    "a node of nothing": seal(NODE, [], b"\x90"),
    "a node that counts too few": seal(NODE, [A, B], b"\x91\x01"),
    "a node that counts nothing": seal(NODE, [A], b"\x91\x00"),
    "a node that counts backwards": seal(NODE, [A], b"\x91\xff"),
    "a node that counts in truths": seal(NODE, [A], b"\x91\xc3"),
    "a node that marks": seal(NODE, [A], b"\x91" + MARK),
    "an edge of one part": seal(EDGE, [A], b"\x91\xc2"),
    "an edge without its next": seal(EDGE, [], b"\x92\xc3\x90"),
    "an edge that counts too many": seal(EDGE, [A], b"\x92\xc2\x92\x01\x01"),
    "a root of four parts": seal(SEQUENCE, [], ENCODE([0, None, 0, False])),
    "a root of no shape": seal(SEQUENCE, [], ENCODE([6, None, 0, False, []])),
    "a root whose shape is no number": seal(SEQUENCE, [], ENCODE(["0", None, 0, False, []])),
    "a list with a name": seal(SEQUENCE, [], ENCODE([0, "name", 0, False, []])),
    "an object without a name": seal(SEQUENCE, [], ENCODE([5, None, 0, False, []])),
    "a root that says too many": seal(SEQUENCE, [], ENCODE([0, None, 5, False, [1]])),
    "a root that says too few": seal(SEQUENCE, [], ENCODE([0, None, 0, False, [1]])),
    "a root that says minus one": seal(SEQUENCE, [], ENCODE([0, None, -1, False, []])),
    "a dict with half an item": seal(SEQUENCE, [], ENCODE([4, None, 1, False, ["key"]])),
    "a root without the edge it has": seal(SEQUENCE, [], ENCODE([0, None, 9, True, [1]])),
    "a reference as a key": seal(SEQUENCE, [A], b"\x95\x04\xc0\x01\xc2\x92" + MARK + b"\x01"),
    "a count in a longer form": bytes((VALUE, 0x80, 0x00)) + b"\x01",
    "a count without end": bytes((VALUE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF)) + b"\x01",
    "references past its end": bytes((LEAF, 5)) + A,
    "a kind and no more": bytes((VALUE,)),
}


BOASTING = {name: data for name, data in FORGED.items() if "billion" in name or "gigabytes" in name}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED.keys())
def test_what_no_builder_makes_is_refused(data: bytes) -> None:
    with pytest.raises(Corrupt):
        SOUND.parts(data)


@pytest.mark.parametrize("data", BOASTING.values(), ids=BOASTING.keys())
def test_no_memory_is_taken_on_the_word_of_a_length(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt):
            SOUND.parts(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@examples(500)
@given(st.binary(max_size=60))
def test_any_bytes_are_sound_or_corrupt(payload: bytes) -> None:
    """And what is sound can be read, in company too."""
    try:
        SOUND.parts(seal(VALUE, [], payload))
    except Corrupt:
        return
    codec = Codec(Types(), verbatim=True)
    assert len(codec.decode(wire.array([payload, b"\x01", payload]))) == 3


@examples(50)
@given(storable, st.data())
def test_the_two_ways_of_looking_agree(value: Any, data: st.DataObject) -> None:
    """The fast one and the one that builds nothing."""
    from hardsave.objects import sound

    encoded = bytearray(Codec(models.registry()).encode(value))
    if data.draw(st.booleans()):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        expected = sound._built_marks(bytes(encoded))
    except (Corrupt, ValueError, RecursionError):
        return  # what it refuses, the other one decides
    assert sound._scanned(bytes(encoded))[0] == expected


def test_a_kind_of_a_newer_version_asks_for_an_upgrade() -> None:
    with pytest.raises(Misuse, match="upgrade"):
        SOUND.parts(seal(0x21, [], b"\x01"))


def test_kinds_that_others_read_only_need_a_sound_envelope() -> None:
    assert SOUND.parts(seal(0x1A, [A, B], b"anything")) == [Part(A, None), Part(B, None)]


# Objects together


def test_what_is_missing_or_comes_later_is_refused() -> None:
    with pytest.raises(Corrupt, match="missing, or comes after"):
        standing(LEAF, [Part(A, VALUES)], 1, {})


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (LEAF, SOUND.parts(seal(LEAF, [A], b"\x92" + MARK + b"\x01"))),
        (NODE, SOUND.parts(seal(NODE, [A], b"\x91\x02"))),
        (EDGE, SOUND.parts(seal(EDGE, [A], b"\x92\xc3\x90"))),
        (SEQUENCE, SOUND.parts(seal(SEQUENCE, [A], ENCODE([0, None, 3, True, [1]])))),
    ],
)
def test_an_object_of_a_wrong_kind_is_refused(kind: int, parts: list[Part]) -> None:
    fitting = {LEAF: VALUE, NODE: LEAF, EDGE: EDGE, SEQUENCE: EDGE}[kind]
    wrong = {LEAF: NODE, NODE: VALUE, EDGE: LEAF, SEQUENCE: VALUE}[kind]
    standing(kind, parts, 1, {A: Standing(fitting, 0, 1)})
    with pytest.raises(Corrupt, match="wrong place"):
        standing(kind, parts, 1, {A: Standing(wrong, 0, 1)})


def test_lists_in_lists_by_reference_end_somewhere() -> None:
    """A reader goes down by recursion."""
    below = {A: Standing(VALUE, 0, 1)}
    parts = SOUND.parts(seal(SEQUENCE, [A], b"\x95\x00\xc0\x01\xc2\x91" + MARK))
    for _ in range(MAX_NESTING):
        below[A] = standing(SEQUENCE, parts, 1, below)
    with pytest.raises(Corrupt, match="deeper"):
        standing(SEQUENCE, parts, 1, below)


def test_a_few_bytes_that_mean_more_than_any_memory_are_refused() -> None:
    below = {A: Standing(VALUE, 0, 1_000)}
    items = struct.pack(">BH", 0xDC, 30) + MARK * 30
    parts = SOUND.parts(seal(SEQUENCE, [A] * 30, b"\x95\x00\xc0\x1e\xc2" + items))
    while below[A].weight * 30 < MAX_STATE_BYTES:
        below[A] = standing(SEQUENCE, parts, 1, below)
    with pytest.raises(Corrupt, match="no memory could hold"):
        standing(SEQUENCE, parts, 1, below)
