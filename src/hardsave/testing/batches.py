"""Batches to try a store with: the same ones in every run, and no two alike."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from hardsave.objects.hashing import HASH_BYTES, Hash, digest
from hardsave.objects.records import ID_BYTES, CheckpointRecord, Id, LogRecord, TimelineRecord
from hardsave.stores.base import Batch, Changes, Move, Query, Store
from hardsave.tuples import NamedTuple

MOMENT = 1_700_000_000_000_000  # microseconds; every save is one second after the one before
SECOND = 1_000_000
MOST_PAGES = 100  # more than any test here needs; ends a listing that repeats its pages for ever

Row = TypeVar("Row")
Key = TypeVar("Key")


def but(record: Row, **changes: object) -> Row:
    """A batch or a query with some of its fields changed."""
    fields = {name: getattr(record, name) for name in type(record).__annotations__}
    return type(record)(**{**fields, **changes})


def an_id(label: str) -> Id:
    return digest(b"id " + label.encode())[:ID_BYTES]


def an_object(label: str, size: int = 40) -> dict[Hash, bytes]:
    """One object whose content is all its own."""
    data = (label.encode() + b" ").ljust(size, b".")
    return {digest(data): data}


def some_objects(label: str, count: int) -> dict[Hash, bytes]:
    made: dict[Hash, bytes] = {}
    for number in range(count):
        made |= an_object(f"{label} {number}")
    return made


def a_parent(label: str, *refs: Hash) -> dict[Hash, bytes]:
    """One object that refers to others, as `refs_of` tells."""
    data = bytes([len(refs)]) + b"".join(refs) + f" parent {label}".encode()
    return {digest(data): data}


def refs_of(data: bytes) -> list[Hash]:
    """What an object refers to: those of `a_parent` to some, all others to none."""
    if b" parent " not in data:
        return []
    return [data[at : at + HASH_BYTES] for at in range(1, data[0] * HASH_BYTES, HASH_BYTES)]


def an_entry(label: str, *, timeline: str | None = None, kind: str = "note") -> LogRecord:
    return LogRecord(0, an_id(label), timeline, kind, MOMENT, label.encode())


def a_note(label: str, user: str | None = None) -> Batch:
    """A batch that does nothing but say so."""
    return Batch(user=user, event=an_entry(label))


def operate(store: Store, label: str, changes: Changes, user: str | None = None) -> int:
    """Commit an operation; its number."""
    return store.commit(Batch(user, an_entry(label, kind="operation"), changes=changes))


class Line:
    """Saves on one timeline, and remembers where that left it.

    `writer` tells apart what two lines of one name do: their checkpoints and objects differ.
    """

    def __init__(
        self, store: Store, name: str = "main", *, user: str | None = None, writer: str = ""
    ) -> None:
        self.store = store
        self.name = name
        self.user = user
        self.writer = writer
        self.standing: TimelineRecord | None = None
        self.saved: list[CheckpointRecord] = []

    def next(
        self,
        *,
        objects: Mapping[Hash, bytes] | None = None,
        name: str | None = None,
        kind: str = "automatic",
        status: str = "running",
        description: str = "",
        metadata: bytes = b"\x80",
    ) -> Batch:
        """The next save as a batch, not committed."""
        before = self.standing
        seq = 1 if before is None else before.last_seq + 1
        label = f"{self.user!r} {self.name} {seq} {self.writer}"
        if objects is None:
            objects = an_object(f"state of {label}")
        event = CheckpointRecord(
            number=0,
            id=an_id(label),
            timeline=self.name,
            seq=seq,
            parent=None if before is None else before.head,
            created_at=MOMENT + seq * SECOND,
            name=name,
            kind=kind,
            status=status,
            description=description,
            metadata=metadata,
            root=next(iter(objects), digest(label.encode())),
        )
        become = TimelineRecord(
            name=self.name,
            head=event.id,
            last_seq=seq,
            created_at=event.created_at if before is None else before.created_at,
            origin=None if before is None else before.origin,
            title="" if before is None else before.title,
        )
        return Batch(self.user, event, Move(before, become), objects)

    def save_files(self, workspace: bytes) -> CheckpointRecord:
        """Commit the next save with files of a workspace beside its state."""
        batch = self.next()
        assert isinstance(batch.event, CheckpointRecord)
        files = an_object(f"files of {batch.event.id.hex()}")
        event = batch.event._replace(snapshot=next(iter(files)), workspace=workspace)
        self.commit(batch._replace(event=event, objects={**batch.objects, **files}))
        return self.saved[-1]

    def commit(self, batch: Batch) -> int:
        """Commit a batch of this line, and go on from where it leads."""
        number = self.store.commit(batch)
        assert batch.move is not None
        self.standing = batch.move.become
        if isinstance(batch.event, CheckpointRecord):
            self.saved.append(batch.event._replace(number=number))
        return number

    def save(self, **about: str) -> CheckpointRecord:
        """Commit the next save; its record as the store has to give it back."""
        self.commit(self.next(**about))  # type: ignore[arg-type] # texts only: no objects among them
        return self.saved[-1]

    def save_tree(self, objects: Mapping[Hash, bytes]) -> CheckpointRecord:
        """Commit a save of objects, of which the last is the root."""
        batch = self.next(objects=objects)
        assert isinstance(batch.event, CheckpointRecord)
        self.commit(but(batch, event=batch.event._replace(root=list(objects)[-1])))
        return self.saved[-1]

    def moved(self, label: str, *, head: Id | None) -> Batch:
        """A batch that sets the head to another checkpoint, and says so in the log."""
        assert self.standing is not None, "save first"
        event = an_entry(label, timeline=self.name, kind="move")
        return Batch(self.user, event, Move(self.standing, self.standing._replace(head=head)))


class Trace(NamedTuple):
    """All that one user can see of a store, but for the objects' bytes."""

    timelines: list[TimelineRecord]
    checkpoints: list[CheckpointRecord]
    log: list[LogRecord]
    counts: tuple[int, int, int]


def trace(store: Store, user: str | None = None) -> Trace:
    """To see that nothing changed, or that it did."""
    timelines = store.timelines(user, None, 1_000)
    checkpoints = [
        record
        for timeline in timelines
        for record in store.checkpoints(user, Query(timeline=timeline.name, limit=1_000))
    ]
    stats = store.stats(user)
    return Trace(
        timelines,
        checkpoints,
        store.log(user, 0, 1_000),
        (stats.timelines, stats.checkpoints, stats.objects),
    )


def walk(
    page: Callable[[Key | None, int], list[Row]], cursor: Callable[[Row], Key], limit: int
) -> Iterator[Row]:
    """All rows, in pages of at most `limit`, each after the cursor of the last row before it."""
    at: Key | None = None
    for _ in range(MOST_PAGES):
        rows = page(at, limit)
        assert len(rows) <= limit
        if not rows:
            return
        yield from rows
        at = cursor(rows[-1])
    raise AssertionError(f"{MOST_PAGES} pages, and no end: the cursor does not lead on")
