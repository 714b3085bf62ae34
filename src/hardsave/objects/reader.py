"""From objects to a value: all of it, or as much as is asked for."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from hardsave.errors import Corrupt
from hardsave.objects import envelope, wire
from hardsave.objects.codec import Codec
from hardsave.objects.conversions import revive_map, revive_set
from hardsave.objects.hashing import Hash
from hardsave.objects.tree import Fetch, Ref, Shape, Stored

_PLAIN_VALUE = bytes((envelope.VALUE, 0))
_KIND = itemgetter(0)
_DECODED_AT_ONCE = 64  # values; more would leave the processor's cache
_ONLY_REFS = {n: wire.array_header(n) + wire.REF_MARK * n for n in range(1, 0x80)}


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
        return self.parsed(self.fetch([address])[address])

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

        Every payload is exactly one value, as written; an import checks
        that of the objects that it takes in.
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
            counts, refs, address = self.edge(address)
            yield counts, refs

    def edge(self, address: Hash) -> tuple[list[int], list[Hash], Hash | None]:
        """One open edge: counts and addresses, and where the next higher one is."""
        found = envelope.unseal(self.fetch([address])[address])
        if found.kind != envelope.EDGE:
            raise Corrupt(f"object {address.hex()} is not an edge; run verify")
        try:
            higher, counts = self.codec.decode(found.payload)
            refs = found.refs[:-1] if higher else found.refs
            above = found.refs[-1] if higher else None
        except (TypeError, ValueError, IndexError) as error:
            raise Corrupt("an edge of a stored sequence is malformed; run verify") from error
        return _numbers(counts, refs), list(refs), above

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
        parsed = self.parsed(data)
        if not isinstance(parsed, Stored):
            return parsed
        items = self.resolve(self.items(parsed, 0, parsed.length))
        try:
            return self.assemble(parsed, items)
        except (TypeError, ValueError) as error:
            raise Corrupt("a stored key or member cannot be one; run verify") from error

    def parsed(self, data: bytes) -> Any:
        """A plain value, or `Stored` if it was split, from its object."""
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
