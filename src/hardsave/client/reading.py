"""Records out of the JSON of a server, by the annotations of their classes.

Fields that a class does not have are passed by: a newer server may say more. A value of a user
comes back as it was saved, through `from_json`. A field whose type is a variable, as in `Session`,
is a checkpoint, which the caller makes.
"""

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from hardsave.errors import Unavailable
from hardsave.page import Page
from hardsave.record import Record
from hardsave.values.spelling import from_json

R = TypeVar("R", bound=Record)
T = TypeVar("T")

Make = Callable[[Any], Any]
"""Makes a checkpoint of what was told of it."""
_Read = Callable[[Any, Make], Any]

# What annotations name that is not loaded with the class: most answers have none of it.
_HOMES = {
    "FileChanges": "hardsave.vault.restore.plan",
    "GitChanges": "hardsave.vault.restore.git_position",
    "JobHealth": "hardsave.vault.jobs.state",
    "RolledBack": "hardsave.vault.restore.task_rollback",
}


class Unreadable(Unavailable):
    """What came is not what it should be."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"an answer of the server cannot be read: {why}; is it of another version?"
        )


def _none(told: Any) -> Any:
    raise Unreadable("a checkpoint where there should be none")


def record(cls: type[R], data: Any, make: Make = _none, /, **ready: Any) -> R:
    """A record of a class; with fields that the caller has read already."""
    if not isinstance(data, dict):
        raise Unreadable(f"a {cls.__name__} is no {type(data).__name__}")
    given = {
        name: _reader(annotation)(data[name], make)
        for name, annotation in inspect.get_annotations(cls).items()
        if name in data and name not in ready
    }
    try:
        return cls(**given, **ready)
    except TypeError as error:
        raise Unreadable(f"a {cls.__name__} is incomplete: {error}") from error


def page(data: Any, read: Callable[[Any], T]) -> Page[T]:
    """A page of a listing."""
    return Page([read(each) for each in items(data)], data.get("next"))


def items(data: Any) -> list[Any]:
    """What a page holds, as it came."""
    found = data.get("items") if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise Unreadable("a page without items")
    return found


def moment(text: Any) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except (ValueError, TypeError) as error:
        raise Unreadable(f"{text!r} is no moment") from error


@cache
def _reader(annotation: Any) -> _Read:
    """How values of a field are read."""
    if isinstance(annotation, str):
        return _named(annotation)
    parts, kind = get_args(annotation), get_origin(annotation) or annotation
    if kind in (Union, UnionType):
        return _union(parts)
    if isinstance(kind, TypeVar):
        return lambda data, make: make(data)
    if annotation is Any or (kind in (dict, Mapping) and parts[1:] == (Any,)):
        return lambda data, make: from_json(data)
    if kind is tuple:
        return _tuple(parts)
    if kind is datetime:
        return lambda data, make: moment(data)
    if isinstance(kind, type) and issubclass(kind, Record):
        return lambda data, make: record(kind, data, make)
    return lambda data, make: plain(data)


def _named(annotation: str) -> _Read:
    """Of a class that is loaded when it is needed: `"X"`, `"X | None"` or `"tuple[X, ...]"`."""
    name = annotation.removesuffix(" | None").removeprefix("tuple[").removesuffix(", ...]")
    is_many = annotation.startswith("tuple[")

    def read(data: Any, make: Make) -> Any:
        if data is None or data == []:
            return None if data is None else ()
        cls: type[Record] = getattr(import_module(_HOMES[name]), name)
        return _tuple((cls,))(data, make) if is_many else record(cls, data, make)

    return read


def _union(parts: tuple[Any, ...]) -> _Read:
    """One kind of value, or None."""
    (kind,) = (each for each in parts if each is not NoneType)
    read = _reader(kind)
    return lambda data, make: None if data is None else read(data, make)


def _tuple(parts: tuple[Any, ...]) -> _Read:
    read = _reader(parts[0])  # all are of one kind

    def every(data: Any, make: Make) -> Any:
        if not isinstance(data, list):
            raise Unreadable(f"a list is no {type(data).__name__}")
        return tuple([read(each, make) for each in data])

    return every


def plain(data: Any) -> Any:
    """A text, a number, a flag. Names of files that are no UTF-8 are spelt, as values are."""
    return from_json(data) if isinstance(data, dict) else data
