"""The bytes of a file as objects, and back. Memory stays flat, also for a large file.

A file of up to `PART_BYTES` is one object. A longer one is cut every `PART_BYTES`, and the
addresses of its parts are gathered, `FAN_OUT` at a time: what is appended to it, or changed
in place, costs the parts that it touches and the path above them.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash, digest
from hardsave.workspace.filesystem.bounded_read import chunks

PART_BYTES = 128 * 1024
FAN_OUT = 256

_HEAD = struct.Struct("<BQ")  # level (0: the references are parts), how many bytes beneath
_AT_ONCE = 16  # parts that are fetched together: 2 MiB
_SEALED = envelope.seal(envelope.CONTENT, (), b"")
_LEVELS = 6  # FAN_OUT to the power of that is more than a file can have

Fetch = Callable[[Collection[Hash]], Mapping[Hash, bytes]]
"""Objects by hash, checked against it. What is missing or damaged is `Corrupt`."""

Put = Callable[[Hash, bytes], None]


def overlay(near: Mapping[Hash, bytes], fetch: Fetch) -> Fetch:
    """Objects that are not stored yet, before those that are."""

    def get(wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        far = [address for address in wanted if address not in near]
        found = fetch(far) if far else {}
        return {**found, **{address: near[address] for address in wanted if address in near}}

    return get


def of_bytes(data: bytes) -> tuple[Hash, bytes]:
    """The object of a whole small file, or of one part."""
    sealed = _SEALED + data
    return digest(sealed), sealed


def of_parts(parts: Iterable[bytes], put: Put) -> tuple[Hash, int]:
    """Store content that comes in pieces of `PART_BYTES`, the last one shorter; how long it was."""
    levels: list[list[tuple[Hash, int]]] = [[]]
    total = 0
    for part in parts:
        address, sealed = of_bytes(part)
        put(address, sealed)
        total += len(part)
        _gather(levels, 0, (address, len(part)), put)
    if not total:
        address, sealed = of_bytes(b"")
        put(address, sealed)
        return address, 0
    return _top(levels, put), total


def _gather(
    levels: list[list[tuple[Hash, int]]], number: int, made: tuple[Hash, int], put: Put
) -> None:
    """One more at a level; a full run becomes one of the level above."""
    if number == len(levels):
        levels.append([])
    run = levels[number]
    if len(run) == FAN_OUT:
        _gather(levels, number + 1, _node(run, number, put), put)
        run.clear()
    run.append(made)


def _top(levels: list[list[tuple[Hash, int]]], put: Put) -> Hash:
    """Close the open runs, lowest first."""
    number = 0
    while number < len(levels) - 1 or len(levels[number]) > 1:
        _gather(levels, number + 1, _node(levels[number], number, put), put)
        number += 1
    return levels[number][0][0]


def _node(run: list[tuple[Hash, int]], level: int, put: Put) -> tuple[Hash, int]:
    size = sum(length for _, length in run)
    sealed = envelope.seal(envelope.PARTS, [address for address, _ in run], _HEAD.pack(level, size))
    address = digest(sealed)
    put(address, sealed)
    return address, size


def parts(file: int, size: int) -> Iterator[bytes]:
    """The content of an open file, in pieces of `PART_BYTES`."""
    return chunks(file, size, PART_BYTES)


def level_of(payload: bytes) -> int | None:
    """How many levels of lists lie below a list of parts; None if it is none."""
    return payload[0] if len(payload) == _HEAD.size and payload[0] < _LEVELS else None


def length_of(payload: bytes) -> int:
    """How many bytes of a file lie below a list of parts, as it says."""
    return int(_HEAD.unpack(payload)[1])


def read(address: Hash, size: int, fetch: Fetch) -> Iterator[bytes]:
    """The parts of a file, in order. One that is not as long as its entry says is `Corrupt`."""
    total = 0
    for part in _read(address, fetch, _LEVELS):
        total += len(part)
        if total > size:
            break
        yield part
    if total != size:
        raise Corrupt(f"the content {address.hex()} is not as long as its entry says; run verify")


def read_range(address: Hash, start: int, end: int, fetch: Fetch) -> bytes:
    """The bytes of a file from `start` to before `end`, which lies in it. Of a long file only the
    parts are read that hold some of them."""
    found = b"".join(_range(address, fetch, _LEVELS, start, end))
    if len(found) != end - start:
        raise Corrupt(f"the content {address.hex()} is not as long as its entry says; run verify")
    return found


def _range(address: Hash, fetch: Fetch, below: int, start: int, end: int) -> Iterator[bytes]:
    """What lies under an object, from `start` to `end` as counted from its own beginning."""
    kind, refs, payload = envelope.unseal(fetch([address])[address])
    if kind == envelope.CONTENT:
        yield payload[start:end]
        return
    level = _checked_level(address, kind, payload, below)
    each = PART_BYTES * FAN_OUT**level  # bytes beneath a reference; the last may have fewer
    for at in range(start // each, min(len(refs), -(-end // each))):
        first = at * each
        yield from _range(refs[at], fetch, level, max(0, start - first), min(each, end - first))


def _checked_level(address: Hash, kind: int, payload: bytes, below: int) -> int:
    level = level_of(payload) if kind == envelope.PARTS else None
    if level is None or level >= below:
        raise Corrupt(f"object {address.hex()} is not a file's content; run verify")
    return level


def _read(address: Hash, fetch: Fetch, below: int) -> Iterator[bytes]:
    """What lies under an object whose level, if it is a list of parts, is less than `below`."""
    kind, refs, payload = envelope.unseal(fetch([address])[address])
    if kind == envelope.CONTENT:
        yield payload
        return
    level = _checked_level(address, kind, payload, below)
    for start in range(0, len(refs), _AT_ONCE):
        some = refs[start : start + _AT_ONCE]
        near = dict(fetch(some)) if level == 0 else {}
        for ref in some:
            yield from _read(ref, _Near(near) if near else fetch, level)


class _Near:
    """Objects that were fetched already."""

    def __init__(self, objects: dict[Hash, bytes]) -> None:
        self._objects = objects

    def __call__(self, _: Collection[Hash]) -> Mapping[Hash, bytes]:
        return self._objects
