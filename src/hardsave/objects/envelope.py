"""What every object looks like from outside: kind, references, payload.

    byte 0      kind
    varint      how many references follow (LEB128)
    20 × n      the hashes this object refers to, in document order
    rest        the payload, which only readers of this kind understand

The references stand outside the payload, so code that walks, verifies or exports a store
needs to know no kinds. The high half of the kind byte is the version of the format.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct

from hardsave.errors import Corrupt
from hardsave.objects import wire
from hardsave.objects.hashing import HASH_BYTES, Hash, first_mismatch
from hardsave.tuples import NamedTuple

VALUE = 0x11  # one value, inline
SEQUENCE = 0x12  # the root of a list, map, tuple, set or object that was split
LEAF = 0x13  # a closed run of a sequence's items
NODE = 0x14  # a closed run of leaves or nodes
EDGE = 0x15  # the open right edge of one level above the items
CONTENT = 0x16  # the bytes of a file, or of one part of it
PARTS = 0x17  # a long file: its parts, in order
DIRECTORY = 0x18  # the entries of a directory, or a run of them
DIRECTORY_NODE = 0x19  # a large directory: its runs, in order
SNAPSHOT = 0x1A  # the root of a workspace's files
CAPTURE = 0x1B  # a snapshot with what goes with it: git's position, and what was left out


class Envelope(NamedTuple):
    kind: int
    refs: tuple[Hash, ...]
    payload: bytes


def seal(kind: int, refs: Sequence[Hash], payload: bytes) -> bytes:
    """The bytes of an object."""
    count = len(refs)
    if not count:
        return b"%c\0%b" % (kind, payload)
    if count < 0x80:
        return b"%c%c%b%b" % (kind, count, b"".join(refs), payload)
    return bytes((kind,)) + wire.varint(count) + b"".join(refs) + payload


def unseal(data: bytes) -> Envelope:
    """The parts of an object. Damage of any kind is `Corrupt`."""
    if len(data) < 2:
        raise Corrupt("an object is shorter than its header; run verify")
    count, start = (data[1], 2) if data[1] < 0x80 else _read_varint(data)
    end = start + count * HASH_BYTES
    if end > len(data):
        raise Corrupt("an object's references run past its end; run verify")
    if count < 0x80:
        refs = _hashes(count).unpack_from(data, start)
    else:
        refs = tuple([data[at : at + HASH_BYTES] for at in range(start, end, HASH_BYTES)])
    return Envelope(data[0], refs, data[end:])


def refs(data: bytes) -> tuple[Hash, ...]:
    """What an object refers to: all that a walk over a store needs to know of it."""
    return unseal(data).refs


def checked(expected: Hash, data: bytes) -> bytes:
    """`data`, or `Corrupt` if it is not what `expected` names."""
    check([(expected, data)])
    return data


def check(objects: Iterable[tuple[Hash, bytes]]) -> None:
    """`Corrupt` if one of the objects is not what its hash names."""
    wrong = first_mismatch(objects)
    if wrong is not None:
        raise Corrupt(f"object {wrong.hex()} does not match its hash; run verify")


@lru_cache(0x80)
def _hashes(count: int) -> Struct:
    """So many hashes in a row, taken apart at once: most objects have few."""
    return Struct(f"{HASH_BYTES}s" * count)


def _read_varint(data: bytes) -> tuple[int, int]:
    number = shift = 0
    for at in range(1, min(len(data), 6)):
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at + 1
        shift += 7
    raise Corrupt("an object's reference count is malformed; run verify")
