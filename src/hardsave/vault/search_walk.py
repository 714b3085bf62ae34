"""Bringing the search index up to date with the store.

Checkpoints are taken in the order of their commits. Of each only the objects are read that its
timeline has not had before: an object's first checkpoint on a timeline is where its texts
are found. What an object leads to was new no later than the object itself, so a known one is
not looked into.

Of files, the paths are taken in that a checkpoint added, changed or removed: against the newest
one before it, on any timeline, that has files of the same directory. So a directory's names are
listed once, however many sessions work there; and all are compared again when a checkpoint came
or went that another was compared with.

Which checkpoints are hidden or gone changes by operations alone, and these are logged. If
something was logged, the checkpoints are listed once more, and timelines on which any came or went
are walked again from their beginning.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hardsave.errors import Corrupt, HardsaveError
from hardsave.logs import log
from hardsave.objects import slow, wire
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.reader import Reader
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.objects.tree import Ref, Shape, Stored
from hardsave.objects.types import Types
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.search_files import changed_files
from hardsave.vault.search_index import Outdated, packed
from hardsave.vault.search_words import readable

if TYPE_CHECKING:
    import apsw

PAGE = 200  # checkpoints a transaction
BATCH = 64  # objects read at once: each may bring its pack along

_log = log(__name__)
_PLAIN = Codec(Types())
_LISTS = (wire.TUPLE, wire.SET, wire.FROZENSET)


def catch_up(context: Context, index: "apsw.Connection", *, thorough: bool = False) -> None:
    """Take in what was saved, hidden, shown and dropped since the last time."""
    saved, last, logged = index.execute("SELECT saved, last, logged FROM progress").get
    if last is not None and not _is_known(context, last, saved):
        raise Outdated("it is of another store, or of one that was put back")
    newest = context.store.log_before(context.user, None, 1)
    now = newest[0].number if newest else 0
    if thorough or now != logged:
        with index:
            if thorough or not _are_forks(context, logged, now):
                _settle(context, index, saved)
            _name_forks(context, index)
            index.execute("UPDATE progress SET logged = ?", (now,))
    while records := context.store.saved(context.user, saved, PAGE):
        with index:
            _walk_all(context, index, records)
            saved = records[-1].number
            index.execute("UPDATE progress SET saved = ?, last = ?", (saved, records[-1].id))


def _is_known(context: Context, last: Id, number: int) -> bool:
    record = context.store.checkpoint(context.user, last)
    if record is None:
        return context.store.tombstone(context.user, last) is not None
    return record.number == number


def _are_forks(context: Context, after: int, upto: int) -> bool:
    """Whether nothing but forks was logged: they hide nothing."""
    entries = context.store.log(context.user, after, PAGE)
    return bool(entries) and entries[-1].number == upto and {e.kind for e in entries} == {"fork"}


# Operations


def _settle(context: Context, index: "apsw.Connection", upto: int) -> None:
    """Walk again the timelines on which checkpoints came or went."""
    changed = _changed(context, index, upto)
    for table in ("seen", "places", "checkpoints") if changed else ():
        index.executemany(
            f"DELETE FROM {table} WHERE timeline = (SELECT id FROM timelines WHERE name = ?)",  # noqa: S608 # one of three names
            [(name,) for name in changed],
        )
    for page in _listed(context, upto) if changed else ():
        _walk_all(context, index, [record for record in page if record.timeline in changed])
    if changed:
        _compare_files_again(context, index, upto)
        _forget_texts(index)


def _compare_files_again(context: Context, index: "apsw.Connection", upto: int) -> None:
    index.execute("DELETE FROM places WHERE field = 'file'")
    index.execute("DELETE FROM changes")
    for page in _listed(context, upto):
        for record, walk in _walks(context, index, page):
            walk.take_in_files(record)


def _forget_texts(index: "apsw.Connection") -> None:
    """Those that stand nowhere any more."""
    index.execute(
        "INSERT INTO words (words, rowid, text) SELECT 'delete', id, text FROM readable "
        "WHERE id NOT IN (SELECT text FROM places)"
    )
    index.execute("DELETE FROM texts WHERE id NOT IN (SELECT text FROM places)")


def _changed(context: Context, index: "apsw.Connection", upto: int) -> set[str]:
    """Timelines of which the index knows another set of checkpoints than the store shows."""
    changed: set[str] = set()
    after = 0
    for page in _listed(context, upto):
        known = _known(index, after, page[-1].number)
        shown = {r.number: (r.timeline, r.id, r.root) for r in page if not r.is_hidden}
        changed |= {row[0] for _, row in known.items() ^ shown.items()}
        after = page[-1].number
    return changed | {row[0] for row in _known(index, after, upto).values()}


def _known(index: "apsw.Connection", after: int, upto: int) -> dict[int, tuple[str, Id, Hash]]:
    rows = index.execute(
        "SELECT c.number, t.name, c.id, c.root FROM checkpoints AS c "
        "JOIN timelines AS t ON t.id = c.timeline WHERE c.number > ? AND c.number <= ?",
        (after, upto),
    )
    return {number: (name, id, root) for number, name, id, root in rows}


def _listed(context: Context, upto: int) -> Iterator[list[CheckpointRecord]]:
    after = 0
    while records := context.store.saved(context.user, after, PAGE):
        page = [record for record in records if record.number <= upto]
        if not page:
            return
        yield page
        after = page[-1].number


def _name_forks(context: Context, index: "apsw.Connection") -> None:
    """A fork on which nothing was saved yet is found by its name, at where it begins; not one that
    was taken back."""
    index.execute(
        "DELETE FROM places WHERE field = 'timeline' "
        "AND timeline NOT IN (SELECT timeline FROM checkpoints)"
    )
    gone = index.changes()
    for line in context.history.timelines():
        if line.last_seq or line.head is None:
            continue
        record = context.store.checkpoint(context.user, line.head)
        if record is not None:
            _Walk(context, index, line.name).put("timeline", "", line.name, record.number)
    if gone:
        _forget_texts(index)


# Walking


def _walk_all(
    context: Context, index: "apsw.Connection", records: Iterable[CheckpointRecord]
) -> None:
    for record, walk in _walks(context, index, records):
        walk.take_in(record)
        walk.take_in_files(record)


def _walks(
    context: Context, index: "apsw.Connection", records: Iterable[CheckpointRecord]
) -> "Iterator[tuple[CheckpointRecord, _Walk]]":
    """Those that are not hidden, each with the walk of its timeline."""
    walks: dict[str, _Walk] = {}
    for record in records:
        if record.is_hidden:
            continue
        if record.timeline not in walks:
            walks[record.timeline] = _Walk(context, index, record.timeline)
        yield record, walks[record.timeline]


class _Spot(NamedTuple):
    """An object to look into. Height 0 is a value, 1 a leaf, above it a node."""

    address: Hash
    path: str
    height: int = 0
    at: int = 0  # the number of its first item
    shape: Shape = Shape.LIST  # of the container that it is a part of


class _Walk:
    """What is new on one timeline."""

    def __init__(self, context: Context, index: "apsw.Connection", timeline: str) -> None:
        self._context = context
        self._objects = context.objects
        self._index = index
        index.execute("INSERT OR IGNORE INTO timelines (name) VALUES (?)", (timeline,))
        self._timeline = index.execute("SELECT id FROM timelines WHERE name = ?", (timeline,)).get
        self._codec = context.objects.verbatim.codec
        self._near: Mapping[Hash, bytes] = {}
        self._reader = Reader(self._codec, self._fetch)

    def take_in(self, record: CheckpointRecord) -> None:
        row = (record.number, record.id, self._timeline, record.root)
        self._index.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?)", row)
        self.put("timeline", "", record.timeline, record.number)
        self.put("name", "", record.name or "", record.number)
        self.put("status", "", record.status, record.number)
        self.put("description", "", record.description, record.number)
        stack = [_Spot(record.root, "")]
        while stack:
            batch, stack[-BATCH:] = stack[-BATCH:], []
            fresh = [spot for spot in batch if self._is_new(spot.address)]
            self._near = self._read([spot.address for spot in fresh])
            for spot in fresh:
                if spot.address in self._near:
                    stack += self._inside(spot, record.number)

    def take_in_files(self, record: CheckpointRecord) -> None:
        """Put the paths that a checkpoint added, changed or removed."""
        for path, change in changed_files(self._context, record):
            text = self.put("file", "", path, record.number)
            row = (text, self._timeline, record.number, change)
            self._index.execute("INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?)", row)

    def put(self, field: str, path: str, text: str, number: int) -> int | None:
        """Remember where a text was first seen; index it if it was never seen at all. Its id."""
        if not text:
            return None
        run = self._index.execute
        key = digest(text.encode("utf-8", "surrogatepass"))
        id: int | None = run("SELECT id FROM texts WHERE digest = ?", (key,)).get
        if id is None:
            row = (key, *packed(text))
            id = run(
                "INSERT INTO texts (digest, size, body) VALUES (?, ?, ?) RETURNING id", row
            ).get
            run("INSERT INTO words (rowid, text) VALUES (?, ?)", (id, readable(text)))
        place = (id, self._timeline, field, readable(path), number)
        run("INSERT OR IGNORE INTO places VALUES (?, ?, ?, ?, ?)", place)
        return id

    def _is_new(self, address: Hash) -> bool:
        self._index.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (self._timeline, address))
        return self._index.changes() > 0

    def _inside(self, spot: _Spot, number: int) -> list[_Spot]:
        """Put the texts that lie in an object; what it leads to is to be looked into."""
        try:
            return self._looked_into(spot, number)
        except HardsaveError as error:
            _log.warning("not searchable, because it cannot be read: %s", error)
            return []

    def _looked_into(self, spot: _Spot, number: int) -> list[_Spot]:
        if spot.height > 1:
            counts, refs = self._reader.children(spot.address, self._near[spot.address])
            return _spots(spot, counts, refs, spot.at, spot.height - 1)
        if spot.height == 1:
            flat = self._reader.flat(self._near[spot.address])
            return self._items(flat, spot, number)
        value = self._reader.open(spot.address)
        if not isinstance(value, Stored):
            return self._texts(value, spot.path, number)
        at = value.length - len(value.items) // value.shape.stride
        inner = spot._replace(shape=value.shape, at=at)
        found = self._items(value.items, inner, number)
        for height, (counted, below) in enumerate(self._reader.edges(value), 1):
            at -= sum(counted)
            found += _spots(inner, counted, below, at, height)
        return found

    def _items(self, flat: list[Any], spot: _Spot, number: int) -> list[_Spot]:
        """The items of a container, the first of which is number `spot.at`."""
        found: list[_Spot] = []
        if spot.shape.stride == 2:
            for key, value in zip(flat[::2], flat[1::2], strict=True):
                found += self._texts(value, spot.path + _step(key), number)
        else:
            for at, value in enumerate(flat, spot.at):
                found += self._texts(value, f"{spot.path}[{at}]", number)
        return found

    def _texts(self, value: Any, path: str, number: int) -> list[_Spot]:
        """Put the texts of a value; the objects that it refers to are still to be read."""
        found: list[_Spot] = []
        stack = [(value, path)]
        while stack:
            value, path = stack.pop()
            if isinstance(value, str):
                self.put("state", path.removeprefix("."), value, number)
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
        if all(address in self._near for address in wanted):
            return self._near
        return self._objects.fetch(wanted)

    def _read(self, wanted: list[Hash]) -> Mapping[Hash, bytes]:
        """All that can be read. A damaged object is for `verify` to report; it hides no other."""
        try:
            return self._objects.fetch(wanted)
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
