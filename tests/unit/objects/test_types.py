"""Which classes come back as themselves, and how plain data takes their shape."""

import dataclasses
import enum
import typing
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

import msgspec
import pydantic
import pytest

from hardsave.errors import Misuse
from hardsave.objects.types import Types, build, convert, default_name, fields_of, fields_of_class
from tests.unit.objects import models
from tests.unit.objects.models import Colour, Point
from tests.unit.objects.strategies import portrait

T = TypeVar("T")


# Registering


@pytest.mark.parametrize("cls", models.CLASSES)
def test_every_kind_of_class_can_be_registered(cls: type) -> None:
    types = Types()
    types.register(cls)
    assert types.name_of(cls) == f"{cls.__module__}.{cls.__qualname__}"


def test_registering_again_changes_nothing() -> None:
    types = Types()
    types.register(Point, "P")
    types.register(Point, "P")
    assert types.name_of(Point) == "P"
    assert types.object_from("P", {"x": 1}) == Point(1)


def test_a_class_with_two_names_is_read_by_both_and_written_by_the_last() -> None:
    types = Types()
    types.register(Point, "old")
    types.register(Point, "new")
    assert types.name_of(Point) == "new"
    assert types.object_from("old", {"x": 1}) == types.object_from("new", {"x": 1}) == Point(1)


def test_a_name_belongs_to_one_class() -> None:
    types = Types()
    types.register(Point, "P")
    with pytest.raises(Misuse, match=r"the name 'P' is taken by <class '.*Point'>"):
        types.register(models.Record, "P")
    assert types.object_from("P", {}) == Point()
    assert types.name_of(models.Record) == default_name(models.Record)


@pytest.mark.parametrize("cls", [int, dict, object, models.Pair, models.Text, Exception])
def test_other_classes_cannot_be_registered(cls: type) -> None:
    with pytest.raises(Misuse, match="cannot be registered: only dataclasses, enums"):
        Types().register(cls)


@pytest.mark.parametrize("thing", [5, Point(1), "Point"])
def test_what_is_not_a_class_cannot_be_registered(thing: Any) -> None:
    with pytest.raises(Misuse):
        Types().register(thing)


def test_registries_do_not_share_classes() -> None:
    one = Types()
    one.register(Point, "P")
    assert Types().object_from("P", {"x": 1}) == {"x": 1}


# Fields


def test_fields_are_those_of_the_class_in_order() -> None:
    assert fields_of_class(models.Shape) == ("centre", "corners", "named", "maybe", "colour")
    assert fields_of_class(models.Note) == ("content", "title")
    assert fields_of_class(models.Packet) == ("content", "size")
    assert fields_of_class(int) is None
    assert fields_of_class(Colour) is None


def test_fields_of_an_instance_are_one_level_deep() -> None:
    inner = Point(1, 2)
    assert fields_of(models.Record(inner)) == {"content": inner, "note": None}
    found = fields_of(models.Record(inner))
    assert found is not None
    assert found["content"] is inner
    assert fields_of(models.Open.model_validate({"a": 1})) == {"content": None, "a": 1}
    assert fields_of({"x": 1}) is None
    assert fields_of(models.Pair(1, 2)) is None


# Building


@pytest.mark.parametrize(
    ("cls", "fields", "expected"),
    [
        (Point, {"x": 1}, Point(1, 0)),
        (Point, {}, Point()),
        (models.Slotted, {"content": [1]}, models.Slotted([1])),
        (models.Counted, {"content": 1, "length": 9}, models.Counted(1).with_length(9)),
        (models.Note, {"title": "t"}, models.Note(Title="t")),
        (models.Open, {"a": 1}, models.Open.model_validate({"a": 1})),
        (models.Packet, {"size": 3}, models.Packet(None, 3)),
    ],
)
def test_a_class_is_built_from_its_fields(
    cls: type, fields: dict[str, Any], expected: object
) -> None:
    assert portrait(build(cls, fields)) == portrait(expected)


def test_fields_are_built_in_the_shape_of_their_annotations() -> None:
    fields = {
        "centre": {"x": 1},
        "corners": [{"x": 2}, {"y": 3}],
        "named": {"a": ({"x": 4}, {"x": 5})},
        "maybe": {"x": 6},
        "colour": "red",
    }
    expected = models.Shape(
        Point(1), [Point(2), Point(0, 3)], {"a": (Point(4), Point(5))}, Point(6), Colour.RED
    )
    assert build(models.Shape, fields) == expected
    assert convert(fields, models.Shape) == expected
    assert convert(expected, models.Shape) is expected


def test_nested_models_of_every_library_are_built() -> None:
    class Inner(msgspec.Struct):
        point: Point

    class Outer(pydantic.BaseModel):
        inner: Any
        point: Point

    @dataclasses.dataclass
    class Top:
        outer: Outer
        inner: Inner

    plain = {"outer": {"inner": 1, "point": {"x": 1}}, "inner": {"point": {"x": 2}}}
    assert convert(plain, Top) == Top(Outer(inner=1, point=Point(1)), Inner(Point(2)))


@pytest.mark.parametrize(
    ("cls", "fields", "words"),
    [
        (Point, {"x": 1, "z": 2}, r"stored fields \['x', 'z'\] do not make a Point: no field z"),
        (Point, {"b": 1, "a": 2}, "no field a, b"),
        (models.Slotted, {}, r"stored fields \[\] do not make a Slotted: .*'content'"),
        (models.Note, {"title": 5}, r"do not make a Note: 1 validation error"),
        (models.Packet, {"other": 1}, r"do not make a Packet: .*other"),
    ],
)
def test_fields_that_do_not_fit_are_a_misuse_that_says_what_to_do(
    cls: type, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(Misuse, match=rf"(?s){words}.*load without a type to get plain data$"):
        build(cls, fields)


def test_a_class_that_refuses_its_fields_is_a_misuse_with_its_cause() -> None:
    @dataclasses.dataclass
    class Strict:
        n: int

        def __post_init__(self) -> None:
            raise LookupError("not today")

    with pytest.raises(Misuse, match=r"do not make a .*Strict: not today") as caught:
        build(Strict, {"n": 1})
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_member_that_no_longer_exists_is_a_misuse() -> None:
    with pytest.raises(Misuse):
        convert({"centre": {}, "corners": [], "named": {}, "colour": "pink"}, models.Shape)


def test_an_annotation_that_cannot_be_resolved_leaves_the_field_plain() -> None:
    @dataclasses.dataclass
    class Lost:
        here: "Point"
        gone: "Nowhere"  # type: ignore[name-defined] # noqa: F821 # it is meant not to exist

    assert build(Lost, {"here": {"x": 1}, "gone": 2}) == Lost({"x": 1}, 2)  # type: ignore[arg-type] # plain data


# Converting


class Where(typing.TypedDict):
    at: Point
    colour: typing.NotRequired[Colour]


class Stop(typing.NamedTuple):
    at: Point
    name: str


class Sized(typing.Protocol):
    x: int


@pytest.mark.parametrize(
    ("plain", "wanted", "expected"),
    [
        ({"x": 1}, Point, Point(1)),
        ({"x": 1}, Any, {"x": 1}),
        ({"x": 1}, None, {"x": 1}),
        ({"x": 1}, T, {"x": 1}),
        ({"x": 1}, "Point", {"x": 1}),
        ({"x": 1}, dict, {"x": 1}),
        ("red", Colour, Colour.RED),
        (Colour.RED, Colour, Colour.RED),
        (("b", 3), Colour, Colour.BLUE),
        (1, models.Level, models.Level.LOW),
        (5, models.Right, models.Right.READ | models.Right.RUN),
        (3, str, 3),
        ([{"x": 1}], list, [{"x": 1}]),
        ([{"x": 1}], list[Point], [Point(1)]),
        ([{"x": 1}], typing.Sequence[Point], [Point(1)]),
        ([["red"]], list[list[Colour]], [[Colour.RED]]),
        (({"x": 1}, {"x": 2}), tuple[Point, ...], (Point(1), Point(2))),
        (({"x": 1}, "red"), tuple[Point, Colour], (Point(1), Colour.RED)),
        (({"x": 1},), tuple[Point, Colour], ({"x": 1},)),
        ((), tuple[()], ()),
        ({"red"}, set[Colour], {Colour.RED}),
        (frozenset({"red"}), frozenset[Colour], frozenset({Colour.RED})),
        ({"a": {"x": 1}}, dict[str, Point], {"a": Point(1)}),
        ({"red": 1}, dict[Colour, int], {Colour.RED: 1}),
        ({"a": [{"x": 1}]}, dict[str, list[Point]], {"a": [Point(1)]}),
        ({"a": [{"x": 1}]}, typing.Mapping[str, list[Point]], {"a": [Point(1)]}),
        ({"x": 1}, Optional[Point], Point(1)),  # noqa: UP045 # both spellings exist
        (None, Optional[Point], None),  # noqa: UP045 # both spellings exist
        (None, Point | None, None),
        ({"x": 1}, Point | None, Point(1)),
        ({"x": 1}, Union[int, Point], Point(1)),  # noqa: UP007 # both spellings exist
        (7, int | Point, 7),
        ("red", int | Colour, Colour.RED),
        ("blue", int | Colour, "blue"),
        ({"x": 1}, str | models.Packet | Point, Point(1)),
        ({"size": 1}, Point | models.Packet, models.Packet(None, 1)),
        ([{"x": 1}], list[Point] | None, [Point(1)]),
        ([{"x": 1}, None, 3], list[Point | int | None], [Point(1), None, 3]),
        ({"x": 1}, Annotated[Point, "words"], Point(1)),
        ([{"x": 1}], Annotated[list[Annotated[Point, 1]], 2], [Point(1)]),
        ("a", Literal["a", "b"], "a"),
        ([1], Literal["a"], [1]),
        ({"at": {"x": 1}}, Where, {"at": Point(1)}),
        (
            {"at": {"x": 1}, "colour": "red", "z": 1},
            Where,
            {"at": Point(1), "colour": Colour.RED, "z": 1},
        ),
        ({"at": {"x": 1}}, Where | None, {"at": Point(1)}),
        ([{"at": {"x": 1}}], list[Where], [{"at": Point(1)}]),
        ([1], Where, [1]),
        (({"x": 1}, "a"), Stop, Stop(Point(1), "a")),
        ([({"x": 1}, "a")], list[Stop], [Stop(Point(1), "a")]),
        (({"x": 1},), Stop, ({"x": 1},)),
        ((1, 2), tuple, (1, 2)),
        ([1, 2], tuple, [1, 2]),
        ({"x": 1}, Sized, {"x": 1}),
        ({"x": 1}, Sized | None, {"x": 1}),
    ],
)
def test_plain_data_takes_the_shape_that_is_wanted(
    plain: Any, wanted: Any, expected: object
) -> None:
    assert portrait(convert(plain, wanted)) == portrait(expected)


def test_converting_leaves_the_plain_data_alone() -> None:
    plain = {"a": [{"x": 1}]}
    convert(plain, dict[str, list[Point]])
    assert plain == {"a": [{"x": 1}]}


def test_a_mistake_inside_a_union_falls_back_to_plain_data() -> None:
    assert convert({"z": 1}, Point | None) == {"z": 1}
    with pytest.raises(Misuse, match="no field z"):
        convert({"z": 1}, Point)


def test_a_generic_dataclass_is_built() -> None:
    @dataclasses.dataclass
    class Box(Generic[T]):
        content: T

    assert convert({"content": 1}, Box[int]) == Box(1)


def test_the_annotations_of_a_class_are_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass
    class Turn:
        role: str
        at: Point

    asked: list[type] = []
    resolve = typing.get_type_hints

    def noted(cls: type) -> dict[str, Any]:
        asked.append(cls)
        return resolve(cls)

    monkeypatch.setattr(typing, "get_type_hints", noted)
    turns = convert([{"role": "user", "at": {"x": 1, "y": 2}}] * 100, list[Turn])
    assert turns[99].at == Point(1, 2)
    assert asked.count(Turn) == 1


def test_an_annotation_that_cannot_be_resolved_yet_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dataclasses.dataclass
    class Early:
        at: "Later"  # type: ignore[name-defined] # noqa: F821 # it comes later, and that is the point

    assert build(Early, {"at": {"x": 1}}).at == {"x": 1}
    monkeypatch.setitem(globals(), "Later", Point)
    assert build(Early, {"at": {"x": 1}}).at == Point(1)


# Enums


def test_an_enum_member_is_found_by_name_and_else_by_value() -> None:
    types = Types()
    types.register(Colour, "C")
    assert types.enum_from("C", "RED", None) is Colour.RED
    assert types.enum_from("C", "ROT", "red") is Colour.RED
    assert types.enum_from("D", "RED", "red") == "red"
    with pytest.raises(Misuse, match="Colour has no member 'ROT'; it was stored with one"):
        types.enum_from("C", "ROT", "rot")


def test_an_alias_of_a_member_is_the_member() -> None:
    class Size(enum.Enum):
        BIG = 1
        LARGE = 1  # noqa: PIE796 # an alias is meant

    types = Types()
    types.register(Size, "S")
    assert types.enum_from("S", "LARGE", 1) is Size.BIG
