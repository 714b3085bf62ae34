"""Taking checkpoints into the search index: the texts that are new on their timelines, and the
paths of files that they changed.

Only what the last checkpoints of a timeline did not have is read (see `search_tail`), and that lies
where the checkpoint lies, because it was saved with it. What an object leads to was new no later
than the object itself, so a known one is not looked into.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hardsave.errors import Corrupt, HardsaveError
from hardsave.logs import log
from hardsave.objects import slow, wire
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash, digest, first_mismatch
from hardsave.objects.reader import Reader
from hardsave.objects.records import CheckpointRecord
from hardsave.objects.tree import Ref, Shape, Stored
from hardsave.objects.types import Types
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.search.file_names import changed_files
from hardsave.vault.search.rows import Rows
from hardsave.vault.search.tail import Tail

if TYPE_CHECKING:
    import apsw

BATCH = 64  # objects read at once: each may bring its pack along

_log = log(__name__)
_PLAIN = Codec(Types())
_LISTS = (wire.TUPLE, wire.SET, wire.FROZENSET)


class _Spot(NamedTuple):
    """An object to look into. Height 0 is a value, 1 a leaf, above it a node."""

    address: Hash
    path: str
    height: int = 0
    at: int = 0  # the number of its first item
    shape: Shape = Shape.LIST  # of the container that it is a part of


class Intake:
    """Takes in one checkpoint after the other, inside of one transaction, which `end` completes."""

    def __init__(self, context: Context, index: "apsw.Connection") -> None:
        self._context = context
        self._objects = context.objects
        self._rows = Rows(index)
        self._codec = context.objects.verbatim.codec
        self._near: Mapping[Hash, bytes] = {}  # read last, and not checked
        self._here: Mapping[Hash, bytes] = {}  # of the batch that is looked into
        self._reader = Reader(self._codec, self._fetch)
        self._tail = Tail(b"")  # of the checkpoint that is taken in
        self._timeline = self._number = 0

    def end(self) -> None:
        self._rows.write()

    def take_in(self, record: CheckpointRecord) -> None:
        self._timeline, self._number = self._rows.timeline(record.timeline), record.number
        self._tail = self._rows.tail(self._timeline)
        self._rows.add_checkpoint(record, self._timeline)
        self._place("timeline", "", record.timeline)
        self._place("name", "", record.name or "")
        self._place("status", "", record.status)
        self._place("description", "", record.description)
        stack = self._new([_Spot(record.root, "")])
        while stack:
            batch, stack[-BATCH:] = stack[-BATCH:], []
            self._here = self._read([spot.address for spot in batch])
            for spot in batch:
                if spot.address in self._here:
                    stack += self._inside(spot)
        self._tail.end_checkpoint()

    def take_in_files(self, record: CheckpointRecord) -> None:
        """Put the paths that a checkpoint added, changed or removed."""
        for path, change in changed_files(self._context, record):
            timeline = self._rows.timeline(record.timeline)
            self._rows.add_change(timeline, path, record.number, change)

    def take_in_name(self, timeline: str, number: int) -> None:
        """Put the name of a timeline on which nothing was saved yet."""
        self._rows.add_place(self._rows.timeline(timeline), "timeline", "", timeline, number)

    def _place(self, field: str, path: str, text: str) -> None:
        """Put a text of the checkpoint, unless it stood there before."""
        if text:
            key = f"{field}\0{path}\0{text}".encode("utf-8", "surrogatepass")
            if self._tail.is_new(digest(key)):
                self._rows.add_place(self._timeline, field, path, text, self._number)

    def _new(self, spots: Iterable[_Spot]) -> list[_Spot]:
        return [spot for spot in spots if self._tail.is_new(spot.address)]

    def _inside(self, spot: _Spot) -> list[_Spot]:
        """Put the texts that lie in an object; what it leads to is to be looked into."""
        try:
            return self._new(self._looked_into(spot))
        except HardsaveError as error:
            _log.warning("not searchable, because it cannot be read: %s", error)
            return []

    def _looked_into(self, spot: _Spot) -> list[_Spot]:
        if spot.height > 1:
            counts, refs = self._reader.children(spot.address, self._here[spot.address])
            return _spots(spot, counts, refs, spot.at, spot.height - 1)
        if spot.height == 1:
            return self._items(self._reader.flat(self._here[spot.address]), spot)
        value = self._reader.parsed(self._here[spot.address])
        if not isinstance(value, Stored):
            return self._texts(value, spot.path)
        at = value.length - len(value.items) // value.shape.stride
        inner = spot._replace(shape=value.shape, at=at)
        return self._items(value.items, inner) + self._along_edges(value.edge, inner)

    def _along_edges(self, edge: Hash | None, spot: _Spot) -> list[_Spot]:
        """What the open edges of a container lead to, up to the first that is not new."""
        found: list[_Spot] = []
        at, height = spot.at, 1
        while edge is not None and self._tail.is_new(edge):
            counts, refs, edge = self._reader.edge(edge)
            at -= sum(counts)
            found += _spots(spot, counts, refs, at, height)
            height += 1
        return found

    def _items(self, flat: list[Any], spot: _Spot) -> list[_Spot]:
        """The items of a container, the first of which is number `spot.at`."""
        found: list[_Spot] = []
        if spot.shape.stride == 2:
            for key, value in zip(flat[::2], flat[1::2], strict=True):
                found += self._texts(value, spot.path + _step(key))
        else:
            for at, value in enumerate(flat, spot.at):
                found += self._texts(value, f"{spot.path}[{at}]")
        return found

    def _texts(self, value: Any, path: str) -> list[_Spot]:
        """Put the texts of a value; the objects that it refers to are still to be read."""
        found: list[_Spot] = []
        stack = [(value, path)]
        while stack:
            value, path = stack.pop()
            if isinstance(value, str):
                self._place("state", path.removeprefix("."), value)
            elif isinstance(value, Ref):
                found.append(_Spot(value, path))
            elif isinstance(value, dict):
                stack += [(item, path + _step(key)) for key, item in value.items()]
            elif isinstance(value, list):
                stack += [(item, f"{path}[{at}]") for at, item in enumerate(value)]
            elif isinstance(value, wire.Verbatim):
                stack.append((self._unwrapped(value), path))
        return found

    def _unwrapped(self, value: wire.Verbatim) -> Any:
        """What may hold texts inside an extension type, as plain data; None if nothing does."""
        if value.code == wire.TEXT:
            return str(value.data, "utf-8", "surrogatepass")
        if value.code in _LISTS:
            return self._codec.decode(value.data)
        if value.code == wire.OBJECT:
            return self._codec.decode(value.data)[1]
        return self._codec.decode(value.data)[2] if value.code == wire.ENUM else None

    def _fetch(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        """Objects by hash. A read brings along what lies around them: mostly what comes next."""
        if any(address not in self._near for address in wanted):
            try:
                self._near = self._context.store.read(self._context.user, wanted)
            except Corrupt:
                return self._objects.fetch(wanted)
        found = {address: self._near[address] for address in wanted if address in self._near}
        if len(found) < len(wanted) or first_mismatch(found.items()) is not None:
            return self._objects.fetch(wanted)  # from a second copy, if there is one
        return found

    def _read(self, wanted: list[Hash]) -> Mapping[Hash, bytes]:
        """All that can be read. A damaged object is for `verify` to report; it hides no other."""
        try:
            return self._fetch(wanted)
        except Corrupt as error:
            if len(wanted) == 1:
                _log.warning("not searchable, because it cannot be read: %s", error)
                return {}
        half = len(wanted) // 2
        return {**self._read(wanted[:half]), **self._read(wanted[half:])}


def _spots(
    spot: _Spot, counts: list[int], refs: Iterable[Hash], at: int, height: int
) -> list[_Spot]:
    found = []
    for count, ref in zip(counts, refs, strict=True):
        found.append(spot._replace(address=ref, height=height, at=at))
        at += count
    return found


def _step(key: Any) -> str:
    if isinstance(key, wire.Verbatim):
        key = _PLAIN.decode(wire.ext(key.code, key.data))
    return slow.key_step(key)
