"""Moments as people say them: `5 minutes ago`, `--before 2h`. Pure: the clock is passed in."""

import re
from datetime import UTC, datetime, timedelta

from hardsave.errors import Misuse

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?P<number>[0-9]{1,6}(?:\.[0-9]+)?)(?P<unit>[smhdw])")
_STEPS = (
    (60, 1, "second"),
    (3_600, 60, "minute"),
    (86_400, 3_600, "hour"),
    (7 * 86_400, 86_400, "day"),
    (30 * 86_400, 7 * 86_400, "week"),
    (365 * 86_400, 30 * 86_400, "month"),
)
_YEAR = 365 * 86_400


def ago(then: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = int((now - then).total_seconds())
    if seconds < 0:
        return "in the future"
    if seconds < 1:
        return "now"
    for below, unit, word in _STEPS:
        if seconds < below:
            return _said(seconds // unit, word)
    return _said(seconds // _YEAR, "year")


def _said(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'} ago"


def span(text: str) -> timedelta:
    """A length of time: `90s`, `15m`, `2h`, `3d`, `1w`."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise Misuse(f"{text!r} is no length of time; write one such as 90s, 15m, 2h, 3d or 1w")
    return timedelta(seconds=float(found["number"]) * _UNITS[found["unit"]])


def moment(text: str, now: datetime) -> datetime:
    """A point in time: so long ago, or a date and time; without a zone it is local time."""
    if _SPAN.fullmatch(text.strip()):
        return now - span(text)
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise Misuse(
            f"{text!r} is no time; write how long ago (15m, 2h, 3d), or 2026-01-31T14:00"
        ) from error
    return found.astimezone(UTC)


def local(then: datetime) -> str:
    """A moment on the reader's own clock."""
    return then.astimezone().strftime("%Y-%m-%d %H:%M:%S")
