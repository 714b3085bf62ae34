"""From a value to objects."""

import enum
from typing import Any

from hardsave.errors import Unstorable
from hardsave.objects import envelope, sizes, slow, wire
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Entry, Levels, Out
from hardsave.objects.tree import INLINE_BYTES, MAX_TREE_DEPTH, SPLIT_BYTES, Columns, Shape
from hardsave.objects.types import fields_of
from hardsave.tuples import NamedTuple

_CONTAINERS = (dict, list, tuple, set, frozenset)


class Builder:
    """Makes the objects of values. `max_value_bytes` bounds a single text or bytes value."""

    def __init__(self, codec: Codec, max_value_bytes: int) -> None:
        self.codec = codec
        self.max_value_bytes = max_value_bytes

    def slot(self, value: object, out: Out, path: str, depth: int) -> Entry:
        """How `value` appears inside its parent; its own objects go to `out`."""
        if not (isinstance(value, _CONTAINERS) and len(value) > SPLIT_BYTES):
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
        try:
            return self._columns(value)
        except Unstorable:
            raise
        except Exception as error:  # a class of the caller's own may raise anything
            if type(value) in _CONTAINERS:
                raise  # an alarm that has gone off: none of these raises by itself
            raise Unstorable("state", slow.raised(error)) from error

    def _columns(self, value: object) -> Columns | None:
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
        sizes.check(value, path, self.max_value_bytes, self.columns)


class Built(NamedTuple):
    levels: Levels
    ref: Hash
