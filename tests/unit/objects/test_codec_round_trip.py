"""What is encoded comes back: the value and its type."""

import collections
import dataclasses
import datetime
import decimal
import enum
import subprocess
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

import pydantic
import pydantic.dataclasses
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Corrupt, Misuse
from hardsave.objects import codec, sound, wire
from hardsave.objects.codec import Codec
from hardsave.objects.types import Types
from tests.unit.objects import models
from tests.unit.objects.strategies import ZONES, examples, portrait, scalars, storable
from tests.unit.tracing import at_line, interrupt

CODEC = Codec(models.registry())
PLAIN = Codec(Types())


def back(value: object, codec: Codec = CODEC) -> Any:
    return codec.decode(codec.encode(value))


@examples(150)
@given(storable)
def test_every_storable_value_comes_back_as_itself(value: object) -> None:
    assert portrait(back(value)) == portrait(value)


@examples(200)
@given(scalars)
def test_every_scalar_comes_back_as_itself(value: object) -> None:
    assert portrait(back(value)) == portrait(value)


@examples(60)
@given(storable)
def test_what_was_read_verbatim_is_written_again_unchanged(value: object) -> None:
    data = CODEC.encode(value)
    verbatim = Codec(Types(), verbatim=True)
    assert verbatim.encode(verbatim.decode(data)) == data


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        10**400,
        -0.0,
        float("nan"),
        "lone \ud800 surrogate",
        b"\x00\xff",
        [1, [2, [3]]],
        (1, (), [2]),
        {"b": 1, "a": 2},
        {1: "int", "1": "str", (1, "a"): "tuple", None: "none", b"1": "bytes"},
        {1, "1", b"1", (1,), frozenset({1})},
        frozenset(),
        datetime.date(1, 1, 1),
        datetime.time(23, 59, 59, 999999, fold=1),
        datetime.timedelta(days=-1, microseconds=1),
        uuid.UUID(int=2**128 - 1),
        decimal.Decimal("1.10"),
        models.Level.HIGH,
        models.Mood.WILD,
        models.Right.READ | models.Right.RUN,
        models.Right(0),
        models.Point(1, 2),
        {models.Point(1, 2): {models.Point(3, 4)}},
        {models.Mood.CALM: 1, models.Level.LOW: 2},
        models.Counted("abc").with_length(7),
        models.Shape(models.Point(), [models.Point(1)], {"a": (models.Point(2),)}),
        models.Note(Title="t", content=(1,)),
        models.Open.model_validate({"content": 1, "unknown": {2}}),
        models.Packet([1], 2),
    ],
)
def test_a_value_of_each_kind_comes_back_as_itself(value: object) -> None:
    assert portrait(back(value)) == portrait(value)


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize("fold", [0, 1])
def test_a_moment_that_happens_twice_keeps_its_zone_and_its_fold(
    zone: zoneinfo.ZoneInfo, fold: int
) -> None:
    moment = datetime.datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=zone)
    found = back(moment)
    assert found.tzinfo is zone
    assert found.fold == fold
    assert found.utcoffset() == moment.utcoffset()


def test_a_zone_that_is_not_known_here_leaves_the_offset() -> None:
    parts = ["2024-07-01T12:00:00+05:00", 0, "Atlantis/Capital"]
    found = CODEC.decode(wire.ext(wire.DATETIME, CODEC.encode(parts)))
    assert found.utcoffset() == datetime.timedelta(hours=5)


@pytest.mark.skipif(not ZONES, reason="no time zone database here")
def test_a_time_of_day_keeps_its_zone() -> None:
    time = datetime.time(12, tzinfo=ZONES[0])
    assert back(time).tzinfo == time.tzinfo


@pytest.mark.parametrize("microseconds", [-1, 5, -999_999, 3_600_000_003])
def test_an_offset_of_less_than_a_second_is_kept(microseconds: int) -> None:
    zone = datetime.timezone(datetime.timedelta(microseconds=microseconds))
    for moment in (
        datetime.datetime(2024, 7, 1, 12, tzinfo=zone),
        datetime.time(12, 0, 0, 7, tzinfo=zone),
    ):
        assert portrait(back(moment)) == portrait(moment)
        assert back(moment).utcoffset() == moment.utcoffset()


def test_a_key_may_have_more_digits_than_python_writes_out() -> None:
    huge = 10**5000
    assert back({huge: [huge], (huge, "a"): {huge}}) == {huge: [huge], (huge, "a"): {huge}}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (models.Pair(1, [2]), (1, [2])),
        (models.Text("a"), "a"),
        (models.Number(3), 3),
        (models.Number(2**70), 2**70),
        (models.Ratio(1.5), 1.5),
        (models.Blob(b"blob"), b"blob"),
        (models.Table(b=1, a=2), {"b": 1, "a": 2}),
        (models.Row([1, 2]), [1, 2]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.defaultdict(list, {1: [2]}), {1: [2]}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        ({models.Text("a"): models.Number(1)}, {"a": 1}),
        (bytearray(b"a"), b"a"),
        (memoryview(b"abcd")[::2], b"ac"),
    ],
)
def test_a_subclass_comes_back_as_the_plain_type(value: object, plain: object) -> None:
    assert portrait(back(value)) == portrait(plain)
    assert CODEC.encode(value) == CODEC.encode(plain)


# Classes


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (models.Record(1, (2,)), {"content": 1, "note": (2,)}),
        (models.Counted(1).with_length(5), {"content": 1, "length": 5}),
        (models.Note(content=1, Title="t"), {"content": 1, "title": "t"}),
        (models.Packet(1, 2), {"content": 1, "size": 2}),
        (models.Record(models.Slotted(1)), {"content": {"content": 1}, "note": None}),
        (models.Colour.BLUE, ("b", 3)),
        (models.Level.LOW, 1),
        (models.Mood.WILD, "wild"),
        (models.Right.READ | models.Right.WRITE, 3),
    ],
)
def test_a_class_that_nobody_registered_comes_back_as_plain_data(
    value: object, plain: object
) -> None:
    assert portrait(PLAIN.decode(CODEC.encode(value))) == portrait(plain)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({models.Point(1, 2)}, lambda fields: {fields}),
        (frozenset({(0, models.Point(1, 2))}), lambda fields: frozenset({(0, fields)})),
        ({models.Point(1, 2): 3}, lambda fields: {fields: 3}),
        ({(models.Point(1, 2),): 3}, lambda fields: {(fields,): 3}),
        ([{models.Point(1, 2)}], lambda fields: [{fields}]),
    ],
)
def test_members_and_keys_of_a_class_that_nobody_registered_come_as_pairs(
    value: object, expected: Callable[[Any], object]
) -> None:
    found = PLAIN.decode(CODEC.encode(value))
    fields = (("x", 1), ("y", 2))
    assert portrait(found) == portrait(expected(fields))


@pytest.mark.parametrize(
    "value",
    [{models.Colour.RED, "red"}, {models.Colour.RED: 1, "red": 2}, [{"red", models.Colour.RED}]],
)
def test_members_and_keys_that_are_equal_only_as_plain_data_are_not_merged(value: object) -> None:
    data = CODEC.encode(value)
    assert portrait(CODEC.decode(data)) == portrait(value)
    with pytest.raises(Misuse, match="register their classes to load them"):
        PLAIN.decode(data)


def test_a_class_may_be_registered_under_another_name_than_its_own() -> None:
    types = Types()
    types.register(models.Point, "geometry.Point")
    data = Codec(types).encode(models.Point(1, 2))
    assert b"geometry.Point" in data
    assert b"models" not in data
    assert Codec(types).decode(data) == models.Point(1, 2)


def test_a_name_says_nothing_about_the_kind_of_class() -> None:
    types = Types()
    types.register(models.Colour, "Thing")
    as_object = wire.ext(wire.OBJECT, CODEC.encode(["Thing", {"x": 1}]))
    assert Codec(types).decode(as_object) == {"x": 1}
    types = Types()
    types.register(models.Point, "Thing")
    as_enum = wire.ext(wire.ENUM, CODEC.encode(["Thing", "RED", "red"]))
    assert Codec(types).decode(as_enum) == "red"


def test_an_enum_member_is_found_by_name_and_else_by_value() -> None:
    def stored(member: str, value: object) -> Any:
        return CODEC.decode(wire.ext(wire.ENUM, CODEC.encode(["Colour", member, value])))

    assert stored("RED", "its value has changed") is models.Colour.RED
    assert stored("CRIMSON", "red") is models.Colour.RED
    with pytest.raises(Misuse, match="Colour has no member 'GREEN'"):
        stored("GREEN", "green")


HOSTILE_NAMES = [
    "os.system",
    "subprocess.Popen",
    "builtins.eval",
    "builtins.Exception",
    "antigravity",
    "antigravity.webbrowser",
    "hardsave.objects.types.Types",
    "tests.unit.objects.models.Point",
    "",
    "..",
    "__main__",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_stored_name_builds_nothing_that_was_not_registered(name: str) -> None:
    modules = set(sys.modules)
    fields = {"x": 1, "command": "true"}
    as_object = wire.ext(wire.OBJECT, PLAIN.encode([name, fields]))
    as_enum = wire.ext(wire.ENUM, PLAIN.encode([name, "name", "true"]))
    assert PLAIN.decode(as_object) == fields
    assert PLAIN.decode(as_enum) == "true"
    assert PLAIN.decode(PLAIN.encode([1])[:0] + b"\x92" + as_object + as_enum) == [fields, "true"]
    assert set(sys.modules) == modules


def test_a_stored_name_imports_no_module_in_a_fresh_interpreter() -> None:
    script = (
        "import sys, ormsgpack\n"
        "from hardsave.objects.codec import Codec\n"
        "before = set(sys.modules)\n"
        "for name in ('this.d', 'antigravity', 'xml.dom.minidom.Document'):\n"
        "    content = ormsgpack.packb([name, {'x': 1}])\n"
        "    assert Codec().decode(ormsgpack.packb(ormsgpack.Ext(14, content))) == {'x': 1}\n"
        "    content = ormsgpack.packb([name, 'x', 1])\n"
        "    assert Codec().decode(ormsgpack.packb(ormsgpack.Ext(15, content))) == 1\n"
        "assert set(sys.modules) == before, set(sys.modules) - before\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_pydantic_dataclass_comes_back_as_itself() -> None:
    @pydantic.dataclasses.dataclass
    class Size:
        width: int

    types = Types()
    types.register(Size)
    assert back(Size(3), Codec(types)) == Size(3)


def test_a_pydantic_root_model_comes_back_as_itself() -> None:
    class Numbers(pydantic.RootModel[list[int]]):
        pass

    types = Types()
    types.register(Numbers)
    assert back(Numbers([1]), Codec(types)) == Numbers([1])


def test_a_field_that_was_never_set_is_left_out() -> None:
    @dataclasses.dataclass
    class Late:
        early: int
        late: int = dataclasses.field(init=False)

    types = Types()
    types.register(Late)
    found = back(Late(1), Codec(types))
    assert found.early == 1
    assert not hasattr(found, "late")


# References


def test_marks_stand_for_references_in_order() -> None:
    data = b"\x93" + wire.REF_MARK + b"\xc0" + wire.REF_MARK
    assert CODEC.decode(data, ["first", "second"]) == ["first", None, "second"]


def test_a_mark_without_a_reference_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="more references than it lists"):
        CODEC.decode(b"\x92" + wire.REF_MARK * 2, ["only"])


@examples(15)
@given(st.lists(st.booleans(), max_size=20))
def test_references_are_counted_right_on_the_slow_path_too(marks: list[bool]) -> None:
    deep = b"\x91" * 2000 + b"\xc0"  # deeper than ormsgpack goes
    items = [wire.REF_MARK if mark else b"\x07" for mark in marks]
    found = CODEC.decode(wire.array([*items, deep]), range(100, 200))
    coming = iter(range(100, 200))
    assert found[:-1] == [next(coming) if mark else 7 for mark in marks]


def test_members_of_an_enum_may_have_values_of_any_storable_kind() -> None:
    class Odd(enum.Enum):
        SET = frozenset({1, 2})
        LIST = ("a", 1.5)
        MOMENT = datetime.date(2024, 1, 1)

    assert [back(member) for member in Odd] == [member.value for member in Odd]
    types = Types()
    types.register(Odd)
    assert [back(member, Codec(types)) for member in Odd] == list(Odd)


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {"at": datetime.date(2024, 1, 1)}, {3: (4, {5})}])
def test_a_ctrl_c_while_something_is_read_is_not_lost(value: Any) -> None:
    """ormsgpack drops what is raised in a function that it has called."""
    data = CODEC.encode(value)
    struck: list[int] = []
    told: list[int] = []
    for line in range(1, 30):

        def strike(line: int = line) -> None:
            struck.append(line)
            interrupt()

        try:
            with at_line(line, strike, (codec.__file__,)):
                assert CODEC.decode(data) == value
        except KeyboardInterrupt:
            told.append(line)
    assert told == struck
    assert len(struck) > 4


def test_a_ctrl_c_while_something_is_checked_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    data = CODEC.encode({"a": {1, 2}})
    is_mark = sound._is_mark

    def interrupted(code: int, size: int) -> bool:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(sound, "_is_mark", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sound._looked_through(data)
    assert sound._is_mark is is_mark
    assert sound._looked_through(data) == (0, len(data))
