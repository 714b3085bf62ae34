"""From a value to objects, and back.

A value whose encoding is short stands inside its parent. A longer one is an object of its
own, and a container longer than `SPLIT_BYTES` is split: each of its items again stands
inside or is an object, and `Levels` joins them. So the same state always has the same
address, and two states share whatever they have in common.
"""

import contextlib
import enum
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from hardsave.errors import Corrupt, Unstorable
from hardsave.objects import envelope, slow, wire
from hardsave.objects.codec import Codec, revive_map, revive_set
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Entry, Levels, Out
from hardsave.objects.types import fields_of

INLINE_BYTES = 128
SPLIT_BYTES = 2048
MAX_TREE_DEPTH = 32  # containers nested deeper than this are no longer split

Fetch = Callable[[Collection[Hash]], Mapping[Hash, bytes]]
"""Objects by hash, each checked against it. A missing one is `Corrupt`."""


class Shape(enum.IntEnum):
    """What a split container was. Part of the format."""

    LIST = 0
    TUPLE = 1
    SET = 2
    FROZENSET = 3
    MAP = 4
    OBJECT = 5

    @property
    def stride(self) -> int:
        return 2 if self in (Shape.MAP, Shape.OBJECT) else 1


class Columns(NamedTuple):
    """A container taken apart: `keys` only where it has any."""

    shape: Shape
    name: str | None
    keys: list[Any] | None
    values: list[Any]

    def step(self, at: int) -> str:
        """How item `at` reads inside a path."""
        return f"[{at}]" if self.keys is None else slow.key_step(self.keys[at])


class Builder:
    """Makes the objects of values. `max_value_bytes` bounds a single text or bytes value."""

    def __init__(self, codec: Codec, max_value_bytes: int) -> None:
        self.codec = codec
        self.max_value_bytes = max_value_bytes

    def slot(self, value: object, out: Out, path: str, depth: int) -> Entry:
        """How `value` appears inside its parent; its own objects go to `out`."""
        if not (isinstance(value, _SIZED) and len(value) > SPLIT_BYTES):
            short = self.codec.encode_upto(SPLIT_BYTES, value, path)
            if short is not None:
                return self.whole(short, out)
        columns = self.columns(value) if depth < MAX_TREE_DEPTH else None
        if columns is None:
            return self.whole(self.codec.encode(value, path), out)
        return Entry(wire.REF_MARK, self.sequence(columns, out, path, depth).ref)

    @staticmethod
    def whole(data: bytes, out: Out) -> Entry:
        """How a value with this encoding appears if it is not split."""
        if len(data) <= INLINE_BYTES:
            return Entry(data, None)
        return Entry(wire.REF_MARK, out.put(envelope.VALUE, (), data))

    def root(self, value: object, out: Out) -> Hash:
        """The address of a whole state."""
        return self.as_object(self.slot(value, out, "state", 0), out)

    @staticmethod
    def as_object(slot: Entry, out: Out) -> Hash:
        """The address of what a slot holds, as an object of its own however short it is."""
        return slot.ref if slot.ref is not None else out.put(envelope.VALUE, (), slot.data)

    def sequence(self, columns: Columns, out: Out, path: str, depth: int) -> "Built":
        """A split container, with all that is needed to change it later."""
        levels = Levels(columns.shape.stride, full=True)
        levels.append(self.entries(columns, 0, len(columns.values), out, path, depth), out)
        return Built(levels, levels.root(self.head(columns.shape, columns.name), out))

    def entries(
        self, columns: Columns, low: int, high: int, out: Out, path: str, depth: int
    ) -> list[Entry]:
        """The entries of items `low` to `high`."""
        made: list[Entry] = []
        for at in range(low, high):
            try:
                slot = self.slot(columns.values[at], out, path, depth + 1)
                made.append(self.entry(columns, at, slot))
            except Unstorable as error:
                raise error.below(path, columns.step(at)) from None
        return made

    def entry(self, columns: Columns, at: int, slot: Entry) -> Entry:
        """Item `at` of a container whose value appears as `slot`."""
        if columns.keys is None:
            return slot
        return Entry(self.codec.encode(columns.keys[at]) + slot.data, slot.ref)

    @staticmethod
    def head(shape: Shape, name: str | None) -> bytes:
        """How a sequence's payload begins."""
        return b"\x95" + wire.integer(shape) + (b"\xc0" if name is None else wire.text(name))

    def columns(self, value: object) -> Columns | None:
        """A container's parts; None for everything that is not one."""
        if isinstance(value, enum.Enum):
            return None
        if isinstance(value, dict):
            own = dict(value)  # in one go: another thread may be changing it
            return Columns(Shape.MAP, None, self.codec.keys(list(own)), list(own.values()))
        if isinstance(value, list):
            return Columns(Shape.LIST, None, None, list(value))
        if isinstance(value, tuple):
            return Columns(Shape.TUPLE, None, None, list(value))
        if isinstance(value, set | frozenset):
            shape = Shape.SET if isinstance(value, set) else Shape.FROZENSET
            members = {self.codec.encode(member): member for member in list(value)}
            return Columns(shape, None, None, [members[data] for data in sorted(members)])
        if isinstance(value, str | bytes | int | float | None):
            return None
        named = self._named_fields(value)
        if named is None:
            return None
        name, fields = named
        return Columns(Shape.OBJECT, name, self.codec.keys(list(fields)), list(fields.values()))

    def _named_fields(self, value: object) -> tuple[str, dict[str, Any]] | None:
        """The class name and the fields of an object; None for everything that is none."""
        if isinstance(value, wire.Kept):
            return tuple(value.data) if value.code == wire.OBJECT else None
        fields = fields_of(value)
        return None if fields is None else (self.codec.types.name_of(type(value)), fields)

    def check_sizes(self, value: object, path: str) -> None:
        """Refuse a text or bytes value above the cap before a single byte is encoded."""
        limit = self.max_value_bytes
        with contextlib.suppress(RuntimeError):  # another thread is changing it: look at copies
            if _is_small((value,), limit // 4, _PLAIN_DEPTH):
                return
        stack: list[tuple[object, list[int], Iterator[object]]] = [([value], [0], iter([value]))]
        while stack:
            _, place, items = stack[-1]
            for item in items:
                place[0] += 1
                kind = type(item)
                if kind is str or kind is bytes:
                    # A character takes up to four bytes: count exactly only when it matters.
                    if len(item) * 4 > limit and _encoded_size(item) > limit:  # type: ignore[arg-type] # narrowed by kind
                        steps = self._steps(stack[1:])
                        raise Unstorable(path + steps, f"longer than max_value_bytes ({limit})")
                elif kind is int:
                    if item.bit_length() > 8 * limit:  # type: ignore[attr-defined] # narrowed by kind
                        steps = self._steps(stack[1:])
                        raise Unstorable(path + steps, f"longer than max_value_bytes ({limit})")
                elif (inside := self._inside(item)) is not None:
                    stack.append((item, [0], inside))
                    break
            else:
                stack.pop()
            if len(stack) > slow.MAX_DEPTH:
                return  # the encoder refuses it, and knows the path

    def _inside(self, item: object) -> Iterator[object] | None:
        """What a value is made of; None if nothing in it can be long."""
        if isinstance(item, dict):
            own = dict(item)
            return itertools.chain(own.values(), own)
        if isinstance(item, _SIZED):
            return iter(list(item))
        if isinstance(item, str):
            return iter([str.__str__(item)]) if not isinstance(item, enum.Enum) else None
        if isinstance(item, bytes | bytearray | memoryview):
            return iter([bytes(item)])
        fields = fields_of(item)
        return None if fields is None else iter(fields.values())

    def _steps(self, stack: list[tuple[object, list[int], Iterator[object]]]) -> str:
        """The path to the item that the innermost iterator has just given out."""
        steps = []
        for container, (count,), _ in stack:
            parts = self.columns(container)
            if parts is None:
                continue  # a text that is not plain: it is where it is
            at = count - 1
            steps.append(parts.step(at if at < len(parts.values) else at - len(parts.values)))
        return "".join(steps)


_SIZED = (dict, list, tuple, set, frozenset)
_PLAIN_DEPTH = 8  # of what is looked through quickly


def _is_small(items: Iterable[object], most: int, depth: int) -> bool:
    """Whether plain data has no text longer than `most` characters; False: look closely."""
    for item in items:
        kind = type(item)
        if kind is str or kind is bytes:
            if len(item) > most:  # type: ignore[arg-type] # narrowed by kind
                return False
        elif kind is dict or kind is list:
            if not depth or not _is_small(item, most, depth - 1):  # type: ignore[arg-type] # narrowed by kind
                return False
            if kind is dict and not _is_small(item.values(), most, depth - 1):  # type: ignore[attr-defined] # narrowed by kind
                return False
        elif kind is int:
            if item.bit_length() > 64:  # type: ignore[attr-defined] # narrowed by kind
                return False
        elif item is not None and kind is not bool and kind is not float:
            return False
    return True


def _encoded_size(item: object) -> int:
    if isinstance(item, str):
        return len(item) if item.isascii() else len(item.encode("utf-8", "surrogatepass"))
    return len(item) if isinstance(item, bytes) else 0


class Built(NamedTuple):
    levels: Levels
    ref: Hash


class Ref(bytes):
    """The address of a value that is an object of its own, not read yet.

    A kind of bytes, because a long list has thousands of them, and these cost the least.
    """

    __slots__ = ()


class Stored(NamedTuple):
    """The root of a split container as it lies in its object."""

    shape: Shape
    name: str | None
    length: int
    items: list[Any]  # the open items, flat; Ref where a value is an object
    edge: Hash | None


class Reader:
    """Reads values through `fetch`, as much of them as is asked for."""

    def __init__(self, codec: Codec, fetch: Fetch) -> None:
        self.codec = codec
        self.fetch = fetch

    def load(self, address: Hash) -> Any:
        """A whole value as plain Python data."""
        return self._value(self.fetch([address])[address])

    def open(self, address: Hash) -> Any:
        """A plain value, or `Stored` if it was split."""
        return self._parsed(self.fetch([address])[address])

    def items(self, stored: Stored, low: int, high: int) -> list[Any]:
        """Items `low` to `high` of a split container, flat, values that are objects as Ref."""
        stride = stored.shape.stride
        first_open = stored.length - len(stored.items) // stride
        if first_open < 0:
            raise Corrupt("a stored sequence is longer than it says; run verify")
        flat: list[Any] = []
        if low < first_open:
            leaves, skipped = self._leaves(stored, first_open, low, min(high, first_open))
            for data in leaves:
                flat += self.flat(data)
            flat = flat[(low - skipped) * stride : (min(high, first_open) - skipped) * stride]
        if high > first_open:
            flat += stored.items[max(low - first_open, 0) * stride : (high - first_open) * stride]
        if len(flat) != (high - low) * stride:
            raise Corrupt("a stored sequence is shorter than it says; run verify")
        return flat

    def resolve(self, items: list[Any]) -> list[Any]:
        """`items` with every Ref replaced by its whole value."""
        wanted = [item for item in items if type(item) is Ref]
        if not wanted:
            return items
        found = self.fetch(wanted)
        values = self._values([found[address] for address in wanted])
        if len(values) == len(items):
            return values
        coming = iter(values)
        return [next(coming) if type(item) is Ref else item for item in items]

    def _values(self, objects: list[bytes]) -> list[Any]:
        """Many values at once: plain ones are decoded as one array, which is faster.

        Every payload is exactly one value, as written; whoever takes objects from elsewhere
        has to see to that.
        """
        values: list[Any] = []
        for start in range(0, len(objects), _DECODED_AT_ONCE):
            some = objects[start : start + _DECODED_AT_ONCE]
            if set(map(_KIND, some)) == {envelope.VALUE}:
                # The two bytes before each value are left in: they read as two numbers.
                array = self.codec.decode(b"".join([wire.array_header(3 * len(some)), *some]))
                if not any(array[1::3]):  # no value refers to anything
                    values += array[2::3]
                    continue
            values += map(self._value, some)
        return values

    def edges(self, stored: Stored) -> Iterator[tuple[list[int], list[Hash]]]:
        """The open edges above the items, lowest first: counts and addresses."""
        address = stored.edge
        while address is not None:
            found = envelope.unseal(self.fetch([address])[address])
            if found.kind != envelope.EDGE:
                raise Corrupt(f"object {address.hex()} is not an edge; run verify")
            try:
                higher, counts = self.codec.decode(found.payload)
                refs = found.refs[:-1] if higher else found.refs
                address = found.refs[-1] if higher else None
            except (TypeError, ValueError, IndexError) as error:
                raise Corrupt("an edge of a stored sequence is malformed; run verify") from error
            yield _numbers(counts, refs), list(refs)

    def children(self, address: Hash, data: bytes) -> tuple[list[int], tuple[Hash, ...]]:
        """What a node stands for: counts and addresses of the level below."""
        found = envelope.unseal(data)
        if found.kind != envelope.NODE:
            raise Corrupt(f"object {address.hex()} is not a node; run verify")
        return _numbers(self.codec.decode(found.payload), found.refs), found.refs

    def assemble(self, stored: Stored, items: list[Any]) -> Any:
        """The container itself from all of its resolved items."""
        match stored.shape:
            case Shape.LIST:
                return items
            case Shape.MAP:
                return revive_map(items)
            case Shape.OBJECT:
                fields = dict(zip(items[::2], items[1::2], strict=True))
                return self.codec.types.object_from(stored.name or "", fields)
            case Shape.TUPLE:
                return tuple(items)
            case Shape.SET:
                return revive_set(items)
            case Shape.FROZENSET:
                return frozenset(revive_set(items))

    def _value(self, data: bytes) -> Any:
        if data[:2] == _PLAIN_VALUE:  # by far the most common
            return self.codec.decode(data[2:])
        parsed = self._parsed(data)
        if not isinstance(parsed, Stored):
            return parsed
        items = self.resolve(self.items(parsed, 0, parsed.length))
        try:
            return self.assemble(parsed, items)
        except (TypeError, ValueError) as error:
            raise Corrupt("a stored key or member cannot be one; run verify") from error

    def _parsed(self, data: bytes) -> Any:
        if data[:2] == _PLAIN_VALUE:
            return self.codec.decode(data[2:])
        kind, refs, payload = envelope.unseal(data)
        if kind != envelope.SEQUENCE:
            raise Corrupt(f"an object of kind {kind:#x} stands where a value should; run verify")
        parts = self.codec.decode(payload, list(map(Ref, refs)))
        try:
            shape, name, length, higher, items = parts
            return Stored(Shape(shape), name, int(length), [*items], refs[-1] if higher else None)
        except (TypeError, ValueError, IndexError) as error:
            raise Corrupt("the root of a stored sequence is malformed; run verify") from error

    def flat(self, leaf: bytes) -> list[Any]:
        """The items of a leaf, values that are objects as Ref."""
        kind, refs, payload = envelope.unseal(leaf)
        if kind != envelope.LEAF:
            raise Corrupt(f"an object of kind {kind:#x} stands where a leaf should; run verify")
        if payload == _ONLY_REFS.get(len(refs)):
            return list(map(Ref, refs))  # the most common leaf
        items = self.codec.decode(payload, list(map(Ref, refs)))
        if not isinstance(items, list):
            raise Corrupt("a leaf of a stored sequence is malformed; run verify")
        return items

    def _leaves(self, stored: Stored, end: int, low: int, high: int) -> tuple[list[bytes], int]:
        """The leaves over items `low` to `high`, and how many items lie before the first."""
        edges: list[tuple[int, list[int], list[Hash]]] = []
        for counts, refs in self.edges(stored):
            end -= sum(counts)
            edges.append((end, counts, refs))
            if end <= low:
                break
        frontier: list[tuple[int, int, Hash]] = []
        for start, counts, refs in reversed(edges):
            below: list[tuple[int, int, Hash]] = []
            nodes = self.fetch([ref for _, _, ref in frontier]) if frontier else {}
            for at, _, ref in frontier:
                below += _placed(at, *self.children(ref, nodes[ref]))
            below += _placed(start, counts, refs)
            frontier = [part for part in below if part[0] < high and part[0] + part[1] > low]
        found_leaves = self.fetch([ref for _, _, ref in frontier])
        return [found_leaves[ref] for _, _, ref in frontier], frontier[0][0] if frontier else low


def _numbers(counts: object, refs: Sequence[Hash]) -> list[int]:
    """`counts` as what they should be: one whole number for each of `refs`."""
    if isinstance(counts, list) and len(counts) == len(refs):
        numbers = [count for count in counts if type(count) is int and count > 0]
        if len(numbers) == len(refs):
            return numbers
    raise Corrupt("the counts of a stored sequence are malformed; run verify")


def _placed(
    start: int, counts: Sequence[int], refs: Sequence[Hash]
) -> Iterator[tuple[int, int, Hash]]:
    for count, ref in zip(counts, refs, strict=True):
        yield start, count, ref
        start += count


_PLAIN_VALUE = bytes((envelope.VALUE, 0))
_KIND = itemgetter(0)
_DECODED_AT_ONCE = 64  # values; more would leave the processor's cache
_ONLY_REFS = {n: wire.array_header(n) + wire.REF_MARK * n for n in range(1, 0x80)}
