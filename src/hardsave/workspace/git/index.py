"""Git's index as data: which paths and objects it holds. Pure: bytes in, plain data out.

Versions 2, 3 and 4 are read, split and sparse ones too. The loops are written for a hundred
thousand entries; the bytes are untrusted, so every length is checked.
"""

import struct
from collections.abc import Callable

from hardsave.tuples import NamedTuple

HASH_BYTES = {"sha1": 20, "sha256": 32}

_HEADER = struct.Struct(">4sII")
_EXTENSION = struct.Struct(">4sI")
_BITMAP = struct.Struct(">II")
_STAT_BYTES = 40  # times, device, inode, mode, owner, size
_EXTENDED = 0x40  # in the first byte of the flags: two more bytes of flags follow
_LONG = 0xFFF  # a name of this length or more ends with its NUL
_LONGEST_PATH = 4096
_KNOWN_EXTENSIONS = (b"link", b"sdir")  # of those that a reader must know
_MODE = struct.Struct(">I")
_MODE_AT = 24  # behind the times, the device and the inode
_LENGTH_BITS = 0x0FFF  # of the flags: how long the name is


class BadIndex(Exception):
    """These bytes are not an index that we, or git, could read."""


class Index(NamedTuple):
    """An index, as far as we need it."""

    names: list[bytes]  # in order; empty where a split index only changes an entry of its base
    starts: list[int]  # where each entry begins
    base: str  # the index that this one is split from, or nothing
    removed: bytes  # which entries of the base are gone: a bitmap


class IndexEntry(NamedTuple):
    """What an entry says about content: all of it but the stat data of a file."""

    name: bytes
    mode: int
    id: str
    flags: bytes  # stage, intent to add, skip worktree: without the length of the name


def paths(data: bytes, *, hash_name: str, base: Callable[[str], bytes]) -> frozenset[bytes]:
    """The paths in an index. `base` reads the shared index of a name, if this one is split.

    A path that ends with a slash stands for a whole directory outside a sparse checkout.
    """
    index = parse(data, hash_name=hash_name)
    names = frozenset(index.names)
    if not index.base:
        return names
    shared = base(index.base)
    if shared[-HASH_BYTES[hash_name] :].hex() not in (index.base, "0" * len(index.base)):
        raise BadIndex(f"its shared index is not sharedindex.{index.base}")
    known = parse(shared, hash_name=hash_name).names
    removed = bits(index.removed, len(known))
    return (names | {name for at, name in enumerate(known) if at not in removed}) - {b""}


def parse(data: bytes, *, hash_name: str) -> Index:
    """What an index file holds, once its checksum was found right."""
    end = len(data) - HASH_BYTES[hash_name]
    if end < _HEADER.size:
        raise BadIndex("it is too short")
    _check(memoryview(data)[:end], data[end:], hash_name)
    signature, version, count = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise BadIndex(f"it is no index of version 2, 3 or 4 ({signature!r}, {version})")
    fixed = _STAT_BYTES + HASH_BYTES[hash_name]
    if count * fixed > end:
        raise BadIndex(f"it has no room for {count} entries")
    read = _compressed if version == 4 else _padded
    try:
        names, starts, at = read(data, count, fixed)
    except (IndexError, ValueError) as error:
        raise BadIndex("its entries are cut off") from error
    if at > end:
        raise BadIndex("its entries are cut off")
    base, removed = _split(_link(data, at, end), HASH_BYTES[hash_name])
    return Index(names, starts, base, removed)


def entries(data: bytes, index: Index, *, hash_name: str) -> list[IndexEntry]:
    """The entries of an index that was parsed from these bytes."""
    flags_at = _STAT_BYTES + HASH_BYTES[hash_name]
    found = []
    for name, at in zip(index.names, index.starts, strict=True):
        (mode,) = _MODE.unpack_from(data, at + _MODE_AT)
        flags = at + flags_at
        first = int.from_bytes(data[flags : flags + 2], "big") & ~_LENGTH_BITS
        more = data[flags + 2 : flags + 4] if data[flags] & _EXTENDED else b""
        id = data[at + _STAT_BYTES : flags].hex()
        found.append(IndexEntry(name, mode, id, first.to_bytes(2, "big") + more))
    return found


def objects(data: bytes, index: Index, *, hash_name: str) -> set[tuple[int, str]]:
    """The mode and the id of every object that an index names."""
    end = _STAT_BYTES + HASH_BYTES[hash_name]
    found = {
        data[at + _MODE_AT : at + _MODE_AT + _MODE.size] + data[at + _STAT_BYTES : at + end]
        for at in index.starts
    }
    return {(*_MODE.unpack_from(each), each[_MODE.size :].hex()) for each in found}


def _check(content: memoryview, expected: bytes, hash_name: str) -> None:
    if not any(expected):  # git writes zeros with index.skipHash
        return
    import hashlib  # takes a while to load, and most captures know the index already

    if hashlib.new(hash_name, content, usedforsecurity=False).digest() != expected:
        raise BadIndex("its checksum is wrong")


# Entries


def _padded(data: bytes, count: int, fixed: int) -> tuple[list[bytes], list[int], int]:
    """Versions 2 and 3: names as they are, entries filled up to a multiple of eight."""
    names, starts = [], []
    at = _HEADER.size
    for _ in range(count):
        flags = at + fixed
        high = data[flags]
        start = flags + (4 if high & _EXTENDED else 2)
        length = (high & 15) << 8 | data[flags + 1]
        end = start + length if length < _LONG else data.index(0, start)
        names.append(data[start:end])
        starts.append(at)
        at += (end - at + 8) & ~7
    return names, starts, at


def _compressed(data: bytes, count: int, fixed: int) -> tuple[list[bytes], list[int], int]:
    """Version 4: how much to cut off the name before, and what to put there instead."""
    names, starts = [], []
    at = _HEADER.size
    name = b""
    room = 4 * len(data) + _LONGEST_PATH  # names may unpack to more than memory holds
    for _ in range(count):
        starts.append(at)
        at += fixed
        at += 4 if data[at] & _EXTENDED else 2
        cut = data[at]
        cut, at = (cut, at + 1) if cut < 128 else _number(data, at)
        end = data.index(0, at)
        if cut > len(name):
            raise BadIndex("a name is shorter than nothing")
        name = name[: len(name) - cut] + data[at:end]
        room -= len(name)
        if len(name) > _LONGEST_PATH or room < 0:
            raise BadIndex("its names are too long")
        names.append(name)
        at = end + 1
    return names, starts, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of any size, seven bits a byte, and where it ends."""
    byte = data[at]
    value = byte & 127
    while byte & 128 and value <= _LONGEST_PATH:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) + (byte & 127)
    return value, at + 1


# Extensions


def _link(data: bytes, at: int, end: int) -> bytes:
    """The extension of a split index; nothing if it is not split."""
    link = b""
    while at + _EXTENSION.size <= end:
        signature, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size
        if at + size > end:
            raise BadIndex("an extension is cut off")
        if not signature[:1].isupper() and signature not in _KNOWN_EXTENSIONS:
            raise BadIndex(f"it needs an extension that is not known: {signature!r}")
        if signature == b"link":
            link = data[at : at + size]
        at += size
    return link


def _split(link: bytes, hash_bytes: int) -> tuple[str, bytes]:
    base = link[:hash_bytes]
    if not any(base):
        return "", b""
    if len(base) < hash_bytes:
        raise BadIndex("the name of its shared index is cut off")
    return base.hex(), link[hash_bytes:]


def bits(data: bytes, most: int) -> set[int]:
    """The numbers below `most` in a bitmap: runs of equal words, each followed by words as they
    are. A few bytes can mean billions."""
    if not data:
        return set()
    try:
        size, count = _BITMAP.unpack_from(data)
        words = struct.unpack_from(f">{count}Q", data, _BITMAP.size)
    except (struct.error, MemoryError) as error:
        raise BadIndex("a bitmap is cut off") from error
    found: set[int] = set()
    at = base = 0
    while at < count:
        word = words[at]
        repeats, literals = word >> 1 & 0xFFFFFFFF, word >> 33
        following = base + 64 * repeats
        if word & 1:
            found.update(range(base, min(following, size, most)))
        base = following
        for literal in words[at + 1 : at + 1 + literals]:
            found.update(base + bit for bit in range(64) if literal >> bit & 1)
            base += 64
        at += 1 + literals
    return found
