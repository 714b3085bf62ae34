"""Git's packs as data: where an object lies in one, and what it holds.

The bytes are untrusted: every length is checked, and nothing is unpacked beyond a bound.
"""

import os
import struct
import zlib
from collections.abc import Callable

from hardsave.tuples import NamedTuple

_FANOUT = struct.Struct(">256I")
_VERSION_2 = b"\xfftOc\0\0\0\2"
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _ID_DELTA = 6, 7
_FAR = 1 << 31
_FARTHEST = 1 << 62  # no file reaches there, and it can still be asked for
_HEADER_BYTES = 64
_LONGEST_CHAIN = 5000
LARGEST = 16 * 1024 * 1024


class Unreadable(Exception):
    """There is no such object, or it is damaged or too large."""


class Object(NamedTuple):
    """An object, unpacked."""

    kind: str
    data: bytes


class Pack:
    """A pack and its index; both are searched on the disk, because there may be millions."""

    def __init__(self, directory: int, name: str, width: int) -> None:
        self._directory = directory
        self._name = name
        self._width = width
        self._pack: int | None = None
        self._index = os.open(name + ".idx", _FLAGS, dir_fd=directory)
        self._is_new = os.pread(self._index, len(_VERSION_2), 0) == _VERSION_2
        start = len(_VERSION_2) if self._is_new else 0
        counts = os.pread(self._index, _FANOUT.size, start)
        self._counts: tuple[int, ...] = (0,) * 256
        if len(counts) == _FANOUT.size:
            self._counts = _FANOUT.unpack(counts)
        self._stride = width if self._is_new else 4 + width
        self._first = start + _FANOUT.size + (self._stride - width)

    def close(self) -> None:
        os.close(self._index)
        if self._pack is not None:
            os.close(self._pack)

    def find(self, id: bytes) -> int | None:
        """The place of an object among the sorted ids; None if it is not here."""
        low = self._counts[id[0] - 1] if id[0] else 0
        high = self._counts[id[0]]
        while low < high:
            middle = (low + high) // 2
            there = os.pread(self._index, self._width, self._first + middle * self._stride)
            if there == id:
                return middle
            low, high = (middle + 1, high) if there < id else (low, middle)
        return None

    def read(self, place: int, read_other: Callable[[str], Object]) -> Object:
        """The object at a place. `read_other` reads one that this is described by."""
        return self._read(self._offset(place), read_other)

    def _offset(self, place: int) -> int:
        if not self._is_new:
            return self._number(1024 + place * self._stride, 4)
        total = self._counts[255]
        near = self._first + total * (self._width + 4)
        offset = self._number(near + 4 * place, 4)
        return offset if offset < _FAR else self._number(near + 4 * total + 8 * (offset - _FAR), 8)

    def _number(self, at: int, width: int) -> int:
        data = os.pread(self._index, width, at)
        if len(data) < width:
            raise Unreadable("an index of a pack is cut off")
        number = int.from_bytes(data, "big")
        if number > _FARTHEST:
            raise Unreadable("an index of a pack leads out of it")
        return number

    def _read(self, offset: int, read_other: Callable[[str], Object]) -> Object:
        deltas: list[bytes] = []
        room = LARGEST
        while len(deltas) < _LONGEST_CHAIN:
            entry = _Entry(self._at(offset))
            room -= 0 if entry.kind in _KINDS else entry.size
            if room < 0:
                raise Unreadable(f"it is described by more than {LARGEST} bytes")
            if entry.kind in _KINDS:
                found = Object(_KINDS[entry.kind], self._unpacked(offset, entry))
                return _built(found, deltas)
            if entry.kind == _OFFSET_DELTA:
                back = entry.distance()
                deltas.append(self._unpacked(offset, entry))
                offset -= back
                if back <= 0 or offset <= 0:
                    raise Unreadable("an object leads out of its pack")
            elif entry.kind == _ID_DELTA:
                base = entry.take(self._width).hex()
                deltas.append(self._unpacked(offset, entry))
                return _built(read_other(base), deltas)
            else:
                break
        raise Unreadable("an object of a pack is of no known kind")

    def _at(self, offset: int, size: int = _HEADER_BYTES) -> bytes:
        if self._pack is None:
            self._pack = os.open(self._name + ".pack", _FLAGS, dir_fd=self._directory)
        return os.pread(self._pack, size, offset)

    def _unpacked(self, offset: int, entry: "_Entry") -> bytes:
        if entry.size > LARGEST:
            raise Unreadable(f"it has more than {LARGEST} bytes")
        # What cannot be made smaller grows a little.
        packed = self._at(offset + entry.at, entry.size + entry.size // 100 + 64)
        return inflate(packed, entry.size)


class _Entry:
    """The head of an entry: its kind and size, then where it is described from."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        byte = self._byte()
        self.kind = byte >> 4 & 7
        self.size = byte & 15
        shift = 4
        while byte & 128:
            byte = self._byte()
            self.size |= (byte & 127) << shift
            shift += 7

    def _byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        found = self._data[self.at : self.at + count]
        if len(found) < count:
            raise Unreadable("an object of a pack is cut off")
        self.at += count
        return found

    def distance(self) -> int:
        byte = self._byte()
        value = byte & 127
        while byte & 128:
            byte = self._byte()
            value = ((value + 1) << 7) | (byte & 127)
        return value


def inflate(packed: bytes, size: int) -> bytes:
    """Exactly so many bytes."""
    try:
        data = zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error as error:
        raise Unreadable("it cannot be unpacked") from error
    if len(data) != size:
        raise Unreadable("it is not as long as it says")
    return data


# Deltas


def _built(base: Object, deltas: list[bytes]) -> Object:
    data = base.data
    for delta in reversed(deltas):
        data = _applied(data, delta)
    return Object(base.kind, data)


def _applied(base: bytes, delta: bytes) -> bytes:
    """What a delta makes of a base: pieces of the base, and pieces of its own."""
    old, at = _length(delta, 0)
    new, at = _length(delta, at)
    if old != len(base) or new > LARGEST:
        raise Unreadable("a delta is of another base")
    made = bytearray()
    while at < len(delta) and len(made) <= new:
        code = delta[at]
        at += 1
        if code & 128:
            start, count, at = _copied(delta, code, at)
            made += base[start : start + count]
        elif code:
            made += delta[at : at + code]
            at += code
        else:
            raise Unreadable("a delta holds what is not known")
    if len(made) != new:
        raise Unreadable("a delta makes another length than it says")
    return bytes(made)


def _copied(delta: bytes, code: int, at: int) -> tuple[int, int, int]:
    """Which piece of the base: where, how long; and where the delta goes on."""
    numbers = [0, 0]
    for bit in range(7):
        if code >> bit & 1:
            if at >= len(delta):
                raise Unreadable("a delta is cut off")
            which, shift = (0, 8 * bit) if bit < 4 else (1, 8 * (bit - 4))
            numbers[which] |= delta[at] << shift
            at += 1
    return numbers[0], numbers[1] or 0x10000, at


def _length(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(delta):
        byte = delta[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if not byte & 128:
            return value, at
    raise Unreadable("a delta is cut off")
