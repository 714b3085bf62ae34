"""Whether a history has grown, or was rewritten. Pure."""

from collections.abc import Sequence
from typing import Any


def tail(before: Sequence[Any], now: Sequence[Any]) -> list[Any] | None:
    """What `now` has behind `before`; None if it does not begin with it."""
    if len(now) < len(before) or list(now[: len(before)]) != list(before):
        return None
    return list(now[len(before) :])
