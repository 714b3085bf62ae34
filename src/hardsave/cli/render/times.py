"""Times as people write them: `5 minutes ago`, `--before 2h`. Pure: the clock is passed in."""

import re
from datetime import UTC, datetime, timedelta

from hardsave.errors import Misuse
from hardsave.wording import ago

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?P<number>[0-9]{1,6}(?:\.[0-9]+)?)(?P<unit>[smhdw])")
_AGO = re.compile(r"(?P<number>[0-9]{1,6}) (?P<unit>[smhdw])[a-z]* ago")
_CLOCK = re.compile(r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})")
_DAYS = {"today": 0, "yesterday": 1}


def briefly(then: datetime, now: datetime) -> str:
    """How long ago, in a few letters: `58s`, `3h`, `2mo`."""
    number, _, rest = ago(then, now).partition(" ")
    if not number.isdigit():
        return "now" if number == "now" else "?"
    return f"{number}{rest[:2] if rest.startswith('mo') else rest[:1]}"


def span(text: str) -> timedelta:
    """A length of time: `90s`, `15m`, `2h`, `3d`, `1w`."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise Misuse(f"{text!r} is no length of time; write one such as 90s, 15m, 2h, 3d or 1w")
    return timedelta(seconds=float(found["number"]) * _UNITS[found["unit"]])


def moment(text: str, now: datetime) -> datetime:
    """A point in time: so long ago, a time of the day, the beginning of a day, or a date and
    time; without a zone it is local time. A time of the day is the last one that has passed."""
    said = text.strip()
    ago = _AGO.fullmatch(said)
    try:
        if ago is not None or _SPAN.fullmatch(said):
            return now - span(said if ago is None else f"{ago['number']}{ago['unit']}")
        found = _of_a_day(said, now.astimezone()) or datetime.fromisoformat(said)
        return found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Misuse(
            f"{text!r} is no time; write how long ago (15m, 2h, 3d), 14:00, today, yesterday, or "
            "2026-01-31T14:00"
        ) from error


def coming(text: str, now: datetime) -> datetime:
    """A point in time for what is still to happen: in so long, a time of the day, or a date and
    time; without a zone it is local time. A time of the day is the next one."""
    said = text.strip()
    try:
        if _SPAN.fullmatch(said):
            return now + span(said)
        if _CLOCK.fullmatch(said):
            last = moment(said, now).astimezone().replace(tzinfo=None)
            return (last + timedelta(days=1)).astimezone(UTC)
        return datetime.fromisoformat(said).astimezone(UTC)
    except (Misuse, ValueError, OverflowError) as error:
        raise Misuse(
            f"{text!r} is no time to come; write in how long (15m, 2h, 3d), 14:00, or "
            "2026-01-31T14:00"
        ) from error


def expiry(text: str | None, now: datetime) -> datetime | None:
    """When something expires, as it was typed; None: never. `Misuse` if that has passed."""
    ends = None if text is None else coming(text, now)
    if ends is not None and ends <= now:
        raise Misuse(f"{text!r} has passed already; name a time to come, such as 30d")
    return ends


def expires(ends: datetime | None, now: datetime) -> str:
    """The same as it is listed; nothing if it never does."""
    if ends is None:
        return ""
    return f"{'expired' if ends <= now else 'expires'} {ends.astimezone():%Y-%m-%d %H:%M}"


def _of_a_day(said: str, now: datetime) -> datetime | None:
    """A word for a day, or a time on the clock. Days differ in length, so they are counted on the
    calendar, and the zone's offset is that of the day in question."""
    clock = _CLOCK.fullmatch(said)
    if clock is None and said not in _DAYS:
        return None
    day = now.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    if clock is None:
        return (day - timedelta(days=_DAYS[said])).astimezone()
    found = day.replace(hour=int(clock["hour"]), minute=int(clock["minute"]))
    if found.astimezone() > now:
        found -= timedelta(days=1)
    return found.astimezone()


def local(then: datetime) -> str:
    """A moment on the reader's own clock."""
    return then.astimezone().strftime("%Y-%m-%d %H:%M:%S")
