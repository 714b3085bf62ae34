"""Objects that come from another store: whether one is what a builder could have made.

Readers trust what was stored: they decode many payloads as one, follow references without
end, and recurse as deep as a state can be. So an import asks here first. Nothing is constructed,
and no memory is taken on the word of a length.
"""

import contextlib
import struct
from collections.abc import Mapping
from typing import Any

import ormsgpack

from hardsave.errors import Corrupt, Misuse
from hardsave.objects import envelope, slow, wire
from hardsave.objects.codec import Codec, check_not_interrupted, is_from_hook
from hardsave.objects.envelope import EDGE, LEAF, NODE, SEQUENCE, VALUE
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.tree import MAX_TREE_DEPTH, Ref, Shape
from hardsave.objects.types import Types
from hardsave.tuples import NamedTuple

FORMAT = 0x10  # the high half of every kind of this version
VALUES = frozenset({VALUE, SEQUENCE})  # what a state or an item can be
MAX_NESTING = MAX_TREE_DEPTH + 1
MAX_STATE_BYTES = 1 << 36  # of a state written out; a few kilobytes of sharing can mean more
_BUILT_BYTES = 256 * 1024  # the types in a longer payload are left to its reader
_MOST_VALUES = 1 << 20  # in one part of a split container: only its keys can be large
_ROWS = frozenset({LEAF, NODE})
_EDGES = frozenset({EDGE})


class Standing(NamedTuple):
    """What is known of an object once it, and all below it, was found sound."""

    kind: int
    nesting: int  # how many split containers lie inside each other
    weight: int  # of all below it, counted as often as it is referred to


class Part(NamedTuple):
    """One reference, and the kinds that may stand there; None: any."""

    address: Hash
    kinds: frozenset[int] | None


class Sound:
    """Checks objects one by one. Those that one refers to come before it."""

    def __init__(self) -> None:
        self._codec = Codec(Types())  # an empty registry: nothing can be constructed
        self._verbatim = Codec(Types(), verbatim=True)

    def parts(self, data: bytes) -> list[Part]:
        """What an object refers to, in order; `Corrupt` if it is not sound in itself."""
        kind, refs, payload = envelope.unseal(data)
        if envelope.seal(kind, refs, payload) != data:
            raise Corrupt("an object's reference count is not in its shortest form")
        if kind & 0xF0 != FORMAT:
            raise Misuse(f"an object is of kind {kind:#x}, which a newer Hardsave knows; upgrade")
        if kind not in _KNOWN:
            return [Part(ref, None) for ref in refs]  # its own readers know what it means
        if kind == VALUE and refs:
            raise Corrupt("a plain value refers to other objects")
        marks, values = _looked_through(payload)
        if marks > len(refs) or (marks and kind not in _MARKING):
            raise Corrupt("an object marks other references than it lists")
        self._check_types(payload, marks)
        if kind == VALUE:
            return []
        if values > _MOST_VALUES:
            raise Corrupt("a part of a split container is larger than any that is ever made")
        content = self._verbatim.decode(payload, [Ref(ref) for ref in refs])
        return _CHECKS[kind](content, refs)

    def value(self, payload: bytes) -> Any:
        """The plain value of bytes that must be exactly one, without references."""
        marks, values = _looked_through(payload)
        if marks or values > _MOST_VALUES:
            raise Corrupt("a value is larger than any that is ever made, or refers to objects")
        self._check_types(payload, 0)
        return self._verbatim.decode(payload)

    def _check_types(self, payload: bytes, marks: int) -> None:
        """Whether dates are dates and so on: decodes it, unless it is very long."""
        if len(payload) > _BUILT_BYTES:
            return
        with contextlib.suppress(Misuse):  # keys that only classes tell apart are no damage
            self._codec.decode(payload, [None] * marks)


def standing(kind: int, parts: list[Part], size: int, below: Mapping[Hash, Standing]) -> Standing:
    """What an object stands for, given what it refers to; `Corrupt` if that does not fit."""
    nesting, weight = 0, size
    for address, kinds in parts:
        found = below.get(address)
        if found is None:
            raise Corrupt(f"object {address.hex()} is missing, or comes after one that needs it")
        if kinds is not None and found.kind not in kinds:
            raise Corrupt(f"object {address.hex()} of kind {found.kind:#x} stands in a wrong place")
        nesting = max(nesting, found.nesting)
        weight += found.weight
    nesting += kind == SEQUENCE
    if nesting > MAX_NESTING:
        raise Corrupt("containers are split deeper than any state is")
    if weight > MAX_STATE_BYTES:
        raise Corrupt("objects refer to each other so often that no memory could hold the state")
    return Standing(kind, nesting, weight)


# What each kind looks like inside


def _sequence(content: Any, refs: tuple[Hash, ...]) -> list[Part]:
    try:
        shape, name, count, has_edge, items = content
        shape = Shape(shape)
    except (TypeError, ValueError) as error:
        raise Corrupt("the root of a sequence is malformed") from error
    if type(count) is not int or type(has_edge) is not bool or type(items) is not list:
        raise Corrupt("the root of a sequence is malformed")
    if not isinstance(name, str if shape is Shape.OBJECT else None.__class__):
        raise Corrupt("the root of a sequence is named, and no object, or the other way round")
    open_items, rest = divmod(len(items), shape.stride)
    if rest or count < open_items or (count != open_items and not has_edge):
        raise Corrupt("a sequence has another number of items than it says")
    if not has_edge:
        return _items(items, shape.stride, refs)
    if not refs:
        raise Corrupt("a sequence has no edge, and says that it has one")
    return [*_items(items, shape.stride, refs[:-1]), Part(refs[-1], _EDGES)]


def _leaf(content: Any, refs: tuple[Hash, ...]) -> list[Part]:
    if type(content) is not list or not content:
        raise Corrupt("a leaf is malformed")
    return _items(content, 1, refs)


def _items(items: list[Any], stride: int, refs: tuple[Hash, ...]) -> list[Part]:
    """References stand for whole items, in order, and never for keys."""
    marked = [item for item in items if type(item) is Ref]
    if marked != list(refs):
        raise Corrupt("an object does not mark as many references as it lists")
    if stride == 2 and any(type(key) is Ref for key in items[::2]):
        raise Corrupt("a reference stands where a key should")
    return [Part(ref, VALUES) for ref in refs]


def _node(content: Any, refs: tuple[Hash, ...]) -> list[Part]:
    _check_counts(content, len(refs))
    if not refs:
        raise Corrupt("a node has nothing below it")
    return [Part(ref, _ROWS) for ref in refs]


def _edge(content: Any, refs: tuple[Hash, ...]) -> list[Part]:
    if type(content) is not list or len(content) != 2 or type(content[0]) is not bool:
        raise Corrupt("an edge is malformed")
    has_next, counts = content
    if has_next and not refs:
        raise Corrupt("an edge has no next one")
    rows = refs[:-1] if has_next else refs
    _check_counts(counts, len(rows))
    return [Part(ref, _ROWS) for ref in rows] + ([Part(refs[-1], _EDGES)] if has_next else [])


def _check_counts(counts: Any, number: int) -> None:
    if type(counts) is not list or len(counts) != number:
        raise Corrupt("a sequence counts other parts than it has")
    if any(type(count) is not int or not 0 < count < 1 << 62 for count in counts):
        raise Corrupt("a sequence counts in no numbers")


_CHECKS = {SEQUENCE: _sequence, LEAF: _leaf, NODE: _node, EDGE: _edge}
_KNOWN = {VALUE, *_CHECKS}
_MARKING = (SEQUENCE, LEAF)  # their references stand in the payload; others' are just listed


# One value, and nothing after it


def _looked_through(data: bytes) -> tuple[int, int]:
    """How many references a value marks, and how many values it holds at most.

    `Corrupt` if the bytes are anything but one value.
    """
    if len(data) <= _BUILT_BYTES:
        try:
            return _built_marks(data), len(data)
        except (ValueError, RecursionError) as error:
            if is_from_hook(error):
                check_not_interrupted(lambda: _built_marks(data))
            # Too deep for it, or damaged: the other one knows.
    return _scanned(data)


def _built_marks(data: bytes) -> int:
    """By ormsgpack, which does not look at what follows a value.

    So something follows: the hash of the bytes, which they cannot contain. If it comes out
    as the second of two values, the bytes were exactly the first.
    """
    marks = 0

    def hook(code: int, content: bytes) -> None:
        nonlocal marks
        if code in wire.NESTED:
            marks += _built_marks(content)
        marks += _is_mark(code, len(content))

    end = digest(data)
    both = b"\x92" + data + wire.binary(end)
    if ormsgpack.unpackb(both, ext_hook=hook)[1] != end:
        raise Corrupt("bytes are left over after a value")
    return marks


def _is_mark(code: int | None, size: int) -> bool:
    if code == wire.REF and size:
        raise Corrupt("a reference mark is not empty")
    return code == wire.REF


def _scanned(data: bytes) -> tuple[int, int]:
    """By looking through it: nothing is built, however much a header promises."""
    at = marks = values = 0
    stack: list[tuple[int, int | None]] = [(1, len(data))]  # (values to come, where they end)
    while stack:
        wanted, end = stack.pop()
        if wanted == 0:
            if end not in (None, at):
                raise Corrupt("a value is not as long as it says, or bytes are left over")
            continue
        stack.append((wanted - 1, end))
        values += 1
        code, size, at = _header(data, at)
        if code == _ITEMS:
            stack.append((size, None))
        elif code in wire.NESTED:
            stack.append((1, at + size))
        else:
            marks += _is_mark(code, size)
            at += size
        if at > len(data):
            raise Corrupt("a value ends too early")
        if len(stack) > slow.MAX_OPEN:
            raise Corrupt("a value is nested deeper than any that can be stored")
    return marks, values


_ITEMS = -1000  # no extension code: so many values follow


def _header(data: bytes, at: int) -> tuple[int | None, int, int]:
    """(extension code, `_ITEMS` or None; how many bytes or values follow; where they begin)."""
    if at >= len(data):
        raise Corrupt("a value ends too early")
    first = data[at]
    at += 1
    if first < 0x80 or first >= 0xE0 or first in (0xC0, 0xC2, 0xC3):
        return None, 0, at
    if first < 0x90:
        return _ITEMS, 2 * (first & 0x0F), at
    if first < 0xA0:
        return _ITEMS, first & 0x0F, at
    if first < 0xC0:
        return None, _text(data, at, first & 0x1F), at
    if first in _WIDTHS:
        return None, _WIDTHS[first], at
    if 0xD4 <= first <= 0xD8:
        return _extension(data, at, 1 << (first - 0xD4))
    if first not in _SIZES:
        raise Corrupt(f"byte {first:#x} begins no value")
    width = _SIZES[first]
    size = int.from_bytes(data[at : at + width])
    at += width
    if first in (0xC7, 0xC8, 0xC9):
        return _extension(data, at, size)
    if first in (0xDC, 0xDD, 0xDE, 0xDF):
        return _ITEMS, size * (2 if first >= 0xDE else 1), at
    return None, _text(data, at, size) if first >= 0xD9 else size, at


def _extension(data: bytes, at: int, size: int) -> tuple[int, int, int]:
    if at >= len(data):
        raise Corrupt("a value ends too early")
    return struct.unpack_from(">b", data, at)[0], size, at + 1


def _text(data: bytes, at: int, size: int) -> int:
    try:
        str(data[at : at + size], "utf-8")
    except UnicodeDecodeError as error:
        raise Corrupt("a text is not UTF-8") from error
    return size


_WIDTHS = {
    0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
}  # fmt: skip
_SIZES = {
    0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4,
    0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4,
}  # fmt: skip
