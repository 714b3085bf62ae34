"""A text is replaced wherever it stands in a value, and nothing else changes."""

import enum
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from hardsave.errors import Corrupt
from hardsave.objects import wire
from hardsave.objects.builder import Builder
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.reader import Reader
from hardsave.objects.rewriting import Rewriting
from hardsave.objects.types import Types
from tests.unit.objects.strategies import examples, storable

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CODEC = Codec()


@dataclass
class Card:
    holder: str
    numbers: tuple[str, ...]


class Colour(enum.Enum):
    RED = "sesame-red"
    sesame = "green"


def nothing(wanted: Collection[Hash]) -> dict[Hash, bytes]:
    raise AssertionError("a value alone refers to nothing")


def replaced(data: bytes, old: str = "sesame") -> bytes:
    return Rewriting(old, "[purged]", nothing).value(data)


def swapped(value: Any, old: str = "sesame") -> Any:
    return CODEC.decode(replaced(CODEC.encode(value), old))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("open sesame, sesame", "open [purged], [purged]"),
        (b"open sesame", b"open [purged]"),
        (["sesame", ("sesame", 1)], ["[purged]", ("[purged]", 1)]),
        ({"sesame": {"a sesame"}}, {"[purged]": {"a [purged]"}}),
        ({1: "sesame", None: 2}, {1: "[purged]", None: 2}),
        ("\ud800 sesame", "\ud800 [purged]"),
        ("x" * 300 + "sesame", "x" * 300 + "[purged]"),
        ({"at": NOON, "n": 2**70, "s": "sesame"}, {"at": NOON, "n": 2**70, "s": "[purged]"}),
    ],
)
def test_it_is_replaced_wherever_it_stands(value: Any, expected: Any) -> None:
    assert swapped(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"sesame": 1, "[purged]": 2}, {"[purged][purged]": 1, "[purged]": 2}),
        ({"[purged]": 2, "sesame": 1}, {"[purged]": 2, "[purged][purged]": 1}),
        ({b"sesame": 1, b"[purged]": 2}, {b"[purged][purged]": 1, b"[purged]": 2}),
        (
            {(1, "sesame"): 1, (1, "[purged]"): 2, (1, "[purged][purged]"): 3},
            {(1, "[purged]" * 3): 1, (1, "[purged]"): 2, (1, "[purged]" * 2): 3},
        ),
        (
            {frozenset({"sesame"}): 1, frozenset({"[purged]"}): 2},
            {frozenset({"[purged]" * 2}): 1, frozenset({"[purged]"}): 2},
        ),
        ({"sesame", "[purged]", 3}, {"[purged]", 3}),
        ({"zebra", "sesame", "]"}, {"zebra", "[purged]", "]"}),
    ],
)
def test_keys_that_become_equal_stay_apart_and_members_become_one(
    value: Any, expected: Any
) -> None:
    assert replaced(CODEC.encode(value)) == CODEC.encode(expected)  # in the same order, too


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (date(2026, 1, 2), "2026-01", "[purged]-02"),
        (NOON, "12:00", "2026-01-02T[purged]:00+00:00"),
        (time(12, 30), "12:30", "[purged]:00"),
        (Decimal("4111111111111111"), "41111111", "[purged]11111111"),
    ],
)
def test_what_is_stored_as_a_text_becomes_one(value: Any, text: str, expected: str) -> None:
    assert swapped({"at": [value], value: "key"}, text) == {"at": [expected], expected: "key"}
    assert swapped([value, "sesame"]) == [value, "[purged]"]


def test_a_zone_that_is_not_known_here_is_kept_unless_it_is_the_text() -> None:
    parts = ["2024-07-01T12:00:00+05:00", 0, "Atlantis/Capital"]
    moment = wire.Kept(wire.DATETIME, parts)
    assert replaced(CODEC.encode([moment, "sesame"])) == CODEC.encode([moment, "[purged]"])
    without = wire.Kept(wire.DATETIME, [*parts[:2], None])
    assert replaced(CODEC.encode([moment]), "Atlantis") == CODEC.encode([without])


def test_it_is_replaced_in_fields_of_classes_that_nobody_registered() -> None:
    colours = [Colour.RED, Colour.sesame]
    data = CODEC.encode({"card": Card("sesame", ("1", "sesame")), "colours": colours})
    found = replaced(data)
    assert b"sesame" not in found
    known = Types()
    known.register(Card)
    assert Codec(known).decode(found) == {
        "card": Card("[purged]", ("1", "[purged]")),
        "colours": ["[purged]-red", "green"],
    }


@pytest.mark.parametrize("size", [1, 300])
def test_a_tree_becomes_the_one_that_a_save_would_have_made(size: int) -> None:
    """Whatever is split in it, and though nobody knows the classes."""
    rest = tuple(f"number {n:04d}" for n in range(size))

    def state(word: str) -> Any:
        return {
            "cards": [Card(word, rest), Card("somebody", rest)],
            "tuple": (word, *rest),
            "set": {word, *rest},
            "map": {word: 1, **dict.fromkeys(rest, word)},
        }

    builder, out = Builder(CODEC, 1 << 20), Out()
    before, wanted = builder.root(state("sesame"), out), builder.root(state("[purged]"), out)
    found, new = Rewriting("sesame", "[purged]", lambda _: out).root(before)
    assert found == wanted
    assert new.keys() <= out.keys()
    assert Reader(CODEC, lambda _: {**out, **new}).load(found)["tuple"][0] == "[purged]"


def test_it_is_replaced_in_values_nested_deeper_than_python_recurses() -> None:
    value: Any = "sesame"
    for _ in range(3_000):
        value = (value,)
    found = replaced(CODEC.encode(value))
    assert b"sesame" not in found
    assert CODEC.encode(CODEC.decode(found)) == found


@given(storable)
def test_what_does_not_hold_it_stays_as_it_is(value: Any) -> None:
    data = CODEC.encode([value, "a word of its own"])
    assert replaced(data, "\x00never there\x00") == data
    assert replaced(data, "a word of its own") == CODEC.encode([value, "[purged]"])


@examples(60)
@given(storable)
def test_what_is_read_to_be_rewritten_is_written_again_unchanged(value: Any) -> None:
    """Next to a text that is replaced, everything else goes through reading and writing."""
    data = replaced(CODEC.encode({"sesame": value}))
    assert data == CODEC.encode({"[purged]": value})


def test_an_encoding_that_was_cut_is_noticed() -> None:
    data = CODEC.encode(["sesame", "sesame open"])
    with pytest.raises(Corrupt):
        replaced(data[:-3])
