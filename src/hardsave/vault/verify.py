"""Reading everything once, to know that it can be read. Runs and constructs nothing."""

from collections.abc import Iterator
from typing import NamedTuple

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord
from hardsave.stores.base import Query
from hardsave.timeline.refs import to_text
from hardsave.vault.context import Context

_PAGE = 500
_BATCH = 256


class Verification(NamedTuple):
    """What was looked at, and what is wrong with it."""

    checkpoints: int
    objects: int
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.faults


def verify(context: Context, one: CheckpointRecord | None) -> Verification:
    """Check one checkpoint, or the whole store as far as this user can see it."""
    faults: list[str] = []
    seen: set[Hash] = set()
    count = 0
    context.store.forget()
    if one is None:
        faults += context.store.verify()
    try:
        for record in [one] if one is not None else _all(context, faults):
            count += 1
            faults += _faults(context, record, seen)
    except Corrupt as error:
        faults.append(str(error))  # rows that cannot be read end the walk
    return Verification(count, len(seen), tuple(dict.fromkeys(faults)))


def _faults(context: Context, record: CheckpointRecord, seen: set[Hash]) -> Iterator[str]:
    """What is wrong with one checkpoint. `seen` objects were found sound before."""
    where = f"checkpoint {to_text(record.id)} ({record.timeline}:{record.seq})"
    parent = record.parent
    if parent is not None and not _is_accounted_for(context, parent):
        yield f"{where}: its parent {to_text(parent)} is missing"
    frontier = list(record.roots)
    while frontier:
        wanted = [address for address in dict.fromkeys(frontier) if address not in seen]
        frontier = []
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            seen.update(batch)
            for fault_or_refs in _refs(context, batch):
                if isinstance(fault_or_refs, str):
                    yield f"{where}: {fault_or_refs}"
                else:
                    frontier += fault_or_refs


def _is_accounted_for(context: Context, id: Id) -> bool:
    store, user = context.store, context.user
    return store.checkpoint(user, id) is not None or store.tombstone(user, id) is not None


def _refs(context: Context, batch: list[Hash]) -> Iterator[str | tuple[Hash, ...]]:
    """What each object refers to, or what is wrong with it."""
    found = _read(context, batch)
    for address in batch:
        try:
            data = envelope.checked(address, found[address])
            yield envelope.unseal(data).refs
        except KeyError:
            yield f"object {address.hex()} is missing or cannot be read"
        except Corrupt as error:
            yield str(error)


def _read(context: Context, batch: list[Hash]) -> dict[Hash, bytes]:
    """All of a batch that can be read: one damaged pack does not hide its neighbours."""
    try:
        return context.store.read(context.user, batch)
    except Corrupt:
        found: dict[Hash, bytes] = {}
        for address in batch:
            try:
                found.update(context.store.read(context.user, [address]))
            except Corrupt:
                continue  # reported by the caller as not readable
        return found


def _all(context: Context, faults: list[str]) -> Iterator[CheckpointRecord]:
    """Every checkpoint, hidden ones too, and on the way whether any number is missing."""
    seen: dict[str, set[int]] = {line.name: set() for line in _timelines(context)}
    after = 0
    while rows := context.store.saved(context.user, after, _PAGE):
        for record in rows:
            seq: object = record.seq
            if not isinstance(seq, int):  # a damaged index may lead anywhere
                faults.append(f"commit {record.number} has {seq!r} for a number")
                continue
            seen.setdefault(record.timeline, set()).add(seq)
            yield record
        after = rows[-1].number
    for name, numbers in seen.items():
        line = context.store.timeline(context.user, name)
        if line is None:
            faults.append(f"timeline {name!r} has checkpoints, and is missing")
            continue
        faults += _gaps(context, line, numbers)
        if line.head is not None and context.store.checkpoint(context.user, line.head) is None:
            faults.append(f"timeline {name!r}: its head {to_text(line.head)} is missing")


def _gaps(context: Context, line: TimelineRecord, numbers: set[int]) -> Iterator[str]:
    """Numbers that were given out, and of which neither checkpoint nor tombstone is left."""
    before: int | None = None
    while stones := context.store.tombstones(context.user, line.name, before, _PAGE):
        numbers.update(stone.seq for stone in stones)
        before = stones[-1].seq
    last = 0
    if numbers and _begins_elsewhere(context, line.name, min(numbers)):
        last = min(numbers) - 1
    for number in [*sorted(numbers), line.last_seq + 1]:
        if number > last + 1:
            yield f"timeline {line.name!r}: numbers {last + 1} to {number - 1} missing"
        last = number


def _begins_elsewhere(context: Context, name: str, first: int) -> bool:
    """Whether a timeline was imported beside one that has the numbers before its first."""
    store, user = context.store, context.user
    query = Query(timeline=name, seq=first, limit=1, hidden=True)
    rows, stones = store.checkpoints(user, query), store.tombstones(user, name, first + 1, 1)
    parents = [row.parent for row in rows] + [stone.parent for stone in stones]
    parent = parents[0] if parents else None
    if parent is None:
        return True
    below = store.checkpoint(user, parent) or store.tombstone(user, parent)
    return below is not None and below.timeline != name


def _timelines(context: Context) -> Iterator[TimelineRecord]:
    after: str | None = None
    while rows := context.store.timelines(context.user, after, _PAGE):
        yield from rows
        after = rows[-1].name
