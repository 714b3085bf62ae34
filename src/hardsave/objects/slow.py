"""The codec in Python: for what ormsgpack refuses, and for telling where a value went wrong.

Nothing here recurses, so depth costs memory and not the interpreter's stack; and no level is
copied into the one above it, so it costs no more than that.
"""

import reprlib
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hardsave.errors import Corrupt, Unstorable
from hardsave.objects import wire
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave.objects.redaction import Cleaning

MAX_DEPTH = 10_000
MAX_OPEN = 4 * MAX_DEPTH  # reading also opens what a level is wrapped in

Parts = Callable[[object], tuple[int | None, Any]]
"""(extension code, content as bytes or as a value); no code: the content is plain data."""

_NAN = b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"


class _Frame:
    """A container being written: its children still to come, and where they begin."""

    __slots__ = ("children", "code", "is_map", "is_set", "place", "places", "size", "step")

    def __init__(
        self,
        children: Iterable[tuple[str, object]],
        step: str,
        *,
        code: int | None = None,
        is_map: bool = False,
    ) -> None:
        self.children = iter(children)
        self.step = step
        self.code = code  # None: a plain array or map
        self.is_map = is_map
        self.is_set = code in (wire.SET, wire.FROZENSET)
        self.place = 0  # of its header among the pieces
        self.places: list[int] = []  # of its children
        self.size = 0  # of all that was written before it


class _Output:
    """What is written, as pieces: each is copied once, however deep in containers it lies.

    A container's header says how long it is, or depends on its keys. So its place is kept free
    until the container is closed.
    """

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._open_sets = 0

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)

    def open(self, frame: _Frame) -> None:
        frame.place, frame.size = len(self.pieces), self.size
        self._open_sets += frame.is_set
        self.add(b"")

    def close(self, frame: _Frame) -> None:
        count = self._sort(frame) if frame.is_set else len(frame.places)
        self._open_sets -= frame.is_set
        header = self._header(frame, count)
        self.pieces[frame.place] = header
        self.size += len(header)

    def is_longer(self, limit: int | None, depth: int) -> bool:
        """Whether it is for certain. Headers of open containers have a byte at least; and a set
        may still turn out to be shorter than its members."""
        return limit is not None and self.size + depth > limit and not self._open_sets

    def _header(self, frame: _Frame, count: int) -> bytes:
        code = frame.code
        if frame.is_map:
            keys = frame.places[::2]
            if all(_is_plain_text(self.pieces[place]) for place in keys):
                return wire.map_header(count // 2)
            code = wire.MAP
        array = wire.array_header(count)
        if code is None:
            return array
        return wire.ext_header(code, len(array) + self.size - frame.size) + array

    def _sort(self, frame: _Frame) -> int:
        """Members in the order of their bytes. Those that differ in a secret alone have become
        one, and so have several NaNs."""
        if len(frame.places) <= 1:
            return len(frame.places)
        ends = [*frame.places[1:], len(self.pieces)]
        pairs = zip(frame.places, ends, strict=True)
        members = sorted({b"".join(self.pieces[start:end]) for start, end in pairs})
        self.pieces[frame.place + 1 :] = members
        self.size = frame.size + sum(map(len, members))
        return len(members)


def encode(value: object, parts: Parts, path: str, redaction: "Cleaning | None" = None) -> bytes:
    """The canonical bytes of `value`, or `Unstorable` with the path to what has none."""
    data = encode_upto(None, value, parts, path, redaction)
    assert data is not None
    return data


def encode_upto(
    limit: int | None,
    value: object,
    parts: Parts,
    path: str,
    redaction: "Cleaning | None" = None,
) -> bytes | None:
    """The same; None as soon as it is clear that there are more bytes than `limit`."""
    out = _Output()
    stack = [_Frame([("", value)], path)]
    while not out.is_longer(limit, len(stack) - 1):
        frame = stack[-1]
        child = next(frame.children, None)
        if child is None:
            stack.pop()
            if not stack:
                return b"".join(out.pieces)
            out.close(frame)
            continue
        step, item = child
        if len(stack) > MAX_DEPTH:
            raise Unstorable(
                _path(stack, step), f"nested more than {MAX_DEPTH} deep, or contains itself"
            )
        try:
            begun = _begin(item, parts, step, redaction)
        except (TypeError, OverflowError) as error:
            raise Unstorable(_path(stack, step), str(error)) from None
        except Exception as error:  # a class of the caller's own: a time zone, a property
            raise Unstorable(_path(stack, step), raised(error)) from error
        frame.places.append(len(out.pieces))
        if isinstance(begun, bytes):
            out.add(begun)
        else:
            out.open(begun)
            stack.append(begun)
    return None


def raised(error: Exception) -> str:
    """Why a value cannot be stored that does not tell what is in it."""
    return f"it raised {error!r} when asked"


class _Written(bytes):
    """What is encoded already."""

    __slots__ = ()


def _begin(item: object, parts: Parts, step: str, redaction: "Cleaning | None") -> bytes | _Frame:
    """A scalar's bytes, or the frame of a container."""
    if type(item) is _Written:
        return item
    if redaction is not None:
        item = redaction.scalar(item)
    scalar = _scalar(item)
    if scalar is not None:
        return scalar
    if type(item) is list:
        return _Frame(_numbered(item.copy()), step)
    if type(item) is dict:
        own = item.copy()  # in one go: another thread may be changing it
        keys = list(own) if redaction is None else redaction.keys(list(own))
        return _Frame(_keyed(keys, own.values()), step, is_map=True)
    code, content = parts(item)
    if code is None:
        return _begin(content, parts, step, redaction)
    if isinstance(content, bytes):
        return wire.ext(code, content)
    if code in _COLLECTIONS:
        return _Frame(_numbered(content), step, code=code)
    # Names of classes and the texts of moments are not the caller's: nothing is redacted in them.
    labels = [_Written(_scalar(part) or b"") for part in content[: _LABELS.get(code, 0)]]
    return _Frame((("", part) for part in [*labels, *content[len(labels) :]]), step, code=code)


def _scalar(item: object) -> bytes | None:
    if item is None:
        return b"\xc0"
    kind = type(item)
    if kind is bool:
        return b"\xc3" if item else b"\xc2"
    if isinstance(item, str) and kind is str:
        try:
            return wire.text(item)
        except UnicodeEncodeError:
            return wire.ext(wire.TEXT, item.encode("utf-8", "surrogatepass"))
    if isinstance(item, int) and kind is int and -(1 << 63) <= item < 1 << 64:
        return wire.integer(item)
    if isinstance(item, float) and kind is float:
        return struct.pack(">Bd", 0xCB, item) if item == item else _NAN
    if isinstance(item, bytes | bytearray | memoryview) and kind in _BINARY:
        return wire.binary(bytes(item))
    return None


def _is_plain_text(key: bytes) -> bool:
    return 0xA0 <= key[0] <= 0xBF or 0xD9 <= key[0] <= 0xDB


def _numbered(items: list[Any]) -> Iterator[tuple[str, object]]:
    return ((f"[{at}]", item) for at, item in enumerate(items))


def _keyed(keys: list[Any], values: Iterable[Any]) -> Iterator[tuple[str, object]]:
    for key, value in zip(keys, values, strict=True):
        step = key_step(key)
        yield f"{step} (the key)", key
        yield step, value


def key_step(key: object) -> str:
    """How a key reads inside a path: `.name` where it can, `['odd name']` where it must."""
    if isinstance(key, str):
        key = key if len(key) <= 60 else key[:60] + "…"
        return f".{key}" if key.isidentifier() else f"[{key!r}]"
    try:
        return f"[{reprlib.repr(key)}]"
    except ValueError:  # a number with more digits than Python writes out
        return f"[<{type(key).__name__}>]"


def _path(stack: list[_Frame], step: str) -> str:
    steps = [frame.step for frame in stack] + [step]
    if len(steps) > 50:
        steps = [*steps[:20], "…"]
    return "".join(steps)


_LABELS = {wire.OBJECT: 1, wire.ENUM: 2, wire.DATETIME: 3, wire.TIME: 3}
_COLLECTIONS = (wire.TUPLE, wire.SET, wire.FROZENSET)
_BINARY = (bytes, bytearray, memoryview)


class _Open(NamedTuple):
    """A container being read: how many items it still wants, and what they become."""

    wanted: int
    items: list[Any]
    close: Callable[[list[Any]], Any]
    end: int | None = None  # where it must end, if its length was said


Build = Callable[[int, Any], Any]


def decode(data: bytes, build: Build, nested: frozenset[int] = wire.NESTED) -> Any:
    """The value of canonical bytes; `build` makes the values of extension types."""
    reader = _Reader(data, nested)
    result: list[Any] = []
    stack = [_Open(1, result, lambda items: items[0])]
    while stack:
        frame = stack[-1]
        if len(frame.items) == frame.wanted:
            stack.pop()
            if frame.end not in (None, reader.at):
                raise Corrupt("a stored value is not as long as it says")
            if stack:
                stack[-1].items.append(frame.close(frame.items))
            continue
        item = reader.item(build)
        if isinstance(item, _Open):
            if len(stack) > MAX_OPEN:
                raise Corrupt("a stored value is nested deeper than any that can be stored")
            stack.append(item)
        else:
            frame.items.append(item)
    if reader.at != len(data):
        raise Corrupt("bytes are left over after a stored value")
    return result[0]


class _Reader:
    """A cursor over msgpack bytes. Running off the end is `Corrupt`."""

    def __init__(self, data: bytes, nested: frozenset[int]) -> None:
        self.data = data
        self.nested = nested
        self.at = 0

    def take(self, size: int) -> bytes:
        chunk = self.data[self.at : self.at + size]
        if len(chunk) != size:
            raise Corrupt("a stored value ends too early")
        self.at += size
        return chunk

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def item(self, build: Build) -> Any:
        first = self.take(1)[0]
        if first < 0x80:
            return first
        if first < 0x90:
            return _open_map(first & 0x0F)
        if first < 0xA0:
            return _Open(first & 0x0F, [], list)
        if first < 0xC0:
            return self.text(first & 0x1F)
        if first >= 0xE0:
            return first - 0x100
        return self._marked(first, build)

    def text(self, size: int) -> str:
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError as error:
            raise Corrupt("a stored text is not UTF-8") from error

    def _marked(self, first: int, build: Build) -> Any:
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            return self.number(_NUMBERS[first])
        if 0xD4 <= first <= 0xD8:
            return self._extension(1 << (first - 0xD4), build)
        if first not in _SIZES:
            raise Corrupt(f"byte {first:#x} begins no stored value")
        size = self.number(_SIZES[first])
        if first <= 0xC6:
            return self.take(size)
        if first <= 0xC9:
            return self._extension(size, build)
        if first <= 0xDB:
            return self.text(size)
        return _Open(size, [], list) if first <= 0xDD else _open_map(size)

    def _extension(self, size: int, build: Build) -> Any:
        code = self.number(">b")
        if code in self.nested:
            return _Open(1, [], lambda items: build(code, items[0]), self.at + size)
        return build(code, self.take(size))


def _open_map(pairs: int) -> _Open:
    return _Open(pairs * 2, [], _dict)


def _dict(flat: list[Any]) -> dict[Any, Any]:
    try:
        return dict(zip(flat[::2], flat[1::2], strict=True))
    except TypeError as error:
        raise Corrupt("a stored map has a key that cannot be one") from error


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_SIZES = {
    0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xC7: ">B", 0xC8: ">H", 0xC9: ">I",
    0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I",
}  # fmt: skip
