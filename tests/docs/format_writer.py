"""The other direction, from docs/format.md alone: the objects of a value, and its address.

Two programs that follow the page must come to the same hash, or they share nothing.
"""

import dataclasses
import datetime
import decimal
import enum
import math
import struct
import uuid
import zlib
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from blake3 import blake3

VALUE, SEQUENCE, LEAF, NODE, EDGE = 0x11, 0x12, 0x13, 0x14, 0x15
REF = b"\xc7\x00\x01"


class Entry(NamedTuple):
    data: bytes
    ref: bytes | None
    covers: int = 1


def address_of(value: Any) -> bytes:
    """Return the address of a state."""
    entry = slot(value, 0)
    return sealed(VALUE, [], entry.data) if entry.ref is None else entry.ref


# Trees


def slot(value: Any, depth: int) -> Entry:
    """Return what stands for a value inside its parent."""
    data = encoded(value)
    if len(data) <= 128:
        return Entry(data, None)
    parts = taken_apart(value)
    if len(data) <= 2048 or parts is None or depth >= 32:
        return Entry(REF, sealed(VALUE, [], data))
    shape, name, items = parts
    entries = [_entry(item, depth + 1) for item in items]
    return Entry(REF, sequence(shape, name, entries, 2 if shape in (4, 5) else 1))


def _entry(item: tuple[Any, ...], depth: int) -> Entry:
    *keys, value = item
    inside = slot(value, depth)
    return Entry(b"".join(encoded(key) for key in keys) + inside.data, inside.ref)


def taken_apart(value: Any) -> tuple[int, str | None, list[tuple[Any, ...]]] | None:
    """Return shape, name and items of a container; None for anything else."""
    if isinstance(value, list):
        return 0, None, [(item,) for item in value]
    if isinstance(value, tuple):
        return 1, None, [(item,) for item in value]
    if isinstance(value, set | frozenset):
        shape = 2 if isinstance(value, set) else 3
        return shape, None, [(item,) for item in sorted(value, key=encoded)]
    if isinstance(value, dict):
        return 4, None, list(value.items())
    if dataclasses.is_dataclass(value):
        return 5, name_of(value), list(fields_of(value).items())
    return None


def sequence(shape: int, name: str | None, items: list[Entry], stride: int) -> bytes:
    """Return the address of a split container."""
    levels = [items]  # what is still open at each level
    level = 0
    while level < len(levels):
        above: list[Entry] = []
        while end := chunk_end(levels[level]):
            above.append(closed(levels[level][:end], level, stride))
            levels[level] = levels[level][end:]
        if above:
            levels.append(above)
        level += 1
    edge: bytes | None = None
    for entries in levels[:0:-1]:
        counts = array([encoded(entry.covers) for entry in entries])
        edge = sealed(EDGE, refs_of(entries, edge), b"\x92" + encoded(edge is not None) + counts)
    head = b"\x95" + encoded(shape) + encoded(name) + encoded(len(items))
    flat = header(0x90, 16, 0xDC, len(levels[0]) * stride) + b"".join(e.data for e in levels[0])
    return sealed(SEQUENCE, refs_of(levels[0], edge), head + encoded(edge is not None) + flat)


def chunk_end(entries: Sequence[Entry]) -> int:
    """Return how many entries the first chunk has; 0 while it is open."""
    weight = 0
    for count, (data, ref, _) in enumerate(entries, 1):
        if ref is not None:
            weight += 256
            boundary = ref[0] < 64
        else:
            weight += len(data)
            boundary = zlib.crc32(data) % 1024 < len(data)
        if count >= 2 and (boundary or weight >= 8192):
            return count
    return 0


def closed(entries: Sequence[Entry], level: int, stride: int) -> Entry:
    """Return the entry of the level above for a closed chunk."""
    covers = sum(entry.covers for entry in entries)
    if level == 0:
        flat = header(0x90, 16, 0xDC, len(entries) * stride) + b"".join(e.data for e in entries)
        return Entry(b"", sealed(LEAF, refs_of(entries), flat), covers)
    counts = array([encoded(entry.covers) for entry in entries])
    return Entry(b"", sealed(NODE, refs_of(entries), counts), covers)


def refs_of(entries: Sequence[Entry], last: bytes | None = None) -> list[bytes]:
    refs = [entry.ref for entry in entries if entry.ref is not None]
    return refs if last is None else [*refs, last]


def sealed(kind: int, refs: list[bytes], payload: bytes) -> bytes:
    """Return the address of an object."""
    count, left = bytearray(), len(refs)
    while left >= 0x80:
        count.append(left & 0x7F | 0x80)
        left >>= 7
    count.append(left)
    return blake3(bytes([kind]) + count + b"".join(refs) + payload).digest(length=20)


# Values


def encoded(value: Any) -> bytes:
    """Return the canonical bytes of a value."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    for cls, encode in _ENCODERS:
        if isinstance(value, cls):
            return encode(value)
    return ext(14, array([encoded(name_of(value)), encoded(fields_of(value))]))


def name_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def fields_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def integer(number: int) -> bytes:
    if not -(1 << 63) <= number < 1 << 64:
        return ext(7, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))
    if -32 <= number < 128:
        return struct.pack("b" if number < 0 else "B", number)
    layouts = "BHIQ" if number >= 0 else "bhiq"
    for mark, layout in enumerate(layouts, 0xCC if number >= 0 else 0xD0):
        try:
            return struct.pack(f">B{layout}", mark, number)
        except struct.error:
            continue
    raise OverflowError(number)


def real(number: float) -> bytes:
    return b"\xcb" + (b"\x7f\xf8" + bytes(6) if math.isnan(number) else struct.pack(">d", number))


def text(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        return ext(6, value.encode("utf-8", "surrogatepass"))
    if len(data) < 32:
        return bytes([0xA0 + len(data)]) + data
    return sized(0xD9, len(data)) + data


def mapping(value: dict[Any, Any]) -> bytes:
    pairs = [encoded(part) for item in value.items() for part in item]
    if all(0xA0 <= key[0] < 0xC0 or 0xD9 <= key[0] <= 0xDB for key in pairs[::2]):
        return header(0x80, 16, 0xDE, len(value)) + b"".join(pairs)
    return ext(5, array(pairs))


def moment(code: int, value: "datetime.datetime | datetime.time") -> bytes:
    zone = value.tzinfo.key if isinstance(value.tzinfo, zoneinfo.ZoneInfo) else None
    return ext(code, encoded([value.isoformat(), value.fold, zone]))


def array(parts: Sequence[bytes]) -> bytes:
    return header(0x90, 16, 0xDC, len(parts)) + b"".join(parts)


def header(small: int, limit: int, large: int, count: int) -> bytes:
    if count < limit:
        return bytes([small + count])
    if count < 1 << 16:
        return struct.pack(">BH", large, count)
    return struct.pack(">BI", large + 1, count)


def sized(first: int, size: int) -> bytes:
    for mark, layout in enumerate("BHI", first):
        if size < 1 << 8 * struct.calcsize(layout):
            return struct.pack(f">B{layout}", mark, size)
    raise OverflowError(size)


def ext(code: int, data: bytes) -> bytes:
    if len(data) in (1, 2, 4, 8, 16):
        return bytes([0xD4 + len(data).bit_length() - 1, code]) + data
    return sized(0xC7, len(data)) + bytes([code]) + data


def elements(value: "set[Any] | frozenset[Any]") -> bytes:
    return array(sorted(encoded(item) for item in value))


_ENCODERS: tuple[tuple[Any, Callable[[Any], bytes]], ...] = (
    (enum.Enum, lambda v: ext(15, encoded([name_of(v), v.name, v.value]))),
    (int, integer),
    (float, real),
    (str, text),
    (bytes, lambda v: sized(0xC4, len(v)) + v),
    (list, lambda v: array([encoded(item) for item in v])),
    (tuple, lambda v: ext(2, array([encoded(item) for item in v]))),
    (set, lambda v: ext(3, elements(v))),
    (frozenset, lambda v: ext(4, elements(v))),
    (dict, mapping),
    (datetime.datetime, lambda v: moment(8, v)),
    (datetime.date, lambda v: ext(9, v.isoformat().encode())),
    (datetime.time, lambda v: moment(10, v)),
    (datetime.timedelta, lambda v: ext(11, encoded([v.days, v.seconds, v.microseconds]))),
    (uuid.UUID, lambda v: ext(12, v.bytes)),
    (decimal.Decimal, lambda v: ext(13, str(v).encode())),
)
