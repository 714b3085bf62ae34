"""Answers as JSON. The one place, because a browser reads less than Python writes. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hardsave.objects.json_ready import json_ready

_EXACT = 1 << 53  # a browser's numbers are exact up to here


def encoded(body: Any) -> bytes:
    """JSON in ASCII: half of a character (a lone surrogate) is spelt as an escape."""
    return json.dumps(_exact(json_ready(body)), allow_nan=False).encode("ascii")


def _exact(value: Any) -> Any:
    """A whole number that a browser would round, or Python would not print, as a text."""
    if isinstance(value, bool) or not isinstance(value, int | Mapping | Sequence):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else hex(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items()}
    return [_exact(item) for item in value]
