import datetime
import enum
import json
import math
import os
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Misuse
from hardsave.objects.codec import Codec
from hardsave.objects.types import Types
from hardsave.values import text
from hardsave.values.spelling import DEEPEST, TAGS, document, from_json, is_document, to_json

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
TWICE = datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Text(str):
    pass


@dataclass(frozen=True)
class Point:
    x: int
    y: Any = None


TYPES = Types()
TYPES.register(Colour, "colour")
TYPES.register(Point, "point")


def same(one: Any, other: Any) -> bool:
    """Equal also to the codec, which tells 1 from True, a list from a tuple, and knows NaN."""
    return Codec(TYPES).encode(one) == Codec(TYPES).encode(other)


def there_and_back(value: Any) -> Any:
    written = json.dumps(to_json(value, TYPES), allow_nan=False)
    written.encode("ascii")
    return from_json(json.loads(written), TYPES)


@pytest.mark.parametrize(
    ("value", "spelt"),
    [
        (math.inf, {"$float": "inf"}),
        (-math.inf, {"$float": "-inf"}),
        (math.nan, {"$float": "nan"}),
        (1 << 53, 1 << 53),
        (1 << 70, {"$int": "1180591620717411303424"}),
        ([-(10**5_000)], [{"$int": hex(-(10**5_000))}]),
        (b"\x00\xff", {"$bytes": "AP8="}),
        (bytearray(b"\xff"), {"$bytes": "/w=="}),
        ({1: "a", "1": "b"}, {"$map": [[1, "a"], ["1", "b"]]}),
        ({None: 1, (1, 2): 2}, {"$map": [[None, 1], [{"$tuple": [1, 2]}, 2]]}),
        ({"\ud800": 1}, {"$map": [[{"$text": "\\ud800"}, 1]]}),
        ("a\\b \ud800 é", {"$text": "a\\\\b \\ud800 é"}),
        ("\ud83d\ude00", {"$text": "\\ud83d\\ude00"}),
        (os.fsdecode(b"caf\xe9.txt"), {"$text": "caf\\udce9.txt"}),
        ("\\udce9", "\\udce9"),
        ((1, [2]), {"$tuple": [1, [2]]}),
        ({"b", "a"}, {"$set": ["a", "b"]}),
        (frozenset({1}), {"$frozenset": [1]}),
        (NOON, {"$datetime": "2026-01-02T12:00:00+00:00"}),
        (TWICE, {"$datetime": ["2026-10-25T02:30:00+01:00", 1, "Europe/Berlin"]}),
        (datetime.date(2026, 1, 2), {"$date": "2026-01-02"}),
        (datetime.time(1, 2), {"$time": "01:02:00"}),
        (datetime.timedelta(1, 2, 3), {"$timedelta": [1, 2, 3]}),
        (Decimal("1.50"), {"$decimal": "1.50"}),
        (uuid.UUID(int=7), {"$uuid": "00000000-0000-0000-0000-000000000007"}),
        (Colour.RED, {"$enum": ["colour", "RED", 1]}),
        (Point(1, (2,)), {"$object": ["point", {"x": 1, "y": {"$tuple": [2]}}]}),
        ({"$bytes": "AP8="}, {"$map": [["$bytes", "AP8="]]}),
        ({"$map": []}, {"$map": [["$map", []]]}),
        ({"$ref": "#/defs"}, {"$ref": "#/defs"}),
        ({"$bytes": 1, "more": 2}, {"$bytes": 1, "more": 2}),
    ],
)
def test_what_json_lacks_has_a_spelling_that_is_read_back(value: Any, spelt: Any) -> None:
    assert to_json({"at": [value]}, TYPES) == {"at": [spelt]}
    assert same(there_and_back(value), value if type(value) is not bytearray else bytes(value))


atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 80), 1 << 80)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.sampled_from([*TAGS, Colour.RED, NOON, TWICE])
    | st.integers(4_000, 5_000).map(lambda digits: 10**digits)
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
)
keys = atoms | st.tuples(atoms) | st.builds(Point, atoms)
states = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.dictionaries(st.sampled_from(sorted(TAGS)), inner, max_size=1)
        | st.sets(keys)
        | st.frozensets(keys)
        | st.builds(Point, inner, inner)
    ),
)


@given(states)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(there_and_back(value), value)


@given(states)
def test_an_answer_keeps_the_values_that_were_spelt_for_it(value: Any) -> None:
    spelt = to_json(value, TYPES)
    written = text.dumps({"paths": ("a", "caf\udce9"), "value": spelt})
    assert json.loads(written)["value"] == spelt
    read = text.loads(written, TYPES)
    assert read["paths"] == ["a", "caf\udce9"]
    assert same(read["value"], value)


@given(st.recursive(atoms, lambda inner: st.lists(inner) | st.dictionaries(keys, inner)))
def test_two_values_are_never_spelt_alike(value: Any) -> None:
    spelt = to_json(value, TYPES)
    assert same(from_json(to_json(spelt, TYPES), TYPES), spelt)  # the spelling is a value, too


@pytest.mark.parametrize(
    "wrap",
    [lambda x: [x], lambda x: {1: x}, lambda x: (x,), lambda x: Point(1, x)],
    ids=["list", "map", "tuple", "object"],
)
def test_no_depth_of_a_value_is_too_much_for_a_reader_of_json(wrap: Any) -> None:
    value: Any = "deep"
    for _ in range(2_000):
        value = wrap(value)
    written = text.dumps({"value": [to_json(value, TYPES)]})
    assert same(text.loads(written, TYPES), {"value": [value]})
    assert written.count("[") + written.count("{") < 4 * DEEPEST


def test_a_class_that_is_not_registered_comes_back_as_its_fields() -> None:
    assert from_json(to_json([Point(1), Colour.RED])) == [{"x": 1, "y": None}, 1]


def test_a_value_that_no_state_can_hold_is_refused() -> None:
    with pytest.raises(Misuse, match=r"builtins\.object has no stored form"):
        to_json([object()])


@pytest.mark.parametrize(
    "data",
    [
        {"$bytes": "?"},
        {"$bytes": 1},
        {"$tuple": "abc"},
        {"$set": {"a": 1}},
        {"$map": {"ab": 1}},
        {"$map": ["ab"]},
        {"$map": [["ab", 1]]},
        {"$map": [[1, 2, 3]]},
        {"$enum": "abc"},
        {"$enum": ["colour", "GREEN", 1]},
        {"$enum": ["colour", 1, 1]},
        {"$object": "ab"},
        {"$object": [5, 5]},
        {"$object": ["point", [1, 2]]},
        {"$int": "1"},
        {"$int": "0x400000000000000000"},
        {1: 2},
        object(),
        (1, 2),
        {"$int": "x"},
        {"$int": 1},
        {"$float": "1.5"},
        {"$text": "plain"},
        {"$text": "\\"},
        {"$text": None},
        {"$map": [[1]]},
        {"$map": [[1, 2], [1, 3]]},
        {"$map": 7},
        {"$set": [1, 1]},
        {"$set": [[]]},
        {"$datetime": "yesterday"},
        {"$datetime": ["2026-01-02", 0]},
        {"$date": 1},
        {"$uuid": "x"},
        {"$decimal": "x"},
        {"$timedelta": [1e300]},
        {"$object": []},
        {"$object": [1, 2, 3]},
        {"$enum": ["colour", "BLUE", 9]},
        {"$stored": "wQ=="},
    ],
)
def test_what_was_never_spelt_so_is_refused(data: Any) -> None:
    with pytest.raises(Misuse, match="no value that Hardsave has spelt"):
        from_json([data], TYPES)


@pytest.mark.parametrize("written", ["{", "[" * 10_000, "\x00", b"\xff"])
def test_what_is_no_json_is_refused(written: str | bytes) -> None:
    with pytest.raises(Misuse, match="this is no JSON"):
        text.loads(written)


def test_a_list_of_our_own_may_be_a_tuple() -> None:
    assert document({"paths": ("a", ("b",))}) == {"paths": ["a", ["b"]]}


@given(states)
def test_an_answer_is_written_as_its_document_is(value: Any) -> None:
    for answer in (value, {"items": [value, to_json(value, TYPES)], "next": (1, "é", None)}):
        assert text.dumps(answer) == json.dumps(document(answer), allow_nan=False)


@pytest.mark.parametrize(
    "plain", [None, True, 1, -(1 << 53), 1.5, "é😀", [], {}, ({"é": [1, ()]},)]
)
def test_what_json_has_is_a_document_as_it_is(plain: Any) -> None:
    assert is_document(plain)
    assert is_document({"items": [plain, {"deeper": plain}]})


@pytest.mark.parametrize(
    "odd",
    [
        *((1 << 53) + 1, -(1 << 53) - 1, math.nan, -math.inf),
        *("caf\udce9", {"caf\udce9": 1}, {1: 1}, {None: 1}),
        *(b"", {1}, NOON, Colour.RED, Level.LOW, Point(1), Text("a")),
    ],
)
def test_what_has_to_be_spelt_is_no_document_yet(odd: Any) -> None:
    assert not is_document(odd)
    assert not is_document({"items": [1, "a", None, ({"odd": odd},)]})


def test_an_answer_that_is_nested_too_deeply_is_no_document() -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    assert not is_document(deep)
    assert "$stored" in text.dumps(deep)


def test_people_read_letters_and_not_escapes() -> None:
    assert text.readable({"é": (1, b"x")}) == '{"é": {"$tuple": [1, {"$bytes": "eA=="}]}}'
    text.readable("\ud800").encode()
