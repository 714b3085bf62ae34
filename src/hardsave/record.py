"""`Record`, the base of what public methods return: immutable, read by name, never by position.

    class Rewind(Record):
        target: Checkpoint
        moved: bool = False

A field that is added later breaks no program, since none can count fields: a record is no tuple,
and has no length, no items and no iterator. It equals a record of the same class with equal fields.

The annotations of the body are the fields, in this order, with their defaults. They lie in slots,
so reading one costs what reading an attribute costs. The constructor is made when the first record
of a class is: many processes import classes of which they never make one. Constructors for as many
fields share the code of one, as those of `hardsave.tuples` do.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform

    @dataclass_transform(frozen_default=True)
    class Record:
        """An immutable result with named fields."""

        def replace(self, /, **changes: Any) -> Self:
            """The same, but for these fields."""

        def as_dict(self) -> dict[str, Any]:
            """The fields by name, in their order."""

else:
    from functools import cache
    from types import CellType, FunctionType

    class _Making(type):
        """Makes the fields of a class slots, and keeps their defaults aside."""

        def __new__(cls, name, bases, body):
            if any(getattr(base, "_fields", ()) for base in bases):
                raise TypeError(f"{name}: a record is not the base of another one")
            fields = tuple(_annotations(body))
            defaults = {field: body.pop(field) for field in fields if field in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one that has one")
            own = {"__slots__": fields, "_fields": fields, "_defaults": defaults}
            return super().__new__(cls, name, bases, {**body, **own})

    def _annotations(body):
        """The fields of a class body; from Python 3.14 on, a function in it tells them."""
        if sys.version_info >= (3, 14) and (tell := body.get("__annotate_func__")) is not None:
            return tell(1)  # annotationlib.Format.VALUE
        return body.get("__annotations__", ())

    @cache
    def _constructor(count):
        """The code of an `__init__` that hands so many values to the setters of their slots."""
        setters = ", ".join(f"set{at}" for at in range(count))
        values = "".join(f", field{at}" for at in range(count))
        calls = "".join(f"  set{at}(self, field{at})\n" for at in range(count)) or "  pass\n"
        space = {}
        text = f"def outer({setters}):\n def __init__(self{values}):\n{calls} return __init__\n"
        exec(text, space)  # noqa: S102 # fixed but for the count, as in collections and dataclasses
        return space["outer"](*[None] * count).__code__

    def _init(cls):
        """The constructor of a class of records, which is its own from now on."""
        shared, fields = _constructor(len(cls._fields)), cls._fields
        setters = [vars(cls)[fields[int(name[3:])]].__set__ for name in shared.co_freevars]
        code = shared.replace(co_varnames=("self", *fields), co_qualname=f"{cls.__name__}.__init__")
        defaults = (*cls._defaults.values(),)
        made = FunctionType(code, {}, "__init__", defaults, tuple(map(CellType, setters)))
        made.__qualname__ = f"{cls.__name__}.__init__"
        cls.__init__ = made
        return made

    class Record(metaclass=_Making):
        """An immutable result with named fields."""

        __match_args__ = ()  # `case Rewind(moved=True)` by name alone

        def __init__(self, /, *values, **named):
            _init(type(self))(self, *values, **named)

        def replace(self, /, **changes):
            """The same, but for these fields."""
            return type(self)(**{**self.as_dict(), **changes})

        __replace__ = replace  # for `copy.replace`, from Python 3.13 on

        def as_dict(self):
            """The fields by name, in their order."""
            return {name: getattr(self, name) for name in self._fields}

        def __setattr__(self, name, value):
            raise AttributeError(
                f"a {type(self).__name__} cannot be changed; replace({name}=…) makes another one"
            )

        def __delattr__(self, name):
            raise AttributeError(f"a {type(self).__name__} cannot be changed")

        def __eq__(self, other):
            if type(other) is not type(self):
                return NotImplemented
            return all(getattr(self, name) == getattr(other, name) for name in self._fields)

        def __hash__(self):
            return hash((type(self), *self.as_dict().values()))

        def __repr__(self):
            values = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items())
            return f"{type(self).__name__}({values})"

        def __reduce__(self):
            return type(self), tuple(self.as_dict().values())
