"""A reader of stores, written from docs/format.md alone. Nothing of Hardsave is used.

It is slow and small on purpose: it shows that the page says enough.
"""

import datetime
import decimal
import sqlite3
import struct
import sys
import uuid
import zoneinfo
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from blake3 import blake3

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

VALUE, SEQUENCE, LEAF, NODE, EDGE = 0x11, 0x12, 0x13, 0x14, 0x15

T = TypeVar("T", bound=Sized)


class Ref(NamedTuple):
    address: bytes


class Checkpoint(NamedTuple):
    id: bytes
    timeline: str
    seq: int
    root: bytes


class States:
    """States, rebuilt from objects, wherever these are."""

    def object(self, address: bytes) -> bytes:
        """Return an object's bytes, checked."""
        raise NotImplementedError

    def state(self, root: bytes) -> Any:
        return self._value(root)

    def _value(self, address: bytes) -> Any:
        kind, refs, payload = opened(self.object(address))
        if kind == VALUE:
            return decoded(payload, refs)
        assert kind == SEQUENCE, kind
        shape, _, count, has_edge, last = decoded(payload, refs)
        leaves = self._leaves(refs[-1] if has_edge else None)
        flat = [item for leaf in [*leaves, last] for item in leaf]
        items = [self._value(item.address) if isinstance(item, Ref) else item for item in flat]
        assert len(items) == count * (2 if shape in (4, 5) else 1)
        return assembled(shape, items)

    def _leaves(self, edge: bytes | None) -> Iterator[list[Any]]:
        """Yield the items of every leaf, from left to right: the highest edge comes first."""
        rows: list[list[tuple[bytes, int]]] = []
        while edge is not None:
            kind, refs, payload = opened(self.object(edge))
            assert kind == EDGE, kind
            has_next, counts = decoded(payload, refs)
            rows.append(list(zip(refs, counts, strict=False)))
            edge = refs[-1] if has_next else None
        for row in reversed(rows):
            for address, covers in row:
                yield from self._below(address, covers)

    def _below(self, address: bytes, covers: int) -> Iterator[list[Any]]:
        kind, refs, payload = opened(self.object(address))
        content = decoded(payload, refs)
        if kind == LEAF:
            assert len(content) in (covers, 2 * covers)
            yield content
            return
        assert kind == NODE, kind
        assert sum(content) == covers
        for child, count in zip(refs, content, strict=True):
            yield from self._below(child, count)


class StoreFile(States):
    """One user's half of a store's file."""

    def __init__(self, path: Path, user: str | None = None) -> None:
        self._file = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        query = "SELECT id FROM users WHERE name IS ?"
        ((self.user,),) = self._file.execute(query, (user,)).fetchall()
        self._packs: dict[int, dict[bytes, bytes]] = {}

    def close(self) -> None:
        self._file.close()

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._file.execute(sql, values).fetchall()

    def checkpoints(self) -> Iterator[Checkpoint]:
        """Yield this user's checkpoints in the order of their commits."""
        sql = """SELECT c.id, t.name, c.seq, c.root FROM checkpoints c
                 JOIN timelines t ON t.id = c.timeline WHERE c.user = ? ORDER BY c.number"""
        for row in self.rows(sql, self.user):
            yield Checkpoint(*row)

    def object(self, address: bytes) -> bytes:
        """Return an object's bytes, checked."""
        for pack in [*self.indexed(address), *self.recent()]:
            found = self._pack(pack).get(address)
            if found is not None:
                assert blake3(found).digest(length=20) == address
                return found
        raise LookupError(address.hex())

    def indexed(self, address: bytes) -> list[int]:
        """Return the packs that the index names for an address."""
        prefix = struct.unpack(">Q", address[:8])[0] >> 1
        sql = "SELECT pack FROM objects WHERE user = ? AND prefix = ?"
        return [pack for (pack,) in self.rows(sql, self.user, prefix)]

    def recent(self) -> list[int]:
        """Return this user's packs that are not indexed yet."""
        ((indexed,),) = self.rows("SELECT indexed FROM users WHERE id = ?", self.user)
        low, high = self.user << 40, (self.user + 1) << 40
        sql = "SELECT id FROM packs WHERE id > ? AND id < ? ORDER BY id"
        return [pack for (pack,) in self.rows(sql, max(indexed, low), high)]

    def _pack(self, named: int) -> dict[bytes, bytes]:
        """Return the objects of the pack that an id means."""
        sql = "SELECT id FROM packs WHERE id >= ? ORDER BY id LIMIT 1"
        ((pack,),) = self.rows(sql, named)
        if pack not in self._packs:
            (row,) = self.rows("SELECT size, directory, body FROM packs WHERE id = ?", pack)
            self._packs[pack] = unpacked(*row)
        return self._packs[pack]


def unpacked(size: int, directory: bytes, body: bytes) -> dict[bytes, bytes]:
    """Return the objects of a pack by their hashes."""
    count = len(directory) // 24
    assert len(directory) == 24 * count
    lengths = struct.unpack(f"<{count}I", directory[20 * count :])
    if len(body) == size:
        data = body
    elif body[0] == 1:
        known = zstd.ZstdDict(directory[: 20 * count], is_raw=True)
        data = zstd.decompress(body[1:], zstd_dict=known.as_prefix)
    else:
        data = zstd.decompress(body)
    assert len(data) == size == sum(lengths)
    objects = {}
    at = 0
    for number, length in enumerate(lengths):
        objects[directory[20 * number : 20 * number + 20]] = data[at : at + length]
        at += length
    return objects


def opened(data: bytes) -> tuple[int, list[bytes], bytes]:
    """Return the kind, the references and the payload of an object."""
    count = shift = 0
    at = 1
    while True:
        byte = data[at]
        at += 1
        count |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    end = at + 20 * count
    return data[0], [data[place : place + 20] for place in range(at, end, 20)], data[end:]


def assembled(shape: int, items: list[Any]) -> Any:
    if shape in (4, 5):  # a map; an object comes as its fields
        return paired(items)
    make: Any = {0: list, 1: tuple, 2: set, 3: frozenset}[shape]
    return whole(make(items), len(items))


def paired(flat: list[Any]) -> dict[Any, Any]:
    return whole(dict(zip(flat[::2], flat[1::2], strict=True)), len(flat) // 2)


def whole(found: T, count: int) -> T:
    """Refuse keys or elements that only their classes, unknown here, told apart."""
    if len(found) != count:
        raise ValueError(f"only {len(found)} of {count} are distinct as plain data")
    return found


# msgpack, and the extension codes


def decoded(data: bytes, refs: list[bytes]) -> Any:
    reader = _Reader(data, iter(refs))
    value = reader.value()
    assert reader.at == len(data)
    return value


class _Reader:
    def __init__(self, data: bytes, refs: Iterator[bytes]) -> None:
        self.data = data
        self.refs = refs
        self.at = 0

    def take(self, size: int) -> bytes:
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size : self.at]

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def value(self) -> Any:
        first = self.take(1)[0]
        if first < 0x80:
            return first
        if first < 0x90:
            return self.map(first - 0x80)
        if first < 0xA0:
            return self.array(first - 0x90)
        if first < 0xC0:
            return self.take(first - 0xA0).decode()
        if first >= 0xE0:
            return first - 0x100
        return self._marked(first)

    def _marked(self, first: int) -> Any:
        if first in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[first]
        if first in _NUMBERS:
            return self.number(_NUMBERS[first])
        if 0xD4 <= first <= 0xD8:
            return self.extension(1 << (first - 0xD4))
        size = self.number(_SIZES[first])
        if first <= 0xC6:
            return self.take(size)
        if first <= 0xC9:
            return self.extension(size)
        if first <= 0xDB:
            return self.take(size).decode()
        return self.array(size) if first <= 0xDD else self.map(size)

    def array(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def map(self, count: int) -> dict[str, Any]:
        return {self.value(): self.value() for _ in range(count)}

    def extension(self, size: int) -> Any:
        code = self.number(">b")
        if code == 1:
            assert size == 0
            return Ref(next(self.refs))
        if code in (6, 7, 9, 12, 13):
            return _from_bytes(code, self.take(size))
        end = self.at + size
        content = self.value()
        assert self.at == end
        return _from_value(code, content)


_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_SIZES = {
    0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xC7: ">B", 0xC8: ">H", 0xC9: ">I",
    0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I",
}  # fmt: skip


def _from_bytes(code: int, data: bytes) -> Any:
    match code:
        case 6:
            return data.decode("utf-8", "surrogatepass")
        case 7:
            return int.from_bytes(data, "big", signed=True)
        case 9:
            return datetime.date.fromisoformat(data.decode())
        case 12:
            return uuid.UUID(bytes=data)
        case _:
            return decimal.Decimal(data.decode())


def _from_value(code: int, content: Any) -> Any:
    match code:
        case 2 | 3 | 4:
            make: Any = {2: tuple, 3: set, 4: frozenset}[code]
            return whole(make(content), len(content))
        case 5:
            return paired(content)
        case 8:
            text, fold, zone = content
            moment = datetime.datetime.fromisoformat(text).replace(fold=fold)
            return moment if zone is None else moment.replace(tzinfo=zoneinfo.ZoneInfo(zone))
        case 10:
            text, fold, zone = content
            time = datetime.time.fromisoformat(text).replace(fold=fold)
            return time if zone is None else time.replace(tzinfo=zoneinfo.ZoneInfo(zone))
        case 11:
            return datetime.timedelta(*content)
        case 14:  # an object comes as its fields
            return content[1]
        case 15:  # an enum's member comes as its value
            return content[2]
    raise LookupError(code)
