"""Reading everything once, to know that it can be read. Runs and constructs nothing.

Others may save, drop and purge meanwhile: the walk is not one moment of the store. So what is
expected was there before the walk began, and what is missing counts only while something that
still exists needs it.
"""

from collections.abc import Iterator

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.progress import Meter, Total, meter
from hardsave.record import Record
from hardsave.stores.base import Query
from hardsave.timeline.refs import to_text
from hardsave.vault import operations
from hardsave.vault.context import Context

_PAGE = 500
_BATCH = 256


class Verification(Record):
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
        meter("checking the database")
        faults += context.store.verify()
    read = meter("verifying", "objects", context.volume if one is None else Total)
    try:
        for record in [one] if one is not None else _all(context, faults):
            count += 1
            faults += _lasting_faults(context, record, seen, read)
        if one is None:
            faults += _faults_of_log(context)
    except Corrupt as error:
        faults.append(str(error))  # rows that cannot be read end the walk
    return Verification(count, len(seen), tuple(dict.fromkeys(faults)))


def _lasting_faults(
    context: Context, record: CheckpointRecord | None, seen: set[Hash], read: Meter
) -> list[str]:
    """What is wrong with a checkpoint that is as it was, or as it has become meanwhile."""
    store, user = context.store, context.user
    while record is not None:
        fresh: set[Hash] = set()
        found = [*_faults(context, record, seen, fresh, read)]
        now = store.checkpoint(user, record.id) if found else record
        if now == record or (now is None and store.tombstone(user, record.id) is None):
            seen |= fresh
            return found
        record = now  # another one, after a purge, or none; what it shared is looked at anew
    return []


def _faults(
    context: Context, record: CheckpointRecord, seen: set[Hash], fresh: set[Hash], read: Meter
) -> Iterator[str]:
    """What is wrong with one checkpoint. `seen` objects were looked at before, `fresh` ones now."""
    where = f"checkpoint {to_text(record.id)} ({record.timeline}:{record.seq})"
    parent = record.parent
    if parent is not None and not _is_accounted_for(context, parent):
        yield f"{where}: its parent {to_text(parent)} is missing"
    frontier = list(record.roots)
    while frontier:
        wanted = [
            address
            for address in dict.fromkeys(frontier)
            if address not in seen and address not in fresh
        ]
        frontier = []
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            fresh.update(batch)
            for fault_or_refs in _refs(context, batch, read):
                if isinstance(fault_or_refs, str):
                    yield f"{where}: {fault_or_refs}"
                else:
                    frontier += fault_or_refs


def _faults_of_log(context: Context) -> Iterator[str]:
    """Entries that could not be undone."""
    after = 0
    while rows := context.store.log(context.user, after, _PAGE):
        after = rows[-1].number
        for row in rows:
            try:
                operations.decode(row)
            except Corrupt as error:
                yield str(error)


def _is_accounted_for(context: Context, id: Id) -> bool:
    store, user = context.store, context.user
    return store.checkpoint(user, id) is not None or store.tombstone(user, id) is not None


def _refs(context: Context, batch: list[Hash], read: Meter) -> Iterator[str | tuple[Hash, ...]]:
    """What each object refers to, or what is wrong with it."""
    found = _read(context, batch)
    read.add(len(batch), sum(len(found[address]) for address in batch if address in found))
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
    given = {line.name: line.last_seq for line in context.history.timelines()}
    seen: dict[str, set[int]] = {name: set() for name in given}
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
        if context.store.timeline(context.user, name) is None:
            faults.append(f"timeline {name!r} has checkpoints, and is missing")
            continue
        faults += _gaps(context, name, numbers, given.get(name, 0))
        faults += _headless(context, name)


def _headless(context: Context, name: str) -> Iterator[str]:
    """Whether the head of a timeline is missing, and stays so."""
    head: Id | None = None
    while (line := context.store.timeline(context.user, name)) is not None:
        if line.head is None or context.store.checkpoint(context.user, line.head) is not None:
            return
        if line.head == head:
            yield f"timeline {name!r}: its head {to_text(head)} is missing"
            return
        head = line.head  # it may have gone on, and this one been dropped, in between


def _gaps(context: Context, name: str, numbers: set[int], given: int) -> Iterator[str]:
    """Numbers up to `given` of which neither checkpoint nor tombstone is left."""
    before: int | None = None
    while stones := context.store.tombstones(context.user, name, before, _PAGE):
        numbers.update(stone.seq for stone in stones)
        before = stones[-1].seq
    last = 0
    if numbers and _begins_elsewhere(context, name, min(numbers)):
        last = min(numbers) - 1
    for number in [*sorted(numbers), given + 1]:
        if number > last + 1:
            yield f"timeline {name!r}: numbers {last + 1} to {number - 1} missing"
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
