"""Classes that are made quickly are those that `typing` makes."""

import ast
import copy
import inspect
import pickle
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hardsave.objects import records
from hardsave.stores import base
from hardsave.tuples import NamedTuple

SOURCE = Path(__file__).parents[2] / "src"

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="there it is typing's own")


class Ours(NamedTuple):
    """One of each."""

    a: int
    b: "str | None"
    c: bytes = b""
    d: float = 0.5

    @property
    def length(self) -> int:
        return len(self.c)

    @classmethod
    def made(cls, a: int) -> "Ours":
        return cls(a, None)

    def __str__(self) -> str:
        return f"{self.a}: {self!r}"


class Theirs(typing.NamedTuple):
    """One of each."""

    a: int
    b: "str | None"
    c: bytes = b""
    d: float = 0.5

    @property
    def length(self) -> int:
        return len(self.c)

    @classmethod
    def made(cls, a: int) -> "Theirs":
        return cls(a, None)

    def __str__(self) -> str:
        return f"{self.a}: {self!r}"


class Nothing(NamedTuple):
    """Without a field."""


CALLS: dict[str, Callable[[Any], object]] = {
    "the fields": lambda made: made._fields,
    "the defaults": lambda made: made._field_defaults,
    "what it matches": lambda made: made.__match_args__,
    "the description": lambda made: made.__doc__,
    "what its constructor takes": lambda made: list(inspect.signature(made).parameters),
    "types": typing.get_type_hints,
    "by place": lambda made: tuple(made(1, "x")),
    "by name": lambda made: tuple(made(b="x", a=1, d=2.0)),
    "a field": lambda made: made(1, "x", b"yz").c,
    "its own method": lambda made: made(1, "x", b"yz").length,
    "its own constructor": lambda made: tuple(made.made(3)),
    "its own text": lambda made: str(made(1, "x")).replace("Theirs", "Ours"),
    "the text": lambda made: repr(made(1, "x")).replace("Theirs", "Ours"),
    "equal to a tuple": lambda made: made(1, "x") == (1, "x", b"", 0.5),
    "the hash": lambda made: hash(made(1, "x")),
    "in order": lambda made: made(1, "x") < made(2, "a"),
    "replaced": lambda made: tuple(made(1, "x")._replace(b=None)),
    "as a dict": lambda made: made(1, "x")._asdict(),
    "of a row": lambda made: tuple(made._make([1, 2, 3, 4])),
    "copied": lambda made: tuple(copy.deepcopy(made(1, ["x"]))),
    "copied keeps its class": lambda made: type(copy.copy(made(1, "x"))) is made,
    "pickled": lambda made: tuple(pickle.loads(pickle.dumps(made(1, "x")))),  # noqa: S301 # ours
    "no dict of its own": lambda made: hasattr(made(1, "x"), "__dict__"),
}

WRONG: dict[str, Callable[[Any], object]] = {
    "too few": lambda made: made(1),
    "too many": lambda made: made(1, 2, 3, 4, 5),
    "unknown": lambda made: made(1, "x", e=3),
    "twice": lambda made: made(1, "x", a=2),
    "a short row": lambda made: made._make([1]),
    "an unknown one replaced": lambda made: made(1, "x")._replace(e=1),
    "set": lambda made: setattr(made(1, "x"), "a", 2),
    "added": lambda made: setattr(made(1, "x"), "e", 2),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_does_what_a_tuple_of_typing_does(call: Callable[[Any], object]) -> None:
    assert call(Ours) == call(Theirs)


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_it_refuses_what_a_tuple_of_typing_refuses(call: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)) as theirs:
        call(Theirs)
    with pytest.raises(theirs.type) as ours:
        call(Ours)
    assert str(ours.value).replace("Ours", "Theirs") == str(theirs.value)


def test_one_without_a_field_is_empty() -> None:
    assert Nothing() == ()
    assert repr(Nothing()) == "Nothing()"


def test_a_field_without_a_default_comes_first() -> None:
    making: Any = type(NamedTuple)
    with pytest.raises(TypeError, match="follows"):
        making("Odd", (NamedTuple,), {"__annotations__": {"a": int, "b": int}, "a": 1})


@pytest.mark.parametrize("cls", [records.CheckpointRecord, records.TaskRecord, base.Batch])
def test_the_records_of_stores_are_such_tuples(cls: Any) -> None:
    hints = typing.get_type_hints(cls)
    assert tuple(hints) == cls._fields
    assert "tuples" in cls.__mro__[1].__module__


def test_no_module_makes_them_in_the_slow_way_but_for_what_is_generic() -> None:
    found = [path for path in SOURCE.rglob("*.py") if "NamedTuple" in imported(path)]
    for path in found:
        if path.name != "tuples.py":
            assert "(NamedTuple, Generic[" in path.read_text(), path


def imported(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    sources = [each for each in nodes if isinstance(each, ast.ImportFrom)]
    return {name.name for each in sources if each.module == "typing" for name in each.names}
