"""Any state as JSON has it. Pure."""

import base64
import math
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime
from typing import Any


def base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def json_ready(value: Any, *, spelt: Callable[[bytes], str] = base64_text) -> Any:
    """Any state as JSON has it. One way only: bytes become base64, keys become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes):
        return spelt(value)
    if isinstance(value, Mapping):
        return {_key(key): json_ready(item, spelt=spelt) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted((json_ready(item, spelt=spelt) for item in value), key=repr)
    if isinstance(value, Sequence):
        return [json_ready(item, spelt=spelt) for item in value]
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(json_ready(key))
