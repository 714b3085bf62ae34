"""What can be read only once, read: a generator, a `map`, an open file.

A result is read more than once: to be kept, to be told the model, and with every request after
that. So an iterator that the first of them would use up becomes a list before, wherever it stands
in the result; what is as it was stays the same object. What a generator raises is raised here,
where the tool was called.
"""

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

_DEEPEST = 255
"""As far as Pydantic follows a value; what is deeper cannot be kept, nor told."""


def read_out(value: Any) -> Any:
    """The same with lists in the place of iterators."""
    return _read(value, ())


def _read(value: Any, above: tuple[int, ...]) -> Any:
    if isinstance(value, str | bytes | int | float | None):
        return value
    if id(value) in above or len(above) > _DEEPEST:
        return value  # the save will say what is wrong
    above = (*above, id(value))
    if isinstance(value, Iterator):
        return [_read(each, above) for each in value]
    if isinstance(value, dict):
        return _either(value, dict(zip(value, _all(value.values(), above), strict=True)))
    if isinstance(value, list | tuple | set | frozenset | deque):
        return _either(value, list(_all(value, above)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _with_read_fields(value, above)
    if hasattr(type(value), "__pydantic_fields__"):
        return _either_fields(value, above)
    return value


def _all(values: Iterable[Any], above: tuple[int, ...]) -> Iterator[Any]:
    return (_read(each, above) for each in values)


def _either(old: Any, new: "dict[Any, Any] | list[Any]") -> Any:
    """The old one, if nothing in it is another now."""
    before, after = (old.values(), new.values()) if isinstance(new, dict) else (old, new)
    is_same = all(one is other for one, other in zip(before, after, strict=True))
    return old if is_same else new


def _either_fields(model: Any, above: tuple[int, ...]) -> Any:
    """A model of Pydantic, or its fields as data: it may want the very iterator that was read."""
    fields = dict(model)
    read = _read(fields, above)
    return model if read is fields else read


def _with_read_fields(record: Any, above: tuple[int, ...]) -> Any:
    found = record
    for field in dataclasses.fields(record):
        old = getattr(record, field.name, None)
        new = _read(old, above)
        if new is not old:
            found = copy(record) if found is record else found
            object.__setattr__(found, field.name, new)  # frozen ones, too: this copy is ours
    return found
