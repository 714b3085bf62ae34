"""Adding to a stored state without reading it: lists grow, other keys are replaced.

Of the state itself all keys are known, of a list in it only the right edges (see `levels`),
so an append costs what is added, however long the list has become. What is read is read
verbatim: values of unregistered classes are carried on as they are.

Keys are told apart as Python tells them apart: an equal one is the same one.

Like a `Shadow`, a `Growth` describes what would be stored: throw it away if the commit fails.
"""

from typing import Any

from hardsave.errors import Misuse, Unstorable
from hardsave.objects import envelope, slow, wire
from hardsave.objects.builder import Builder
from hardsave.objects.conversions import hashable
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Entry, Levels, Out
from hardsave.objects.reader import Reader
from hardsave.objects.tree import INLINE_BYTES, SPLIT_BYTES, Columns, Ref, Shape, Stored

_NOT_A_DICT = "append needs a state that is a dict; use save for anything else"
_LIST_HEAD = Builder.head(Shape.LIST, None)
_MAP_HEAD = Builder.head(Shape.MAP, None)


class Growth:
    """The state at `root` (None: none yet), ready to grow. `reader` reads verbatim."""

    def __init__(self, builder: Builder, reader: Reader, root: Hash | None) -> None:
        self._builder = builder
        self._reader = reader
        self._small: dict[Any, Any] | None = None  # the whole state, while it is not split
        self._top: Levels | None = None  # its entries, once it is
        self._places: dict[Any, tuple[int, bytes]] | None = (
            None  # where a key stands, and its bytes
        )
        self._lists: dict[bytes, Levels] = {}  # the split lists seen so far
        stored = {} if root is None else reader.open(root)
        if isinstance(stored, Stored) and stored.shape is Shape.MAP:
            self._top = self._resumed_map(stored)
        elif isinstance(stored, dict):
            self._small = stored
        else:
            raise Misuse(_NOT_A_DICT)

    def append(self, delta: dict[Any, Any]) -> tuple[Hash, Out]:
        """The address of the grown state, and the objects that may be new."""
        out = Out()
        self._builder.check_sizes(delta, "state")
        if self._builder.codec.redaction is not None:
            keys = self._builder.codec.keys(list(delta))
            delta = dict(zip(keys, delta.values(), strict=True))
        if self._top is None:
            return self._append_small(delta, out), out
        for key, value in delta.items():
            self._put(self._top, key, value, out)
        if self._has_shrunk(self._top, out):
            return self._joined(self._top, out), out
        return self._top.root(_MAP_HEAD, out), out

    def length(self, key: str, out: Out) -> int | None:
        """How many items the list under a key has now; None if it holds no list. `out` is that of
        the append before."""
        if self._top is None:
            found = (self._small or {}).get(key)
            return len(found) if isinstance(found, list) else None
        place = self._known_places(self._top).get(key)
        if place is None:
            return None
        at, name = place
        known = self._known_list(self._top, name, at, out)
        return known.count if isinstance(known, Levels) else None if known is None else len(known)

    def _append_small(self, delta: dict[Any, Any], out: Out) -> Hash:
        """A state that is not split is cheap enough to make anew."""
        grown = dict(self._small or {})
        names = {self._as_key(key): key for key in grown}
        for key, value in delta.items():
            name = names.setdefault(self._as_key(key), key)  # the key as it was read
            stored = grown.get(name)
            both = isinstance(stored, list) and isinstance(value, list)
            grown[name] = [*stored, *value] if both else value  # type: ignore[misc] # narrowed by both
        return self._start(grown, out)

    def _start(self, state: dict[Any, Any], out: Out) -> Hash:
        """Hold `state` as small or split, whichever it is."""
        slot = self._builder.slot(state, out, "state", 0)
        if slot.ref is not None and out[slot.ref][0] == envelope.SEQUENCE:
            here = self._with(out)
            stored = here.open(slot.ref)
            self._small, self._top = None, self._resumed_map(stored, here)
        else:
            here = self._with(out)
            self._top = None
            self._places = None
            self._small = here.codec.decode(slot.data if slot.ref is None else out[slot.ref][2:])
        return self._builder.as_object(slot, out)

    # A split state

    def _put(self, top: Levels, key: Any, value: Any, out: Out) -> None:
        try:
            at, name = self._place(top, key)
            slot = self._slot(top, name, at, value, out)
        except Unstorable as error:
            raise error.below("state", slow.key_step(key)) from None
        entry = Entry(name + slot.data, slot.ref)
        if at is None:
            self._known_places(top)[self._as_key(key)] = top.count, name
            top.append([entry], out)
        else:
            top.replace(at, entry, out)

    def _slot(self, top: Levels, name: bytes, at: int | None, value: Any, out: Out) -> Entry:
        """What a key is to hold: `value`, or the list that was there with `value` added."""
        if not isinstance(value, list):
            self._lists.pop(name, None)
            return self._builder.slot(value, out, "state", 1)
        known = self._known_list(top, name, at, out)
        if not isinstance(known, Levels):
            return self._builder.slot([*(known or []), *value], out, "state", 1)
        columns = Columns(Shape.LIST, None, None, list(value))
        known.append(self._builder.entries(columns, 0, len(columns.values), out, "state", 1), out)
        self._lists[name] = known
        return Entry(wire.REF_MARK, known.root(_LIST_HEAD, out))

    def _place(self, top: Levels, key: Any) -> tuple[int | None, bytes]:
        """Where a key stands, and its bytes: those of the first spelling, as dicts do."""
        places = self._places if self._places is not None else self._known_places(top)
        found = places.get(key if type(key) is str else self._as_key(key))
        return (None, self._builder.codec.encode(key)) if found is None else found

    def _known_places(self, top: Levels) -> dict[Any, tuple[int, bytes]]:
        if self._places is None:
            self._places = {}
            for at in range(top.count):
                data, ref, _ = top.entry(at)
                key = self._reader.codec.decode(b"\x92" + data, [ref])[0]
                self._places[self._as_key(key)] = at, self._reader.codec.encode(key)
        return self._places

    def _as_key(self, key: Any) -> Any:
        """A key as Python compares it once it is read: 1, 1.0 and True are one."""
        if type(key) is str:
            return key
        codec = self._builder.codec
        return hashable(codec.decode(codec.encode(key)))

    def _known_list(
        self, top: Levels, name: bytes, at: int | None, out: Out
    ) -> Levels | list[Any] | None:
        """The stored list under a key: its edges, or the list itself if it is small."""
        if name in self._lists or at is None:
            return self._lists.get(name)
        entry = top.entry(at)
        here = self._with(out)
        if entry.ref is None:
            found = here.codec.decode(entry.data[len(name) :])
        else:
            found = here.open(entry.ref)
        if isinstance(found, Stored):
            return self._resumed_list(found, here) if found.shape is Shape.LIST else None
        return found if isinstance(found, list) else None

    def _has_shrunk(self, top: Levels, out: Out) -> bool:
        """Whether replacing a value may have left a state too small to stay split."""
        if self._lists or top.count > SPLIT_BYTES:
            return False
        entries = [top.entry(at) for at in range(top.count)]
        refs = [entry.ref for entry in entries if entry.ref is not None]
        # What the values take inside their parent: no marks, and each is longer than inline.
        size = sum(len(entry.data) for entry in entries) - len(refs) * len(wire.REF_MARK)
        if size + len(refs) * (INLINE_BYTES + 1) > SPLIT_BYTES:
            return False
        found = self._with(out).fetch(refs)
        if any(found[ref][0] == envelope.SEQUENCE for ref in refs):
            return False
        return size + sum(len(found[ref]) - 2 for ref in refs) <= SPLIT_BYTES

    def _joined(self, top: Levels, out: Out) -> Hash:
        """The same state again, in the form that its size asks for."""
        return self._start(self._with(out).load(top.root(_MAP_HEAD, out)), out)

    # Reading what is there

    def _with(self, out: Out) -> Reader:
        """A reader that also sees the objects of this append."""
        fetch = self._reader.fetch
        return Reader(
            self._reader.codec,
            lambda wanted: {**fetch([ref for ref in wanted if ref not in out]), **out},
        )

    def _resumed_map(self, stored: Stored, reader: Reader | None = None) -> Levels:
        """All entries of a stored map."""
        flat = (reader or self._reader).items(stored, 0, stored.length)
        keys = map(self._reader.codec.encode, flat[::2])
        slots = map(self._slot_again, flat[1::2])
        entries = [Entry(key + slot.data, slot.ref) for key, slot in zip(keys, slots, strict=True)]
        levels = Levels(2, full=True)
        levels.append(entries, Out())
        self._places = None
        return levels

    def _resumed_list(self, stored: Stored, reader: Reader) -> Levels:
        """The right edges of a stored list."""
        tails = [[self._slot_again(item) for item in stored.items]]
        for counts, refs in reader.edges(stored):
            tails.append([Entry(b"", ref, n) for n, ref in zip(counts, refs, strict=True)])
        return Levels.resumed(1, stored.length, tails)

    def _slot_again(self, item: object) -> Entry:
        """The entry that a stored item was read from, to the byte: nothing is redacted in it."""
        if isinstance(item, Ref):
            return Entry(wire.REF_MARK, item)
        return Entry(self._reader.codec.encode(item), None)
