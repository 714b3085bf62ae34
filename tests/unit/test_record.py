"""Records are read by name alone, and cannot be changed."""

import copy
import json
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import pytest

from hardsave.record import Record

T = TypeVar("T")


class Point(Record):
    """Two fields."""

    x: int
    y: "int | None" = None

    @property
    def sum(self) -> int:
        return self.x + (self.y or 0)


class Other(Record):
    x: int
    y: "int | None" = None


class Holder(Record, Generic[T]):
    item: T
    note: str = ""


class Empty(Record):
    pass


def test_fields_are_given_by_position_or_name_and_read_by_name() -> None:
    assert (Point(1, 2).x, Point(1, 2).y, Point(1, y=2).sum) == (1, 2, 3)
    assert Point(x=1).y is None
    assert Holder("a").item == "a"
    assert Holder[str]("a") == Holder("a", note="")
    assert Empty() == Empty()


USES: dict[str, Callable[[Any], object]] = {
    "as arguments": lambda point: max(*point),
    "into a list": lambda point: [*point],
    "into a tuple": tuple,
    "by index": lambda point: point[0],
    "length": len,
    "membership": lambda point: 1 in point,
    "json": json.dumps,
    "format": lambda point: "%s %s" % point,  # noqa: UP031 # what is tested
    "order": lambda point: point < Point(3, 4),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_record_has_no_positions(use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        use(Point(1, 2))
    assert not isinstance(Point(1), Iterable | tuple)


def test_it_is_not_unpacked_by_position() -> None:
    point: Any = Point(1, 2)
    with pytest.raises(TypeError, match="cannot unpack non-iterable Point object"):
        _, _ = point


def test_a_pattern_names_its_fields() -> None:
    point: Any = Point(1, 2)
    match point:
        case Point(x=1, y=found):
            assert found == 2
    assert not vars(Record)["__match_args__"]


def test_it_cannot_be_changed() -> None:
    point: Any = Point(1, 2)
    for name in ("x", "z"):
        with pytest.raises(AttributeError, match=f"a Point cannot be changed; replace.{name}=…"):
            setattr(point, name, 3)
    with pytest.raises(AttributeError, match="a Point cannot be changed"):
        del point.x
    assert point == Point(1, 2)


def test_replace_makes_another_one() -> None:
    point = Point(1, 2)
    assert point.replace(y=5) == Point(1, 5)
    assert point == Point(1, 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        point.replace(z=3)


def test_it_equals_records_of_its_own_class_alone() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert len({Point(1, 2), Point(1, 2), Point(1)}) == 2
    for other in (Point(2, 2), Other(1, 2), (1, 2), None):
        assert Point(1, 2) != other


def test_it_says_what_it_holds() -> None:
    assert repr(Point(1)) == "Point(x=1, y=None)"
    assert Point(1).as_dict() == {"x": 1, "y": None}
    assert copy.deepcopy(Point(1, 2)) == copy.copy(Point(1, 2)) == Point(1, 2)


def test_a_wrong_call_is_refused_as_by_any_function() -> None:
    make: Any = Point
    for values, named, said in [
        ((), {}, r"Point.__init__\(\) missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, "takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"z": 2}, "unexpected keyword argument 'z'"),
        ((1,), {"x": 2}, "multiple values for argument 'x'"),
    ]:
        with pytest.raises(TypeError, match=said):
            make(*values, **named)


def made(bases: tuple[type, ...], body: dict[str, Any]) -> Any:
    making: Any = type(Record)
    return making("Made", bases, body)


def test_a_class_that_cannot_be_is_refused() -> None:
    with pytest.raises(TypeError, match="a field without a default follows one that has one"):
        made((Record,), {"__annotations__": {"a": int, "b": int}, "a": 1})
    with pytest.raises(TypeError, match="a record is not the base of another one"):
        made((Point,), {})


def test_fields_are_found_also_where_a_function_tells_the_annotations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hardsave.record.sys.version_info", (3, 14))
    one = made((Record,), {"__annotate_func__": lambda format: {"a": int}})
    assert one(a=1).as_dict() == {"a": 1}
