"""One value, one encoding: the same bytes everywhere, and different ones for what differs."""

import copy
import datetime
import decimal
import os
import random
import struct
import subprocess
import sys
import uuid
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.objects import slow
from hardsave.objects.codec import Codec
from tests.unit.objects import models
from tests.unit.objects.strategies import (
    BORDERS,
    ZONES,
    examples,
    floats,
    hashables,
    portrait,
    storable,
)

CODEC = Codec(models.registry())

GOLDEN: list[tuple[object, str]] = [
    (None, "c0"),
    (False, "c2"),
    (True, "c3"),
    (0, "00"),
    (-1, "ff"),
    (127, "7f"),
    (128, "cc80"),
    (-33, "d0df"),
    (65536, "ce00010000"),
    (2**64 - 1, "cfffffffffffffffff"),
    (-(2**63), "d38000000000000000"),
    (2**64, "c70907010000000000000000"),
    (-(2**63) - 1, "c70907ff7fffffffffffffff"),
    (1.5, "cb3ff8000000000000"),
    (-0.0, "cb8000000000000000"),
    (float("nan"), "cb7ff8000000000000"),
    (float("-inf"), "cbfff0000000000000"),
    ("a", "a161"),
    ("é" * 16, "d920c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9"),
    ("\ud800", "c70306eda080"),
    (b"\x00", "c40100"),
    ([1, [2]], "92019102"),
    ((1, "a"), "d6029201a161"),
    ({"b": 1, "a": None}, "82a16201a161c0"),
    ({1: "a"}, "d6059201a161"),
    ({"a": 1, (1,): 2}, "c7090594a16101d502910102"),
    ({2, 1, "a"}, "c70503930102a161"),
    (frozenset({b"a"}), "d60491c40161"),
    (
        datetime.datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=datetime.UTC),
        "c7250893d920323032342d30322d32395431323a30303a30302e3030303030352b30303a303000c0",
    ),
    (datetime.datetime(2024, 2, 29), "c7170893b3323032342d30322d32395430303a30303a303000c0"),  # noqa: DTZ001 # a naive one is meant
    (datetime.date(2024, 2, 29), "c70a09323032342d30322d3239"),
    (datetime.time(1, 2, 3, fold=1), "c70c0a93a830313a30323a303301c0"),
    (datetime.timedelta(days=-1, seconds=2, microseconds=3), "d60b93ff0203"),
    (uuid.UUID(int=1), "d80c00000000000000000000000000000001"),
    (decimal.Decimal("-1.50"), "c7050d2d312e3530"),
    (decimal.Decimal("sNaN"), "d60d734e614e"),
    (models.Colour.BLUE, "c7130f93a6436f6c6f7572a4424c5545d60292a16203"),
    (models.Level.LOW, "c70c0f93a54c6576656ca34c4f5701"),
    (models.Right.READ | models.Right.RUN, "c7110f93a55269676874a8524541447c52554e05"),
    (models.Right(0), "c7090f93a55269676874c000"),
    (models.Point(1, -1), "c70e0e92a5506f696e7482a17801a179ff"),
    (
        models.Note(content=(None,), Title="t"),
        "c71b0e92a44e6f746582a7636f6e74656e74d50291c0a57469746c65a174",
    ),
    (models.Packet(None, 300), "c71a0e92a65061636b657482a7636f6e74656e74c0a473697a65cd012c"),
]


@pytest.mark.parametrize(("value", "golden"), GOLDEN)
def test_the_format_has_not_changed(value: object, golden: str) -> None:
    assert CODEC.encode(value).hex() == golden
    assert portrait(CODEC.decode(bytes.fromhex(golden))) == portrait(value)


@pytest.mark.skipif(not ZONES, reason="no time zone database here")
def test_the_format_of_a_moment_in_a_zone_has_not_changed() -> None:
    moment = datetime.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZONES[0])
    content = b"\x93\xb9" + b"2024-10-27T02:30:00+01:00" + b"\x01\xad" + b"Europe/Berlin"
    assert CODEC.encode(moment) == b"\xc7" + bytes([len(content)]) + b"\x08" + content


# The same bytes


@examples(60)
@given(storable)
def test_equal_values_have_equal_encodings(value: object) -> None:
    data = CODEC.encode(value)
    assert CODEC.encode(copy.deepcopy(value)) == data
    assert CODEC.encode(CODEC.decode(data)) == data


@examples(50)
@given(st.lists(hashables, max_size=8), st.randoms(use_true_random=False))
def test_the_order_in_which_a_set_was_filled_does_not_matter(
    members: list[object], chance: random.Random
) -> None:
    shuffled = members.copy()
    chance.shuffle(shuffled)
    one, other = set(members), set(shuffled)
    if portrait(one) == portrait(other):  # of 1 and True the first one stays
        assert CODEC.encode(one) == CODEC.encode(other)


def test_the_context_for_decimals_does_not_matter() -> None:
    values = [decimal.Decimal(text) for text in ("1E+5", "-1.5E-400", "Infinity", "sNaN12", "0")]
    data = CODEC.encode(values)
    with decimal.localcontext() as context:
        context.capitals = 0
        assert CODEC.encode(values) == data


IN_ANOTHER_INTERPRETER = """
import datetime, decimal, enum, random, uuid
from hardsave.objects.codec import Codec
from hardsave.objects.levels import Out
from hardsave.objects.builder import Builder

words = [f"word {n}" for n in range(200)]
colour = enum.Enum("Colour", ["RED", "BLUE"])
state = {
    "set": set(words), "frozen": frozenset((word, n) for n, word in enumerate(words)),
    "nested": {frozenset(words[n:n + 3]) for n in range(20)}, 1: {None, 2.5, "x", b"x", colour.RED},
    "mixed": [datetime.date(2024, 1, 1), decimal.Decimal("1.10"), uuid.UUID(int=1), 1 << 80],
}
print(Codec().encode(state).hex())
print(Builder(Codec(), 1 << 20).root(state, Out()).hex())
print(list(state["set"])[:5])
"""


def test_other_interpreters_with_other_hashes_make_the_same_bytes() -> None:
    outputs = []
    for number in ("0", "1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_INTERPRETER],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            check=True,
            text=True,
        )
        outputs.append(done.stdout.splitlines())
    encodings, roots, orders = zip(*outputs, strict=True)
    assert len(set(encodings)) == 1
    assert len(set(roots)) == 1
    assert len(set(orders)) > 1, "the sets were in the same order: nothing was tested"


# Two paths, one format


class _Reached(Exception):
    """The slow path was asked for."""


def _on_the_fast_path(value: object) -> bytes | None:
    with mock.patch.object(slow, "encode", side_effect=_Reached):
        try:
            return CODEC.encode(value)
        except _Reached:
            return None


@examples(150)
@given(storable)
def test_the_slow_path_makes_the_bytes_of_the_fast_one(value: object) -> None:
    fast = _on_the_fast_path(value)
    if fast is not None:
        assert slow.encode(value, CODEC._parts, "state").hex() == fast.hex()


LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 257, 65535, 65536]


@pytest.mark.parametrize("length", LENGTHS)
def test_both_paths_write_every_length_alike(length: int) -> None:
    for value in (
        "x" * length,
        b"x" * length,
        [None] * length,
        dict.fromkeys(map(str, range(length))),
        models.Record("x" * length),
        int.from_bytes(b"\x01" * (length + 9)),
    ):
        fast = _on_the_fast_path(value)
        assert fast is not None
        assert slow.encode(value, CODEC._parts, "state") == fast
        assert CODEC.decode(fast) == value


def test_both_paths_write_every_integer_alike() -> None:
    for number in BORDERS:
        fast = _on_the_fast_path(number)
        assert slow.encode(number, CODEC._parts, "state") == fast


@examples(60)
@given(storable)
def test_both_paths_read_alike(value: object) -> None:
    data = CODEC.encode(value)
    found = slow.decode(data, CODEC._builder(()))
    assert portrait(found) == portrait(CODEC.decode(data))


@examples(40)
@given(storable, storable)
def test_sketches_are_equal_only_for_equal_values(one: object, other: object) -> None:
    same = CODEC.sketch(one) == CODEC.sketch(other)
    assert not same or CODEC.encode(one) == CODEC.encode(other)
    assert CODEC.sketch(copy.deepcopy(one)) == CODEC.sketch(one)


# Numbers


@pytest.mark.parametrize(
    "bits",
    [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FF8DEADBEEF0000, (1 << 64) - 1],
    ids=hex,
)
def test_nan_has_one_encoding(bits: int) -> None:
    nan = struct.unpack(">d", bits.to_bytes(8))[0]
    assert nan != nan
    assert CODEC.encode(nan) == bytes.fromhex("cb7ff8000000000000")
    for around in ([nan], (nan,), {"a": {"b": [nan]}}, {nan}, {nan: 1}, models.Record((nan,))):
        found = CODEC.encode(around)
        assert found.count(bytes.fromhex("cb7ff8000000000000")) == 1
        assert found.count(b"\xcb") == 1


@examples(100)
@given(floats)
def test_every_float_has_its_own_eight_bytes(number: float) -> None:
    expected = b"\xcb\x7f\xf8" + bytes(6) if number != number else struct.pack(">Bd", 0xCB, number)
    assert CODEC.encode(number) == expected
    assert CODEC.encode((number,)) == bytes.fromhex("c70a0291") + expected


def test_bytes_that_look_like_a_special_float_change_nothing() -> None:
    looks_alike = [b"\xcb\x7f\xf0", "Ë\x7fð", {"a": (b"\xcb\xff\xff",)}]
    assert portrait(CODEC.decode(CODEC.encode(looks_alike))) == portrait(looks_alike)


@pytest.mark.parametrize(
    "family",
    [
        [1, True, 1.0, "1", b"1", decimal.Decimal(1), models.Level.LOW],
        [0, False, 0.0, -0.0, None, "", b"", [], (), {}, set(), frozenset()],
        [[1], (1,), {1}, frozenset({1}), {1: None}],
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2, "b": 1}],
        [{1: "x"}, {True: "x"}, {1.0: "x"}, {"1": "x"}],
        [{1}, {True}, {1.0}],
        [decimal.Decimal("1"), decimal.Decimal("1.0"), decimal.Decimal("1.00")],
        [models.Record(), models.Slotted(None), {"content": None, "note": None}],
        [models.Mood.CALM, "calm"],
        [datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1), "2024-01-01"],  # noqa: DTZ001 # a naive one is meant
        [datetime.time(1), datetime.time(1, fold=1), datetime.time(1, tzinfo=datetime.UTC)],
        [uuid.UUID(int=5), (5).to_bytes(16), 5],
    ],
)
def test_what_python_may_call_equal_is_told_apart(family: list[object]) -> None:
    encodings = [CODEC.encode(value) for value in family]
    assert len(set(encodings)) == len(family)
    sketches = [CODEC.sketch(value) for value in family]
    assert len(set(sketches)) == len(family)


@examples(40)
@given(st.permutations(list("abcdefgh")), st.permutations([1, "a", (2,), None, b"x"]))
def test_the_order_of_keys_is_kept(names: list[str], others: list[object]) -> None:
    for keys in (names, others):
        found = CODEC.decode(CODEC.encode(dict.fromkeys(keys)))
        assert list(found) == list(keys)


@examples(300)
@given(storable, st.integers(0, 300))
def test_a_limit_decides_whether_there_are_bytes_and_not_which(value: object, limit: int) -> None:
    data = CODEC.encode(value)
    wanted = data if len(data) <= limit else None
    assert CODEC.encode_upto(limit, value, "state") == wanted
    assert slow.encode_upto(limit, value, CODEC._parts, "state") == wanted
    assert CODEC.is_sketch_longer(limit, value) == (len(CODEC.sketch(value)) > limit)


def test_members_that_become_one_do_not_count_twice() -> None:
    value = [{float("nan") for _ in range(20)}, {"\ud800"}]
    data = CODEC.encode(value)
    assert len(data) < 20 * 9
    assert CODEC.encode_upto(len(data), value, "state") == data


@pytest.mark.parametrize(
    "wrap", [lambda v: [v], lambda v: (v,), lambda v: {"k": v}], ids=["list", "tuple", "dict"]
)
def test_what_is_deep_is_not_written_to_its_end_to_know_that_it_is_long(wrap: Any) -> None:
    value: Any = "end"
    for _ in range(5_000):
        value = wrap(value)
    seen = 0

    def counted(*given: Any) -> Any:
        nonlocal seen
        seen += 1
        return begin(*given)

    begin = slow._begin
    with mock.patch.object(slow, "_begin", counted):
        assert CODEC.encode_upto(1_000, value, "state") is None
    assert seen <= 1_002
    data = CODEC.encode(value)
    assert CODEC.encode(CODEC.decode(data)) == data


def test_a_deep_value_is_put_together_once_and_not_on_every_level() -> None:
    """Copied from level to level, 4,000 levels of a kilobyte would be 8 GB."""
    value: Any = "end"
    for at in range(4_000):
        value = (value, "x" * 1_000) if at % 2 else {"inner": value, 1: "x" * 1_000}
    data = slow.encode(value, CODEC._parts, "state")
    assert len(data) > 4_000_000
    assert slow.encode(slow.decode(data, CODEC._builder(())), CODEC._parts, "state") == data
