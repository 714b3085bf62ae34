"""Any value that a state can hold as strict JSON, and back. Pure.

JSON has texts, finite numbers, lists, and objects with texts as keys, and many programs read whole
numbers as floats. Everything else is spelt as an object with one key, its tag, such as
`{"$bytes": "AP8="}`. A dict that looks like one is spelt as `$map`, so no value can be taken for
another: `from_json(to_json(value))` is the value, of the same types.

`document` is for answers of ours, with values in them that `to_json` has spelt.
"""

import base64
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import chain
from typing import Any
from uuid import UUID

from hardsave.errors import HardsaveError, Misuse
from hardsave.objects import wire
from hardsave.objects.codec import Codec, refusal
from hardsave.objects.conversions import REVIVALS, conversions
from hardsave.objects.types import DEFAULT_TYPES, Types, fields_of
from hardsave.objects.view import StateList, StateMap, plain
from hardsave.tuples import NamedTuple

DEEPEST = 150
"""Levels of JSON; what lies deeper is spelt as the bytes that a store would keep: readers of JSON
call themselves for each level, and many stop at some hundreds."""

_DEEPEST_OF_OURS = 40  # what an answer lays around a value; `depth.loads` reads both together
_EXACT = 1 << 53  # whole numbers up to here are exact also where all numbers are floats
_DECIMAL_BITS = 2_000  # Python refuses decimal numbers of many digits; hexadecimal ones never


class _Form(NamedTuple):
    """How values of one kind, which the codec has a code for, are spelt."""

    code: int
    show: Callable[[Any], Any] = lambda content: content  # what the codec would encode, as JSON
    read: Callable[[Any], Any] = lambda content: content


def _show_moment(parts: list[Any]) -> Any:
    """ISO 8601 alone says all of a moment without a named zone, and not in a repeated hour."""
    return parts[0] if parts[1:] == [0, None] else parts


def _read_moment(content: Any) -> list[Any]:
    return [content, 0, None] if isinstance(content, str) else content


def _ascii(content: bytes) -> str:
    return str(content, "ascii")


_FORMS = {
    "$tuple": _Form(wire.TUPLE),
    "$set": _Form(wire.SET),
    "$frozenset": _Form(wire.FROZENSET),
    "$datetime": _Form(wire.DATETIME, _show_moment, _read_moment),
    "$date": _Form(wire.DATE, _ascii, str.encode),
    "$time": _Form(wire.TIME, _show_moment, _read_moment),
    "$timedelta": _Form(wire.TIMEDELTA),
    "$uuid": _Form(wire.UUID, lambda data: str(UUID(bytes=data)), lambda text: UUID(text).bytes),
    "$decimal": _Form(wire.DECIMAL, _ascii, str.encode),
}
_TAG_OF = {form.code: tag for tag, form in _FORMS.items()}
_HOLDERS = {"$tuple", "$set", "$frozenset"}  # what is in them is spelt, too


def to_json(value: Any, types: Types = DEFAULT_TYPES) -> Any:
    """The value as JSON has it; `from_json` gives it back. `Misuse` for what no state can hold."""
    return _Spelling(types, is_document=False).of(value, 0)


def document(answer: Any) -> Any:
    """An answer of ours as strict JSON: what `to_json` has made stays, tuples are lists."""
    return _Spelling(DEFAULT_TYPES, is_document=True).of(answer, 0)


def is_document(answer: Any) -> bool:
    """Whether `document` has nothing to do, tuples aside, which JSON writes as lists. Nearly all
    answers are such, and this tells it in a quarter of the time: level by level, all values of one
    kind together."""
    level = [answer]
    for _ in range(DEEPEST + _DEEPEST_OF_OURS):
        if not level:
            return True
        kinds: defaultdict[type, list[Any]] = defaultdict(list)
        for value in level:
            kinds[type(value)].append(value)
        if not _are_plain(kinds):
            return False
        below = chain.from_iterable(map(dict.values, kinds[dict]))
        level = [*below, *chain.from_iterable(kinds[list]), *chain.from_iterable(kinds[tuple])]
    return False


def _are_plain(kinds: Mapping[type, list[Any]]) -> bool:
    if not kinds.keys() <= _PLAIN:
        return False
    numbers, keys = kinds.get(int, [0]), set().union(*kinds.get(dict, ()))
    return (
        min(numbers) >= -_EXACT
        and max(numbers) <= _EXACT
        and all(map(math.isfinite, kinds.get(float, ())))
        and all(type(key) is str for key in keys)
        and _is_text("".join((*kinds.get(str, ()), *keys)))
    )


_PLAIN = frozenset({str, int, float, bool, type(None), dict, list, tuple})


def from_json(data: Any, types: Types = DEFAULT_TYPES) -> Any:
    """The value that `to_json` has spelt. Classes come back as themselves if they are registered,
    else as their fields. `Misuse` for what it cannot have spelt."""
    try:
        return _Reading(types).of(data)
    except HardsaveError as error:
        raise Misuse(f"this is no value that Hardsave has spelt: {error}") from error
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise Misuse(f"this is no value that Hardsave has spelt: {error}") from error
    except RecursionError as error:
        raise Misuse("this is nested deeper than anything that Hardsave spells") from error


class _Spelling:
    """From values to JSON. `depth` counts levels of JSON, not of values."""

    def __init__(self, types: Types, *, is_document: bool) -> None:
        self._types = types
        self._is_document = is_document
        self._deepest = DEEPEST + _DEEPEST_OF_OURS if is_document else DEEPEST

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return value if value.isascii() else _text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -_EXACT <= value <= _EXACT else {"$int": _digits(value)}
        if kind is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if depth >= self._deepest:
            return self._stored(value)
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list or (self._is_document and isinstance(value, tuple)):
            return [self.of(item, depth + 1) for item in value]
        return self._other(value, depth)

    def _stored(self, value: Any) -> dict[str, str]:
        return {"$stored": _base64(Codec(self._types).encode(plain(value), "value"))}

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        if not all(type(key) is str and _is_text(key) for key in value):
            return self._pairs(value, depth)
        if len(value) == 1 and not self._is_document and not TAGS.isdisjoint(value):
            return self._pairs(value, depth)
        return {key: self.of(item, depth + 1) for key, item in value.items()}

    def _pairs(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        below = depth + 3
        return {"$map": [[self.of(k, below), self.of(v, below)] for k, v in value.items()]}

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            return {"$bytes": _base64(bytes(value))}
        if isinstance(value, StateMap | StateList):
            return self.of(value.load(), depth)
        if isinstance(value, Enum):
            name = self._types.name_of(type(value))
            return {"$enum": [name, value.name, self.of(_unwrapped(value), depth + 2)]}
        for cls, parts in conversions():
            if isinstance(value, cls):
                return self._coded(*parts(value), depth)
        if isinstance(value, Mapping):  # one that is for reading alone
            return self._mapping(value, depth)
        fields = fields_of(value)
        if fields is None:
            raise Misuse(refusal(value))
        return {"$object": [self._types.name_of(type(value)), self.of(fields, depth + 2)]}

    def _coded(self, code: int | None, content: Any, depth: int) -> Any:
        """What the codec has a code for; without one it is plain data, of a class of its own."""
        if code is None or code == wire.INT:
            return self.of(int.from_bytes(content, "big", signed=True) if code else content, depth)
        tag = _TAG_OF[code]
        if tag not in _HOLDERS:
            return {tag: _FORMS[tag].show(content)}
        items = [self.of(item, depth + 2) for item in content]
        return {tag: items if code == wire.TUPLE else sorted(items, key=json.dumps)}


class _Reading:
    """From JSON to values."""

    def __init__(self, types: Types) -> None:
        self._types = types

    def of(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self.of(item) for item in data]
        if not isinstance(data, dict):
            return _plain(data)
        if not all(isinstance(key, str) for key in data):
            raise TypeError("the keys of an object are texts")
        if len(data) == 1:
            [(tag, content)] = data.items()
            if tag in TAGS:
                return self._tagged(tag, content)
        return {key: self.of(item) for key, item in data.items()}

    def _tagged(self, tag: str, content: Any) -> Any:
        if tag in _FORMS:
            form = _FORMS[tag]
            if tag in _HOLDERS:
                return REVIVALS[form.code](self.of(_list(content)))
            return REVIVALS[form.code](form.read(content))
        match tag:
            case "$map":
                return self._pairs(_list(content))
            case "$object":
                name, fields = _list(content)
                fields = self.of(fields)
                _check_kinds(tag, (name, str), (fields, dict))
                return self._types.object_from(name, fields)
            case "$enum":
                name, member, value = _list(content)
                _check_kinds(tag, (name, str), (member or "", str))  # a flag may have no name
                return self._member(name, member, self.of(value))
            case "$stored":
                return Codec(self._types).decode(_unbase64(content))
        return _ATOMS[tag](content)

    def _pairs(self, content: list[Any]) -> Any:
        parts = [self.of(part) for pair in content for part in _pair(pair)]
        keys = parts[::2]
        if all(type(key) is str and _is_text(key) for key in keys) and not (
            len(keys) == 1 and keys[0] in TAGS
        ):
            raise ValueError("a $map has a key that no object of JSON has")
        return REVIVALS[wire.MAP](parts)

    def _member(self, name: str, member: Any, value: Any) -> Any:
        found = self._types.enum_from(name, member, value)
        if isinstance(found, Enum) and found.name != member:
            raise ValueError(f"{found!r} is not called {member!r}")
        return found


def _plain(data: Any) -> Any:
    if data is None or isinstance(data, str | bool | int | float):
        return data
    raise TypeError(f"JSON has no {type(data).__name__}")


def _list(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise TypeError(f"a list is missing, not {type(content).__name__}")
    return content


def _pair(content: Any) -> list[Any]:
    if len(_list(content)) != 2:
        raise ValueError("a $map is a list of pairs")
    return _list(content)


def _check_kinds(tag: str, *given: tuple[Any, type]) -> None:
    for part, kind in given:
        if not isinstance(part, kind):
            raise TypeError(f"a part of {tag} is a {kind.__name__}, not {type(part).__name__}")


def _digits(number: int) -> str:
    return str(number) if number.bit_length() < _DECIMAL_BITS else hex(number)


def _text(value: str) -> Any:
    """A text; half of a character (a lone surrogate: in file names a byte that is no UTF-8) is
    written out, as `\\udce9`."""
    if _is_text(value):
        return value
    return {"$text": value.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()}


def _read_text(spelt: str) -> str:
    found = re.sub(r"\\(?:\\|u[0-9a-f]{4})", _character, spelt)
    if _text(found) != {"$text": spelt}:
        raise ValueError(f"{spelt[:40]!r} is no text with half of a character")
    return found


def _character(found: re.Match[str]) -> str:
    return "\\" if found[0] == "\\\\" else chr(int(found[0][2:], 16))


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_int(text: str) -> int:
    found = int(text, 0)
    if -_EXACT <= found <= _EXACT or _digits(found) != text:
        raise ValueError(f"{text[:40]!r} is no whole number that JSON lacks")
    return found


def _read_float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise ValueError(f"{text!r} is no float that JSON lacks")
    return float(text)  # each NaN a new one: as keys they are distinct


def _unwrapped(value: Any) -> Any:
    return _unwrapped(value.value) if isinstance(value, Enum) else value


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_ATOMS: dict[str, Callable[[Any], Any]] = {
    "$bytes": _unbase64,
    "$float": _read_float,
    "$int": _read_int,
    "$text": _read_text,
}
TAGS = frozenset({*_FORMS, *_ATOMS, "$map", "$object", "$enum", "$stored"})
"""What a dict with one key must not be called, unless it is one of these spellings."""
