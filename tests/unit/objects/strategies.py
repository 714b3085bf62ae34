"""Storable values of every kind, and an equality that also sees types."""

import dataclasses
import datetime
import decimal
import enum
import struct
import zoneinfo
from typing import Any

import msgspec
import pydantic
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.unit.objects import models


def examples(count: int) -> settings:
    """`count` examples, however slow the machine is at the moment."""
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


ZONES = tuple(
    zoneinfo.ZoneInfo(key)
    for key in ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "UTC")
    if key in zoneinfo.available_timezones()
)
OFFSETS = (
    datetime.UTC,
    datetime.timezone(datetime.timedelta(hours=-9, minutes=-30)),
    datetime.timezone(datetime.timedelta(hours=1, seconds=28, microseconds=5)),
)
BORDERS = sorted(
    {
        sign * (1 << bits) + near
        for bits in (0, 5, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 1000)
        for sign in (1, -1)
        for near in (-1, 0, 1)
    }
)

integers = st.integers() | st.sampled_from(BORDERS) | st.integers(-(1 << 300), 1 << 300)
floats = st.floats() | st.sampled_from([0.0, -0.0, float("inf"), float("-inf")])
texts = st.text(st.characters(), max_size=40)  # lone surrogates included
moments = st.datetimes(timezones=st.sampled_from([None, *OFFSETS, *ZONES]))
times = st.times(timezones=st.sampled_from([None, *OFFSETS]))
folds = st.builds(lambda value, fold: value.replace(fold=fold), moments | times, st.integers(0, 1))
rights = st.builds(models.Right, st.integers(0, 7))
members = st.sampled_from([*models.Colour, *models.Level, *models.Mood]) | rights
quiet_decimals = st.decimals(allow_nan=False) | st.sampled_from(
    [decimal.Decimal(text) for text in ("-0", "0E+7", "1.10", "Infinity", "1E+999999")]
)
odd_decimals = st.sampled_from(
    [decimal.Decimal(text) for text in ("NaN", "-NaN", "NaN123", "sNaN", "-sNaN7")]
)

hashable_scalars = (
    st.none()
    | st.booleans()
    | integers
    | floats
    | texts
    | st.binary(max_size=40)
    | moments
    | folds
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | quiet_decimals
    | members
)
scalars = hashable_scalars | odd_decimals

hashables = st.recursive(
    hashable_scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(texts, inner, max_size=5)
        | st.dictionaries(hashables, inner, max_size=5)
        | st.sets(hashables, max_size=5)
        | st.frozensets(hashables, max_size=5)
        | st.builds(models.Record, inner, inner)
        | st.builds(models.Slotted, inner)
        | st.builds(lambda a, n: models.Counted(a).with_length(n), inner, st.integers())
        | st.builds(models.Note, content=inner)
        | st.builds(models.Open, content=inner, extra=inner)
        | st.builds(models.Packet, inner, st.integers())
    )


storable = st.recursive(scalars, _containers, max_leaves=12)
"""Any value that comes back as itself, nested in any way."""


def portrait(value: object) -> Any:
    """A description that is equal for two values only if their types are equal as well.

    Unlike `==` it tells 1 from True and from 1.0, 0.0 from -0.0 and one order of keys from
    another, and finds NaN equal to NaN.
    """
    kind = type(value).__qualname__
    match value:
        case enum.Enum():
            return kind, value.name, portrait(value.value)
        case float():
            return kind, "nan" if value != value else struct.pack(">d", value)
        case decimal.Decimal():
            return kind, value.as_tuple()
        case dict():
            return kind, [(portrait(key), portrait(item)) for key, item in value.items()]
        case list() | tuple():
            return kind, [portrait(item) for item in value]
        case set() | frozenset():
            return kind, sorted((portrait(item) for item in value), key=repr)
        case datetime.datetime() | datetime.time():
            zone = value.tzinfo
            name = zone.key if isinstance(zone, zoneinfo.ZoneInfo) else type(zone).__name__
            return kind, value.isoformat(), value.fold, name
    return _fields(value, kind)


def _fields(value: object, kind: str) -> Any:
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return kind, [(name, portrait(getattr(value, name))) for name in names]
    if isinstance(value, pydantic.BaseModel):
        return kind, portrait(dict(value))
    if isinstance(value, msgspec.Struct):
        return kind, [(name, portrait(getattr(value, name))) for name in value.__struct_fields__]
    return kind, value


def messages(count: int, *, size: int = 250, first: int = 0) -> list[dict[str, Any]]:
    """A conversation: each message is an object of its own, and differs from all others."""
    return [
        {"id": n, "role": "user", "seen": 1, "content": f"{n} {n * 7919} ".ljust(size, "x")}
        for n in range(first, first + count)
    ]
