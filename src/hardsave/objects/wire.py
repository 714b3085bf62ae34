"""msgpack headers, Hardsave's extension codes, varints: the smallest pieces of the format."""

import struct
from typing import Any

# Extension codes. Part of the format: never renumber, never reuse.
REF = 1  # empty: "the next reference of this object's envelope"
TUPLE = 2
SET = 3
FROZENSET = 4
MAP = 5  # a dict with a key that is not a plain string: key, value, key, value …
TEXT = 6  # a string with lone surrogates
INT = 7  # an integer beyond 64 bits
DATETIME = 8  # [ISO text, fold, zone name or nil]
DATE = 9
TIME = 10  # [ISO text, fold, zone name or nil]
TIMEDELTA = 11  # [days, seconds, microseconds]
UUID = 12
DECIMAL = 13
OBJECT = 14  # [class name, fields]
ENUM = 15  # [class name, member, value]

NESTED = frozenset({TUPLE, SET, FROZENSET, MAP, DATETIME, TIME, TIMEDELTA, OBJECT, ENUM})
"""Codes whose content is itself one msgpack value."""

REF_MARK = b"\xc7\x00\x01"


class Verbatim:
    """An extension value that was not revived: it encodes to the very bytes it came from."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: Any) -> None:
        self.code = code
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Verbatim) and self.code == other.code and self.data == other.data

    def __hash__(self) -> int:
        return hash((self.code, self.data))


class Kept(Verbatim):
    """One whose content was read, as a list. Each is itself alone: what is in it may be equal
    to Python and not the same, as 1 and True are."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def array_header(count: int) -> bytes:
    if count < 16:
        return bytes((0x90 | count,))
    return struct.pack(">BH", 0xDC, count) if count < 1 << 16 else struct.pack(">BI", 0xDD, count)


def map_header(count: int) -> bytes:
    if count < 16:
        return bytes((0x80 | count,))
    return struct.pack(">BH", 0xDE, count) if count < 1 << 16 else struct.pack(">BI", 0xDF, count)


def array(parts: list[bytes]) -> bytes:
    """An array of already encoded items."""
    return b"".join([array_header(len(parts)), *parts])


def ext_header(code: int, size: int) -> bytes:
    fixed = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}.get(size)
    if fixed is not None:
        return bytes((fixed, code))
    if size < 1 << 8:
        return bytes((0xC7, size, code))
    if size < 1 << 16:
        return struct.pack(">BHB", 0xC8, size, code)
    return struct.pack(">BIB", 0xC9, size, code)


def ext(code: int, data: bytes) -> bytes:
    return ext_header(code, len(data)) + data


def integer(number: int) -> bytes:
    """A 64-bit integer in its shortest form."""
    if number >= 0:
        if number < 1 << 7:
            return bytes((number,))
        for limit, layout, mark in _UNSIGNED:
            if number < limit:
                return struct.pack(layout, mark, number)
    if number >= -32:
        return struct.pack(">b", number)
    for limit, layout, mark in _SIGNED:
        if number >= -limit:
            return struct.pack(layout, mark, number)
    raise OverflowError(number)


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first: for lengths outside of msgpack."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(value: str) -> bytes:
    data = value.encode()  # UnicodeEncodeError: a lone surrogate
    size = len(data)
    if size < 32:
        return bytes((0xA0 | size,)) + data
    return _sized(0xD9, size) + data


def binary(data: bytes) -> bytes:
    return _sized(0xC4, len(data)) + data


def _sized(first: int, size: int) -> bytes:
    if size < 1 << 8:
        return bytes((first, size))
    if size < 1 << 16:
        return struct.pack(">BH", first + 1, size)
    return struct.pack(">BI", first + 2, size)


_UNSIGNED = (
    (1 << 8, ">BB", 0xCC),
    (1 << 16, ">BH", 0xCD),
    (1 << 32, ">BI", 0xCE),
    (1 << 64, ">BQ", 0xCF),
)
_SIGNED = (
    (1 << 7, ">Bb", 0xD0),
    (1 << 15, ">Bh", 0xD1),
    (1 << 31, ">Bi", 0xD2),
    (1 << 63, ">Bq", 0xD3),
)
