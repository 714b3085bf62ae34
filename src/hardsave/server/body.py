"""Bodies of requests as data. Strict: what two programs could read differently is refused. Pure."""

import json
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from hardsave.objects import depth
from hardsave.server.errors import Refused

_MOST_FIELDS = 100
_DEEPEST = 100  # levels: what handlers do with it may recurse
DEEPEST_VALUE = depth.DEEPEST  # of a value that `from_json` reads
_LARGEST = 1 << 63  # a store has no larger numbers


def read_json(data: bytes, *, deepest: int = _DEEPEST) -> dict[str, Any]:
    """A JSON object, of plain values that can be stored."""
    value = read_value(data, deepest=deepest)
    if not isinstance(value, dict):
        raise _malformed("it is no object, {…}")
    return value


def read_value(data: bytes, what: str = "what was sent", *, deepest: int = _DEEPEST) -> Any:
    """Any JSON, of plain values that can be stored."""
    try:
        value = json.loads(
            data.decode(),
            object_pairs_hook=_unique,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_whole,
        )
        _check(value, deepest)
    except RecursionError as error:
        raise _malformed("it is nested too deeply", what) from error
    except ValueError as error:  # also of a text that is no UTF-8
        raise _malformed(_first_line(error), what) from error
    return value


def read_form(data: bytes, *, errors: str = "strict") -> dict[str, str]:
    """The fields of a form, or of a query. `errors`: what becomes of bytes that are no UTF-8."""
    try:
        pairs = parse_qsl(
            data.decode("ascii"),
            keep_blank_values=True,
            errors=errors,
            max_num_fields=_MOST_FIELDS,
        )
        return dict(_unique(pairs))
    except ValueError as error:
        raise _malformed(_first_line(error)) from error


def _malformed(why: str, what: str = "what was sent") -> Refused:
    return Refused(400, "malformed", f"{what} cannot be read: {why}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(pairs)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _whole(text: str) -> int:
    number = int(text) if len(text) < 30 else _LARGEST
    if not -_LARGEST <= number < _LARGEST:
        raise ValueError("a number is too large")
    return number


def _check(value: Any, deepest: int) -> None:
    """No text has half of a character (a lone surrogate), and nothing is nested past the limit."""
    level = [value]
    for _ in range(deepest):
        if not level:
            return
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                item.encode()
            elif isinstance(item, dict):
                below += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                below += item
        level = below
    raise ValueError("it is nested too deeply")
