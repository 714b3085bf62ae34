"""Values that msgpack does not know: what each is written as, and how it is read again.

What stands in a table here has a code of its own in `wire`. Objects and enum members are not
among them: their classes decide, see `types`.
"""

import datetime
import os
import re
import uuid
from collections.abc import Callable, Collection
from functools import cache
from typing import TYPE_CHECKING, Any

from hardsave.errors import Misuse
from hardsave.objects import wire

if TYPE_CHECKING:
    import decimal
    import zoneinfo

Convert = Callable[[Any], tuple[int | None, Any]]
"""(extension code, bytes or a value to encode inside it); code None: plain data."""


def _datetime_parts(moment: datetime.datetime) -> list[Any]:
    return [moment.isoformat(), moment.fold, _zone_name(moment.tzinfo)]


def _zone_name(zone: datetime.tzinfo | None) -> str | None:
    """What a zone is called in the system's database; None for a bare offset."""
    if zone is None or zone is datetime.UTC:
        return None
    import zoneinfo  # a program with such a zone has loaded it already

    return zone.key if isinstance(zone, zoneinfo.ZoneInfo) else None


def _revive_datetime(parts: list[Any]) -> datetime.datetime:
    text, fold, zone = parts
    moment = datetime.datetime.fromisoformat(text)
    moment = moment.replace(fold=fold, tzinfo=_offset(text, moment.tzinfo))
    known = None if zone is None else _zone(zone)
    return moment if known is None else moment.replace(tzinfo=known)


def _offset(text: str, parsed: datetime.tzinfo | None) -> datetime.tzinfo | None:
    """The offset at the end of an ISO text; Python reads one below a second as none."""
    if parsed is not datetime.UTC or text[-15:-6] != "00:00:00.":
        return parsed
    return datetime.timezone(datetime.timedelta(microseconds=int(text[-16] + text[-6:])))


def _zone(name: str) -> "zoneinfo.ZoneInfo | None":
    """A time zone; None if this machine does not know it (an offset is right all the same).

    Only those that lie in the system's database: for others `ZoneInfo` would import a package
    by the name that was stored.
    """
    import zoneinfo

    parts = name.split("/")
    if not all(re.fullmatch(r"[A-Za-z0-9_+-]+", part) for part in parts):
        return None
    if not any(os.path.isfile(os.path.join(root, *parts)) for root in zoneinfo.TZPATH):
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _timedelta_parts(span: datetime.timedelta) -> list[int]:
    return [span.days, span.seconds, span.microseconds]


def _time_parts(time: datetime.time) -> list[Any]:
    return [time.isoformat(), time.fold, _zone_name(time.tzinfo)]


def _revive_time(parts: list[Any]) -> datetime.time:
    text, fold, zone = parts
    time = datetime.time.fromisoformat(text)
    time = time.replace(fold=fold, tzinfo=_offset(text, time.tzinfo))
    return time if zone is None else time.replace(tzinfo=_zone(zone))


def _int_bytes(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def revive_map(flat: list[Any]) -> dict[Any, Any]:
    found = dict(zip(map(hashable, flat[::2]), flat[1::2], strict=True))
    _check_distinct(found, flat[::2])
    return found


def revive_set(items: list[Any]) -> set[Any]:
    found = set(map(hashable, items))
    _check_distinct(found, items)
    return found


def _check_distinct(found: Collection[Any], stored: list[Any]) -> None:
    """Members of unregistered enums come back as values, which others may equal."""
    if len(found) != len(stored):
        raise Misuse(
            f"of {len(stored)} stored keys or members only {len(found)} are distinct as plain "
            "data; register their classes to load them"
        )


def hashable(value: Any) -> Any:
    """Keys and members of unregistered classes: their fields as a tuple of pairs."""
    try:
        hash(value)
    except TypeError:
        if isinstance(value, dict):
            return tuple((name, hashable(field)) for name, field in value.items())
        return tuple(map(hashable, value)) if type(value) is tuple else value
    return value


def _int_parts(number: int) -> tuple[int | None, Any]:
    number = int.__int__(number)
    return (None, number) if -(1 << 63) <= number < 1 << 64 else (wire.INT, _int_bytes(number))


def _decimal_bytes(number: "decimal.Decimal") -> bytes:
    """Its text; the exponent is a capital in every decimal context."""
    return str(number).replace("e", "E").encode()


def _revive_decimal(data: bytes) -> Any:
    from decimal import Decimal

    return Decimal(str(data, "ascii"))


@cache
def conversions() -> tuple[tuple[type, Convert], ...]:
    """What becomes of values that are not plain data, by their class.

    Order matters: datetime is a date, bool and IntEnum are ints (enums were taken out before).
    """
    from decimal import Decimal  # most states are plain data, and never ask

    return (
        (tuple, lambda items: (wire.TUPLE, list(items))),
        (set, lambda items: (wire.SET, list(items))),
        (frozenset, lambda items: (wire.FROZENSET, list(items))),
        (datetime.datetime, lambda moment: (wire.DATETIME, _datetime_parts(moment))),
        (datetime.date, lambda day: (wire.DATE, day.isoformat().encode())),
        (datetime.time, lambda time: (wire.TIME, _time_parts(time))),
        (datetime.timedelta, lambda span: (wire.TIMEDELTA, _timedelta_parts(span))),
        (uuid.UUID, lambda value: (wire.UUID, value.bytes)),
        (Decimal, lambda number: (wire.DECIMAL, _decimal_bytes(number))),
        (int, _int_parts),
        (str, lambda value: (None, str.__str__(value))),
        (float, lambda value: (None, float.__float__(value))),
        (bytes, lambda value: (None, bytes(value))),
        (list, lambda value: (None, list(value))),
        (dict, lambda value: (None, dict(value))),
    )


@cache
def exactly() -> dict[type, Convert]:
    """The same, for what is of the class itself."""
    return dict(conversions())


REVIVALS: dict[int, Callable[[Any], Any]] = {
    wire.TUPLE: tuple,
    wire.SET: revive_set,
    wire.FROZENSET: lambda items: frozenset(revive_set(items)),
    wire.MAP: revive_map,
    wire.TEXT: lambda data: str(data, "utf-8", "surrogatepass"),
    wire.INT: lambda data: int.from_bytes(data, "big", signed=True),
    wire.DATETIME: _revive_datetime,
    wire.DATE: lambda data: datetime.date.fromisoformat(str(data, "ascii")),
    wire.TIME: _revive_time,
    wire.TIMEDELTA: lambda parts: datetime.timedelta(*parts),
    wire.UUID: lambda data: uuid.UUID(bytes=bytes(data)),
    wire.DECIMAL: _revive_decimal,
}
