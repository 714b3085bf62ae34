"""What a request may say: its fields, each with a JSON schema, and how what came is read. Pure.

The schema that a field has here is the one that the OpenAPI document shows, and the one that a
value is checked against: the two cannot differ. It is a small part of JSON Schema, all of which
`objection` knows.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

Schema = Mapping[str, Any]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLAGS = {"true": True, "false": False}
_PATH = "path"  # the format of a text that may be no UTF-8


class Field(NamedTuple):
    """A parameter of a query, or a field of a body."""

    name: str
    schema: Schema
    about: str
    needed: bool = False
    default: Any = None  # what a handler gets where it was left out


def text(name: str, about: str, *, needed: bool = False, most: int = 4_096) -> Field:
    """A text that is not empty, if it was sent."""
    return Field(name, {"type": "string", "minLength": 1, "maxLength": most}, about, needed)


def number(
    name: str, about: str, low: int, high: int, *, default: int | None = None, needed: bool = False
) -> Field:
    schema = {"type": "integer", "minimum": low, "maximum": high}
    if default is not None:
        schema = {**schema, "default": default}
    return Field(name, schema, about, needed, default)


def flag(name: str, about: str) -> Field:
    return Field(name, {"type": "boolean", "default": False}, about, False, False)


def choice(name: str, about: str, *allowed: str, default: str | None = None) -> Field:
    schema: dict[str, Any] = {"type": "string", "enum": list(allowed)}
    if default is not None:
        schema["default"] = default
    return Field(name, schema, about, False, default)


def path(name: str, about: str, *, needed: bool = False) -> Field:
    """A path. In a query it is percent-encoded byte by byte, so it may be one that is no UTF-8."""
    schema = {"type": "string", "format": _PATH, "minLength": 1, "maxLength": 4_096}
    return Field(name, schema, about, needed)


def paths(name: str, about: str, *, most: int = 1_000) -> Field:
    """A list of paths in a body, each as `to_json` spells it."""
    plain = {"type": "string", "minLength": 1, "maxLength": 4_096}
    spelt = {
        "type": "object",
        "properties": {"$text": {"type": "string", "minLength": 1, "maxLength": 32_768}},
        "required": ["$text"],
        "additionalProperties": False,
    }
    items = {"anyOf": [plain, spelt]}
    return Field(
        name, {"type": "array", "items": items, "minItems": 1, "maxItems": most}, about, False
    )


def mapping(name: str, about: str, *, of_texts: bool = False) -> Field:
    """An object: of texts, or of values as `to_json` spells them."""
    schema: dict[str, Any] = {"type": "object"}
    if of_texts:
        schema["additionalProperties"] = {"type": "string"}
    return Field(name, schema, about, False)


def value(name: str, about: str, *, needed: bool = False) -> Field:
    """Any value, as `to_json` spells it."""
    return Field(name, {}, about, needed, ...)


LIMIT = number("limit", "How many at most.", 1, 1_000, default=50)
CURSOR = text("cursor", "The `next` of the page before.")
PAGED = (LIMIT, CURSOR)


def read_query(
    fields: Iterable[Field], given: Mapping[str, str], parse: Callable[[bytes, str], Any]
) -> dict[str, Any]:
    """The values of a query. `Misuse` names what is not known, missing or wrong. `parse` reads the
    JSON that some of them are."""
    known = {field.name: field for field in fields}
    _check_names(known, given, "parameter")
    return {
        name: field.default if name not in given else _read_text(field, given[name], parse)
        for name, field in known.items()
    }


def read_body(fields: Iterable[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a body that was parsed."""
    known = {field.name: field for field in fields}
    _check_names(known, given, "field")
    for name, item in given.items():
        if wrong := objection(known[name].schema, item):
            raise Misuse(f"{name} {wrong}")
    return {name: given.get(name, field.default) for name, field in known.items()}


def _check_names(known: Mapping[str, Field], given: Iterable[str], what: str) -> None:
    given = set(given)
    if unknown := sorted(given - known.keys()):
        names = ", ".join(sorted(known)) or "none"
        raise Misuse(f"{unknown[0]!r} is not a {what} of this; there are: {names}")
    missing = [name for name, field in known.items() if field.needed and name not in given]
    if missing:
        raise Misuse(f"{missing[0]} is missing: {known[missing[0]].about}")


def _read_text(field: Field, given: str, parse: Callable[[bytes, str], Any]) -> Any:
    """A value that came as a text, as one in a query does."""
    kind = field.schema.get("type")
    found: Any = given
    if kind == "integer":
        found = int(given) if _INTEGER.fullmatch(given) else given
    elif kind == "boolean":
        found = _FLAGS.get(given, given)
    elif kind in ("array", "object"):
        found = parse(given.encode("utf-8", "surrogatepass"), field.name)
    if wrong := objection(field.schema, found):
        raise Misuse(f"{field.name} {wrong}")
    return found


# Checking

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_NAMED = {"string": "a text", "integer": "a whole number", "array": "a list", "object": "an object"}
_NAMED |= {"boolean": "true or false", "number": "a number", "null": "null"}


def objection(schema: Schema, value: Any) -> str:
    """What is wrong with a value, to be read behind its name; empty if nothing is."""
    if "anyOf" in schema:
        found = [objection(each, value) for each in schema["anyOf"]]
        return "" if "" in found else found[0]
    kind = schema.get("type")
    if kind is not None and not _is_of(kind, value):
        return f"is {_NAMED[kind]}, not {_shown(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"is one of {', '.join(schema['enum'])}, not {_shown(value)}"
    if isinstance(value, str):
        return _of_text(schema, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_number(schema, value)
    if isinstance(value, list):
        return _of_list(schema, value)
    return _of_object(schema, value) if isinstance(value, dict) else ""


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):  # which Python takes for a number
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _of_text(schema: Schema, value: str) -> str:
    if schema.get("format") != _PATH and not value.isascii() and any(map(_is_half, value)):
        return "is no UTF-8"
    if len(value) < schema.get("minLength", 0):
        return "is empty"
    most = schema.get("maxLength")
    return f"has {most:,} characters at most" if most is not None and len(value) > most else ""


def _is_half(character: str) -> bool:
    """Whether it is half of a character, a lone surrogate: a byte that is no UTF-8 is read so."""
    return "\ud800" <= character <= "\udfff"


def _of_number(schema: Schema, value: float) -> str:
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    return "" if low <= value <= high else f"is from {low} to {high}, not {value}"


def _of_list(schema: Schema, value: list[Any]) -> str:
    low, high = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not low <= len(value) <= high:
        return f"has {low} to {high} items, not {len(value)}"
    found = (objection(schema.get("items", {}), item) for item in value)
    return next((f"has an item that {wrong}" for wrong in found if wrong), "")


def _of_object(schema: Schema, value: dict[str, Any]) -> str:
    every = schema.get("additionalProperties", {})
    own = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"has no {missing[0]}"
    for name, item in value.items():
        wanted = own.get(name, every)
        if wanted is False:
            return f"has {name!r}, which is not known here"
        if wrong := objection(wanted, item):
            return f"has {name!r}, which {wrong}"
    return ""


def _shown(value: Any) -> str:
    return json.dumps(value)[:60]
