"""JSON as text: for programs in ASCII, for people as they read it. Pure."""

import json
from typing import Any

from hardsave.errors import Misuse
from hardsave.objects import depth
from hardsave.objects.types import DEFAULT_TYPES, Types
from hardsave.values.spelling import document, from_json, is_document, to_json


def dumps(answer: Any, *, indent: int | None = None) -> str:
    """An answer of ours as strict JSON, for programs. Values of users in it are `to_json`'s."""
    told = answer if is_document(answer) else document(answer)
    return json.dumps(told, allow_nan=False, indent=indent)


def loads(text: str | bytes, types: Types = DEFAULT_TYPES) -> Any:
    """What `dumps` has written, with all values in it as they were. `Misuse` if it is none."""
    try:
        data = depth.loads(text)
    except ValueError as error:
        raise Misuse(f"this is no JSON: {error}") from error
    return from_json(data, types)


def shown(value: Any, *, indent: int | None = None) -> str:
    """What a task or an agent has left, as people read it: a text as it is, anything else as
    `readable` has it."""
    return value if isinstance(value, str) else readable(value, indent=indent)


def readable(value: Any, *, indent: int | None = None) -> str:
    """Any value on one line, or on several, as people read it."""
    return json.dumps(to_json(value), ensure_ascii=False, allow_nan=False, indent=indent)
