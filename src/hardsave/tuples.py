"""`NamedTuple` as `typing` has it, but for how long it takes to make a class.

A process of ours makes a hundred such classes before it does anything, and a hook is a process that
an agent waits for. Python compiles a constructor for each of them, and looks at every annotation:
some 0.1 ms a class. Here they share their methods, and those with as many fields a constructor's
code. What comes out has the same fields, the same constructor and the same methods, and a type
checker sees `typing`'s own; which also stays for what is `Generic`.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 14):  # there, annotations are read by other means
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter, namedtuple
    from functools import cache
    from types import FunctionType

    # As Python's own does, which has changed its mind.
    _NoSuchField = TypeError if sys.version_info >= (3, 13) else ValueError

    class _Tuple(tuple):
        """What all of them can do."""

        __slots__ = ()
        _fields = ()
        _field_defaults = {}  # noqa: RUF012 # as Python's own

        @classmethod
        def _make(cls, iterable):
            made = tuple.__new__(cls, iterable)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise _NoSuchField(f"Got unexpected field names: {list(changes)!r}")
            return made

        __replace__ = _replace  # for `copy.replace`, from Python 3.13 on

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            values = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({values})"

        def __getnewargs__(self):
            return tuple(self)

    @cache
    def _constructor(count):
        """Python's own, of a class with so many fields."""
        return namedtuple("_", [f"field{number}" for number in range(count)]).__new__

    class _Making(type):
        """Makes a class of what stands in the body of a `class X(NamedTuple)`."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            annotations = body.get("__annotations__", {})
            fields = tuple(annotations)
            defaults = {field: body[field] for field in fields if field in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one that has one")
            like = _constructor(len(fields))
            code = like.__code__.replace(co_varnames=("_cls", *fields))
            new = FunctionType(code, like.__globals__, "__new__", (*defaults.values(),))
            new.__qualname__, new.__annotations__ = f"{name}.__new__", annotations
            getters = {field: _tuplegetter(place, "") for place, field in enumerate(fields)}
            own = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            body = {**body, **getters, **own, "__new__": new, "__slots__": ()}
            return type(name, (_Tuple,), body)

    class NamedTuple(metaclass=_Making):
        """The base of a class whose annotations are its fields."""
