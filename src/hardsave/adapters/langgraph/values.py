"""Values of a graph as plain data, and back.

Messages and the few classes that LangGraph itself puts into channels become dicts that say under
`lc` what they are, so that logs, diffs and searches read them. A user's dict with that key is
wrapped. What comes back as an object is in a table here, or a class that the program has named: a
stored name is looked up in these, and never imported. Everything else comes back as plain data.
"""

import dataclasses
import enum
import ipaddress
import pathlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core import messages as lc
from langchain_core.documents import Document
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import hardsave

TAG = "lc"
_EXTRA = "lc_extra"  # fields of a message that its class does not declare
_MESSAGES: dict[str, type[lc.BaseMessage]] = {
    each.__name__: each
    for each in (
        lc.AIMessage,
        lc.AIMessageChunk,
        lc.ChatMessage,
        lc.ChatMessageChunk,
        lc.FunctionMessage,
        lc.FunctionMessageChunk,
        lc.HumanMessage,
        lc.HumanMessageChunk,
        lc.RemoveMessage,
        lc.SystemMessage,
        lc.SystemMessageChunk,
        lc.ToolMessage,
        lc.ToolMessageChunk,
    )
}
_ADDRESSES = {
    each.__name__: each
    for each in (
        ipaddress.IPv4Address,
        ipaddress.IPv4Interface,
        ipaddress.IPv4Network,
        ipaddress.IPv6Address,
        ipaddress.IPv6Interface,
        ipaddress.IPv6Network,
    )
}
# Parts of LangGraph, by the fields that make one again.
_PARTS: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "Send": (Send, ("node", "arg", "timeout")),
    "Interrupt": (Interrupt, ("value", "id", "response_schema")),
    "Command": (Command, ("graph", "update", "resume", "goto")),
    "Overwrite": (Overwrite, ("value",)),
    "DeltaSnapshot": (_DeltaSnapshot, ("value",)),
    "TimeoutPolicy": (
        TimeoutPolicy,
        tuple(each.name for each in dataclasses.fields(TimeoutPolicy)),
    ),
    "Document": (Document, ("id", "metadata", "page_content")),
}
_ATOMS = frozenset({str, int, float, bool, type(None), bytes})


class Values:
    """What becomes of values in a store. `types` are classes of the program that come back as
    themselves: dataclasses, pydantic models and enums."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        self._types = {_name(each): each for each in types}
        self._plain: dict[type, Callable[[Any], Any]] = {
            dict: self._dict,
            list: lambda value: [self.plain(each) for each in value],
            tuple: lambda value: tuple(map(self.plain, value)),
            set: lambda value: set(map(self.plain, value)),
            frozenset: lambda value: frozenset(map(self.plain, value)),
            deque: lambda value: self._tagged("deque", list(value), value.maxlen),
            bytearray: lambda value: self._tagged("bytearray", bytes(value)),
        }
        for name, message in _MESSAGES.items():
            self._plain[message] = self._message_of(name, message)
        for name, (part, fields) in _PARTS.items():
            self._plain[part] = self._part_of(name, fields)
        for name, address in _ADDRESSES.items():
            self._plain[address] = self._text_of(name)
        self._revivals: dict[str, Callable[[dict[str, Any]], Any]] = {
            "dict": lambda data: self._items(data["value"]),
            "deque": lambda data: deque(self.revived(data["value"]), data["maxlen"]),
            "bytearray": lambda data: bytearray(data["value"]),
            "path": lambda data: pathlib.Path(data["value"]),
            "object": self._object,
            "enum": self._enum,
        }
        for name, message in _MESSAGES.items():
            self._revivals[name] = self._message_from(message)
        for name, (part, _) in _PARTS.items():
            self._revivals[name] = self._part_from(part)
        for name, address in _ADDRESSES.items():
            self._revivals[name] = self._address_from(address)

    def plain(self, value: Any) -> Any:
        """A value as it is stored."""
        kind = type(value)
        if kind in _ATOMS:
            return value
        known = self._plain.get(kind) or self._learnt(kind)
        return value if known is None else known(value)

    def revived(self, value: Any) -> Any:
        """A stored value as the graph had it."""
        kind = type(value)
        if kind is dict:
            tag = value.get(TAG)
            if tag is None:
                return self._items(value)
            revival = self._revivals.get(tag) if type(tag) is str else None
            if revival is not None:
                try:
                    return revival(value)
                except hardsave.HardsaveError:
                    raise
                except (AttributeError, KeyError, TypeError, ValueError):
                    return self._items(value)  # no graph has written it
            return self._items(value)
        if kind is list:
            return [each if type(each) is str else self.revived(each) for each in value]
        if kind is tuple:
            return tuple(map(self.revived, value))
        if kind is set or kind is frozenset:
            return kind(map(self.revived, value))
        return value

    def _items(self, value: dict[Any, Any]) -> dict[Any, Any]:
        """Of a dict that is one."""
        return {
            key: each if type(each) in _ATOMS else self.revived(each) for key, each in value.items()
        }

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        plain = {
            key: each if type(each) in _ATOMS else self.plain(each) for key, each in value.items()
        }
        return {TAG: "dict", "value": plain} if TAG in plain else plain

    def _learnt(self, kind: type) -> Callable[[Any], Any] | None:
        """How a class is stored that is not in the table; None: as the vault does it."""
        found = self._found(kind)
        if found is not None:
            self._plain[kind] = found
        return found

    def _found(self, kind: type) -> Callable[[Any], Any] | None:
        if issubclass(kind, lc.BaseMessage):  # a user's own comes back as the one it is made of
            known = next((each for each in kind.__mro__ if each in self._plain), None)
            return None if known is None else self._plain[known]
        if issubclass(kind, enum.Enum):
            return lambda value: {
                TAG: "enum",
                "name": _name(kind),
                "value": self.plain(value.value),
            }
        if issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind):
            return lambda value: self._fields(value, _name(kind))
        if issubclass(kind, BaseException):
            return repr  # LangGraph keeps it to tell of it, never to raise it
        if issubclass(kind, pathlib.PurePath):
            return lambda value: self._tagged("path", str(value))
        base = next((each for each in kind.__mro__ if each in self._plain), None)
        return None if base is None else self._plain[base]

    def _fields(self, value: Any, name: str) -> dict[str, Any]:
        names = type(value).model_fields if isinstance(value, BaseModel) else _names(type(value))
        fields = {each: self.plain(getattr(value, each)) for each in names if hasattr(value, each)}
        extra = getattr(value, "__pydantic_extra__", None) or {}
        fields |= {key: self.plain(each) for key, each in extra.items()}
        return {TAG: "object", "name": name, "fields": fields}

    def _object(self, data: dict[str, Any]) -> Any:
        fields = self._items(data["fields"])
        known = self._types.get(data["name"])
        if known is None:
            return fields
        try:
            if issubclass(known, BaseModel):
                return known.model_validate(fields)
            taken = _names(known, only_init=True)
            made = known(**{name: each for name, each in fields.items() if name in taken})
            for name in fields.keys() - set(taken):
                object.__setattr__(made, name, fields[name])
            return made
        except (TypeError, ValueError) as error:
            raise hardsave.Misuse(
                f"stored fields {sorted(fields)} do not make a {data['name']}: {error}; "
                "open the saver without this type to get plain data"
            ) from error

    def _enum(self, data: dict[str, Any]) -> Any:
        value, known = self.revived(data["value"]), self._types.get(data["name"])
        return value if known is None else known(value)

    def _tagged(self, tag: str, value: Any, maxlen: int | None = None) -> dict[str, Any]:
        plain = {TAG: tag, "value": self.plain(value)}
        return {**plain, "maxlen": maxlen} if tag == "deque" else plain

    def _message_of(self, name: str, kind: type[lc.BaseMessage]) -> Callable[[Any], Any]:
        usual = {
            key: field.get_default(call_default_factory=True) for key, field in _declared(kind)
        }
        atoms, plain = _ATOMS, self.plain

        def message(value: lc.BaseMessage) -> dict[str, Any]:
            made: dict[str, Any] = {TAG: name, "type": value.type}
            for key, each in value.__dict__.items():
                if key not in usual:
                    made.setdefault(_EXTRA, {})[key] = plain(each)
                elif each != usual[key]:
                    made[key] = each if type(each) in atoms else plain(each)
            if value.__pydantic_extra__:
                made.setdefault(_EXTRA, {}).update(self._items_of(value.__pydantic_extra__))
            return made

        return message

    def _items_of(self, extra: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self.plain(each) for key, each in extra.items()}

    def _message_from(self, kind: type[lc.BaseMessage]) -> Callable[[dict[str, Any]], Any]:
        """A message as it was made once. Its class checks nothing again: that is much slower, and
        was done."""
        declared = frozenset(kind.model_fields)
        usual = {
            key: field.get_default(call_default_factory=True) for key, field in _declared(kind)
        }
        usual |= {key: "" for key, field in _declared(kind) if field.is_required()}
        fresh = [(key, type(each)) for key, each in usual.items() if type(each) in (list, dict)]
        atoms, revived, new = _ATOMS, self.revived, kind.__new__
        put = object.__setattr__

        def message(data: dict[str, Any]) -> lc.BaseMessage:
            fields = usual.copy()
            for key, make in fresh:
                fields[key] = make()
            given: set[str] = set()
            extra: dict[str, Any] = {}
            for key, each in data.items():
                if key in declared:
                    given.add(key)
                    fields[key] = each if type(each) in atoms else revived(each)
                elif key == _EXTRA and type(each) is dict:
                    extra = self._items(each)
            made = new(kind)
            put(made, "__dict__", fields)
            put(made, "__pydantic_fields_set__", given)
            put(made, "__pydantic_extra__", extra)
            put(made, "__pydantic_private__", None)
            return made

        return message

    def _part_of(self, name: str, fields: tuple[str, ...]) -> Callable[[Any], Any]:
        def part(value: Any) -> dict[str, Any]:
            said = {each: getattr(value, each, None) for each in fields}
            kept = {
                key: self.plain(each) for key, each in said.items() if not isinstance(each, type)
            }
            return {TAG: name, **{key: each for key, each in kept.items() if each is not None}}

        return part

    def _part_from(self, part: type[Any]) -> Callable[[dict[str, Any]], Any]:
        names = next(fields for each, fields in _PARTS.values() if each is part)

        def revive(data: dict[str, Any]) -> Any:
            fields = {key: self.revived(data[key]) for key in names if key in data}
            if part in (Overwrite, _DeltaSnapshot, Interrupt):
                fields.setdefault("value", None)
            elif part is Send:
                fields.setdefault("arg", None)
            return part(**fields)

        return revive

    def _text_of(self, name: str) -> Callable[[Any], Any]:
        return lambda value: {TAG: name, "value": str(value)}

    def _address_from(self, address: Callable[[str], Any]) -> Callable[[dict[str, Any]], Any]:
        return lambda data: address(data["value"])


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _declared(kind: type[BaseModel]) -> Iterable[tuple[str, FieldInfo]]:
    return kind.model_fields.items()


def _names(kind: Any, *, only_init: bool = False) -> list[str]:
    return [each.name for each in dataclasses.fields(kind) if each.init or not only_init]
