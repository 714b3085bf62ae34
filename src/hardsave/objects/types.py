"""Which classes may come back as themselves.

Stored bytes only ever carry a class's *name*. A class is built on reading when the caller
registered it, or asked for it with `type=`; otherwise its fields come back as plain data.
Nothing here imports by name, and neither pydantic nor msgspec is imported at all: their
models, and dataclasses, are recognised by the attributes that they document.
"""

import enum
import types
import typing
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from hardsave.errors import Misuse


class Types:
    """A registry of classes by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, type] = {}
        self._names: dict[type, str] = {}

    def register(self, cls: type, name: str | None = None) -> None:
        """Let `cls` come back as itself. Registering the same pair again changes nothing."""
        if not isinstance(cls, type):
            raise Misuse(f"{cls!r} is not a class; register the class itself")
        if fields_of_class(cls) is None and not issubclass(cls, enum.Enum):
            raise Misuse(
                f"{cls!r} cannot be registered: only dataclasses, enums, "
                "pydantic models and msgspec structs have a stored form"
            )
        name = name or default_name(cls)
        if self._by_name.get(name, cls) is not cls:
            raise Misuse(f"the name {name!r} is taken by {self._by_name[name]!r}")
        self._by_name[name] = cls
        self._names[cls] = name

    def name_of(self, cls: type) -> str:
        return self._names.get(cls) or default_name(cls)

    def object_from(self, name: str, fields: dict[str, Any]) -> Any:
        """The registered class filled with `fields`, or `fields` as they are."""
        cls = self._by_name.get(name)
        if cls is None or issubclass(cls, enum.Enum):
            return fields
        return build(cls, fields)

    def enum_from(self, name: str, member: str, value: Any) -> Any:
        """The registered enum's member, or its plain value."""
        cls = self._by_name.get(name)
        if cls is None or not issubclass(cls, enum.Enum):
            return value
        try:
            return cls[member] if member in cls.__members__ else cls(value)
        except ValueError as error:
            raise Misuse(
                f"{cls.__qualname__} has no member {member!r}; it was stored with one"
            ) from error


DEFAULT_TYPES = Types()
register = DEFAULT_TYPES.register


def default_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def fields_of_class(cls: type) -> tuple[str, ...] | None:
    """The field names of a dataclass, pydantic model or msgspec struct; else None."""
    if hasattr(cls, "__dataclass_fields__"):
        return tuple(field.name for field in _dataclass_fields(cls))
    if hasattr(cls, "__pydantic_fields__"):
        return tuple(cls.__pydantic_fields__)
    if hasattr(cls, "__struct_fields__"):
        return tuple(cls.__struct_fields__)
    return None


def fields_of(value: object) -> dict[str, Any] | None:
    """The fields of an instance as a plain dict, one level deep; None if it has none."""
    names = fields_of_class(type(value))
    if names is None:
        return None
    fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
    fields.update(getattr(value, "__pydantic_extra__", None) or {})
    return fields


def build(cls: type, fields: Mapping[str, Any]) -> Any:
    """An instance of `cls` from its stored fields, each shaped to its annotation."""
    shaped = _convert_items(fields, cls)
    try:
        if hasattr(cls, "__dataclass_fields__"):  # those of pydantic have both
            return _build_dataclass(cls, shaped)
        if hasattr(cls, "__pydantic_fields__"):
            return _build_pydantic(cls, shaped)
        return cls(**shaped)
    except Exception as error:
        raise Misuse(
            f"stored fields {sorted(fields)} do not make a {cls.__qualname__}: {error}; "
            "load without a type to get plain data"
        ) from error


def convert(value: Any, wanted: Any) -> Any:
    """Plain data in the shape of the annotation `wanted`; unknown annotations change nothing."""
    if type(value) is wanted or wanted is Any or wanted is None:  # nearly always
        return value
    if isinstance(wanted, typing.TypeVar):
        return value
    origin = typing.get_origin(wanted)
    if origin is not None:
        return _convert_generic(value, origin, typing.get_args(wanted))
    if typing.is_typeddict(wanted):
        return _convert_items(value, wanted) if isinstance(value, dict) else value
    if not isinstance(wanted, type) or is_one(value, wanted):
        return value
    if issubclass(wanted, tuple):
        return _convert_named(value, wanted)
    if issubclass(wanted, enum.Enum):
        try:
            return wanted(value)
        except ValueError as error:
            raise Misuse(f"{wanted.__qualname__} has no member {value!r}") from error
    if isinstance(value, Mapping) and fields_of_class(wanted) is not None:
        return build(wanted, value)
    return value


def is_one(value: object, wanted: Any) -> bool:
    """Whether a value is of a type already; of some types that is unknown."""
    if typing.is_typeddict(wanted):
        return isinstance(value, dict)
    try:
        return wanted is Any or isinstance(value, wanted)
    except TypeError:  # a protocol that is not for asking
        return True


def _convert_items(value: Mapping[Any, Any], wanted: type) -> dict[Any, Any]:
    """Items or fields, each shaped to its annotation."""
    hints = _hints(wanted)
    return {
        name: convert(item, hints[name]) if name in hints else item for name, item in value.items()
    }


def _convert_named(value: Any, wanted: Any) -> Any:
    """A named tuple, which is stored as what it extends."""
    names = getattr(wanted, "_fields", None)
    if names is None or not isinstance(value, tuple) or len(value) != len(names):
        return value
    hints = _hints(wanted)
    return wanted._make(
        convert(item, hints.get(name, Any)) for name, item in zip(names, value, strict=True)
    )


def _convert_generic(value: Any, origin: Any, args: tuple[Any, ...]) -> Any:
    if origin in (typing.Union, types.UnionType):
        return _convert_union(value, args)
    if origin is typing.Annotated:
        return convert(value, args[0])
    if isinstance(origin, type) and fields_of_class(origin) is not None:
        return convert(value, origin)
    if isinstance(value, list | set | frozenset) and args:
        return type(value)(convert(item, args[0]) for item in value)
    if isinstance(value, tuple) and args:
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(convert(item, args[0]) for item in value)
        if len(args) == len(value):
            return tuple(map(convert, value, args))
    if isinstance(value, dict) and len(args) == 2:
        return {convert(key, args[0]): convert(item, args[1]) for key, item in value.items()}
    return value


def _convert_union(value: Any, args: tuple[Any, ...]) -> Any:
    """The first member that `value` already is, else the first that it can become."""
    plain = [arg for arg in args if isinstance(arg, type) and not typing.is_typeddict(arg)]
    if value is None or any(is_one(value, arg) for arg in plain):
        return value
    for arg in args:
        try:
            shaped = convert(value, arg)
        except (Misuse, ValueError, TypeError):
            continue
        if shaped is not value:
            return shaped
    return value


_known_hints: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()
"""Of classes that were asked before: to resolve them takes longer than to build an object."""


def _hints(cls: type) -> dict[str, Any]:
    known = _known_hints.get(cls)
    if known is None:
        try:
            known = _known_hints[cls] = typing.get_type_hints(cls)
        except (NameError, TypeError):
            # An annotation that cannot be resolved yet, perhaps later: fields stay plain.
            return {}
    return known


def _build_pydantic(cls: Any, fields: dict[str, Any]) -> Any:
    if getattr(cls, "__pydantic_root_model__", False):
        return cls.model_validate(fields["root"])
    try:
        return cls.model_validate(fields, by_name=True, by_alias=False)
    except TypeError:  # pydantic before 2.11 knows no by_name
        return cls.model_validate(fields)


def _dataclass_fields(cls: Any) -> Any:
    from dataclasses import fields  # a program with a dataclass has loaded it already

    return fields(cls)


def _build_dataclass(cls: Any, fields: dict[str, Any]) -> Any:
    takes = {field.name: field.init for field in _dataclass_fields(cls)}
    if unknown := fields.keys() - takes.keys():
        raise TypeError(f"no field {', '.join(sorted(unknown))}")
    instance = cls(**{name: value for name, value in fields.items() if takes[name]})
    for name, value in fields.items():
        if not takes[name]:
            object.__setattr__(instance, name, value)
    return instance
