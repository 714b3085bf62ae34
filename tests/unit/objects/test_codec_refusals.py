"""What has no stored form is refused, and the error says where it lies."""

import dataclasses
import datetime
import enum
import io
import re
from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest

from hardsave.errors import HardsaveError, Misuse, Unstorable
from hardsave.objects import slow, wire
from hardsave.objects.codec import Codec
from tests.unit.objects import models

CODEC = Codec(models.registry())


class Thing:
    """Nothing that could be stored."""

    def __repr__(self) -> str:
        return "<thing>"


BAD = Thing()


@dataclasses.dataclass
class Message:
    text: str
    image: Any = None


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (BAD, "state"),
        ([1, BAD], "state[1]"),
        ({"messages": [0, 1, 2, {"image": BAD}]}, "state.messages[3].image"),
        ({"messages": [0, 1, 2, Message("a", BAD)]}, "state.messages[3].image"),
        ({"messages": (0, Message("a", [BAD]))}, "state.messages[1].image[0]"),
        ({"note": models.Note(content={"a": BAD})}, "state.note.content.a"),
        ({"note": models.Open.model_validate({"more": BAD})}, "state.note.more"),
        ({"packet": models.Packet((BAD,))}, "state.packet.content[0]"),
        ({"odd name": BAD}, "state['odd name']"),
        ({"": BAD}, "state['']"),
        ({"a.b": {"class": BAD}}, "state['a.b'].class"),
        ({"ünï": BAD}, "state.ünï"),
        ({7: BAD}, "state[7]"),
        ({(1, "a"): {"x": BAD}}, "state[(1, 'a')].x"),
        ({None: [BAD]}, "state[None][0]"),
        ({b"k": BAD}, "state[b'k']"),
        ({"a": {BAD}}, "state.a[0]"),
        ({"a": frozenset({(1, BAD)})}, "state.a[0][1]"),
        ({BAD: 1}, "state[<thing>] (the key)"),
        ({"a": {(1, BAD): 1}}, "state.a[(1, <thing>)] (the key)[1]"),
        ({"a": "\ud800", "b": BAD}, "state.b"),
        ([float("nan"), BAD], "state[1]"),
        (models.Pair(1, BAD), "state[1]"),
        (models.Row([models.Table(a=BAD)]), "state[0].a"),
    ],
)
def test_the_path_leads_to_the_value(value: object, path: str) -> None:
    with pytest.raises(Unstorable) as caught:
        CODEC.encode(value)
    assert caught.value.path == path
    assert caught.value.reason.startswith(f"{__name__}.Thing has no stored form")
    assert str(caught.value) == f"{path}: {caught.value.reason}"


def test_the_path_begins_where_the_caller_says() -> None:
    with pytest.raises(Unstorable, match=r"^state\.messages\[3\]\.image: "):
        CODEC.encode({"image": BAD}, "state.messages[3]")


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Thing,
        len,
        lambda: None,
        io.BytesIO(),
        (n for n in [1]),
        iter([]),
        range(3),
        {}.keys(),
        1j,
        Ellipsis,
        re.compile("a"),
        ValueError("a"),
        models.Point,
        models.Colour,
        ormsgpack.Ext(5, b"x"),  # the encoder would write these two as they stand
        ormsgpack.Ext(wire.REF, b""),
        ormsgpack.Fragment(b"\xcc\x01"),
    ],
)
def test_what_is_not_data_is_refused(value: object) -> None:
    for around in (value, [value], {"a": (value,)}, {"a": [0, {"b": value}]}, (0, [value])):
        with pytest.raises(Unstorable, match="has no stored form; pass plain data instead"):
            CODEC.encode(around)


def test_a_path_leads_through_a_key_that_python_does_not_write_out() -> None:
    with pytest.raises(Unstorable) as caught:
        CODEC.encode({"a": {10**5000: [BAD]}})
    assert caught.value.path == "state.a[<int>][0]"


class Nowhere(datetime.tzinfo):
    """A time zone that cannot tell its offset."""

    def utcoffset(self, moment: datetime.datetime | None, /) -> datetime.timedelta | None:
        raise LookupError("no map")

    dst = tzname = utcoffset  # type: ignore[assignment] # nobody gets an answer


def test_what_a_class_of_the_callers_raises_is_told_with_the_path() -> None:
    moment = datetime.datetime(2024, 7, 1, tzinfo=Nowhere())
    with pytest.raises(Unstorable, match=r"^state\.at\[1\]: it raised LookupError") as caught:
        CODEC.encode({"at": [1, moment]})
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_refusal_is_a_misuse_of_ours() -> None:
    with pytest.raises(Misuse):
        CODEC.encode(BAD)
    with pytest.raises(HardsaveError):
        CODEC.sketch([BAD])


def test_the_path_to_an_enum_member_leads_to_the_member() -> None:
    class Odd(enum.Enum):
        THING = BAD

    with pytest.raises(Unstorable) as caught:
        CODEC.encode({"a": Odd.THING})
    assert caught.value.path == "state.a"


# Depth

Wrap = Callable[[Any], Any]
WRAPS: dict[str, Wrap] = {
    "list": lambda inner: [inner],
    "dict": lambda inner: {"a": inner},
    "odd dict": lambda inner: {1: inner},
    "tuple": lambda inner: (inner,),
    "frozenset": lambda inner: frozenset({inner}),
    "slotted": models.Slotted,
}
UNWRAPS: dict[str, Wrap] = {
    "list": lambda outer: outer[0],
    "dict": lambda outer: outer["a"],
    "odd dict": lambda outer: outer[1],
    "tuple": lambda outer: outer[0],
    "frozenset": lambda outer: next(iter(outer)),
    "slotted": lambda outer: outer.content,
}


def nested(kind: str, depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = WRAPS[kind](value)
    return value


@pytest.mark.parametrize("kind", WRAPS)
@pytest.mark.parametrize("depth", [100, 1000])
def test_deep_nesting_works(kind: str, depth: int) -> None:
    found = CODEC.decode(CODEC.encode(nested(kind, depth)))
    for _ in range(depth):
        assert type(found) is type(nested(kind, 1))
        found = UNWRAPS[kind](found)
    assert found == "bottom"


def test_kinds_may_alternate_in_deep_nesting() -> None:
    value: Any = "bottom"
    for _ in range(300):
        value = [{"a": ({1: value},)}]
    found = CODEC.decode(CODEC.encode(value))
    for _ in range(300):
        found = found[0]["a"][0][1]
    assert found == "bottom"


@pytest.mark.parametrize("kind", WRAPS)
def test_nesting_without_measure_is_refused(kind: str) -> None:
    with pytest.raises(Unstorable, match="nested more than 10000 deep, or contains itself") as no:
        CODEC.encode(nested(kind, 12_000))
    assert no.value.path.endswith("…")
    assert len(no.value.path) < 200


@pytest.mark.parametrize(
    "kind",
    [
        each if each in ("list", "slotted") else pytest.param(each, marks=pytest.mark.torture)
        for each in WRAPS
    ],
)
def test_what_is_just_not_too_deep_can_be_read_again(kind: str) -> None:
    deepest = slow.MAX_DEPTH // (2 if kind == "slotted" else 1) - 1
    data = CODEC.encode(nested(kind, deepest))
    assert CODEC.decode(data)
    with pytest.raises(Unstorable, match="nested more than 10000 deep"):
        CODEC.encode(nested(kind, deepest + 2))


def test_what_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    round_trip: dict[str, Any] = {"a": [1]}
    round_trip["a"].append(round_trip)
    odd: dict[Any, Any] = {}
    odd[1] = odd
    for value in (loop, round_trip, odd, [loop, loop, loop], {"m": [0, loop]}):
        with pytest.raises(Unstorable, match="contains itself"):
            CODEC.encode(value)


def test_what_contains_itself_through_other_kinds_is_refused() -> None:
    record = models.Record()
    record.content = (record,)
    with pytest.raises(Unstorable, match="contains itself"):
        CODEC.encode(record)
