"""A text is replaced wherever it stands in an encoding, and nothing else changes."""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Corrupt
from hardsave.objects.codec import Codec
from hardsave.objects.rewriting import replaced
from tests.unit.objects.strategies import storable


@dataclass
class Card:
    holder: str
    numbers: tuple[str, ...]


class Colour(enum.Enum):
    RED = "sesame-red"


def swapped(value: Any, old: str = "sesame", new: str = "[purged]") -> Any:
    codec = Codec()
    return codec.decode(replaced(codec.encode(value), old.encode(), new.encode()))


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
        ({"at": datetime(2026, 1, 2, tzinfo=UTC), "n": 2**70, "s": "sesame"},) * 2,
    ],
)
def test_it_is_replaced_wherever_it_stands(value: Any, expected: Any) -> None:
    if value is expected:
        expected = {**value, "s": "[purged]"}
    assert swapped(value) == expected


def test_it_is_replaced_in_fields_of_classes_that_nobody_registered() -> None:
    codec = Codec()
    data = codec.encode({"card": Card("sesame", ("1", "sesame")), "colour": Colour.RED})
    found = replaced(data, b"sesame", b"...")
    assert b"sesame" not in found
    assert codec.decode(found)["card"]["holder"] == "..."


def test_it_is_replaced_in_values_nested_deeper_than_python_recurses() -> None:
    value: Any = "sesame"
    for _ in range(3_000):
        value = (value,)
    codec = Codec()
    found = replaced(codec.encode(value), b"sesame", b"gone")
    assert b"sesame" not in found
    assert codec.encode(codec.decode(found)) == found


@given(storable)
def test_what_does_not_hold_it_stays_as_it_is(value: Any) -> None:
    data = Codec().encode(value)
    assert replaced(data, b"\x00never there\x00", b"x") == data


@given(storable, st.text(min_size=1, max_size=5))
def test_a_text_replaced_by_itself_changes_nothing(value: Any, text: str) -> None:
    data = Codec().encode(value)
    same = text.encode("utf-8", "surrogatepass")
    assert replaced(data, same, same) == data


def test_an_encoding_that_was_cut_is_noticed() -> None:
    data = Codec().encode(["sesame", "sesame open"])
    with pytest.raises(Corrupt):
        replaced(data[:-3], b"sesame", b"x")
