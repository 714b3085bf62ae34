"""One user's part of a store in memory."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from hardsave.errors import Conflict, Corrupt
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    Id,
    Labels,
    LogRecord,
    Note,
    TimelineRecord,
    Tombstone,
    WorkspaceRecord,
    filled,
)
from hardsave.stores.base import (
    FILES_WITHIN,
    Batch,
    Changes,
    CheckpointGone,
    Move,
    ObjectsGone,
    TimelineRow,
    conflict_message,
    position,
)
from hardsave.stores.memory.ledger import MemoryLedger
from hardsave.stores.memory.rows import TenantRows
from hardsave.stores.workspaces import WorkspaceMove, check_workspace


class Tenant:
    """What a store in memory keeps for one user. The caller holds the store's lock.

    What changes it may be interrupted anywhere and done again from the start: it comes to the same.
    So each part looks whether it was done, and what it goes by is changed last.
    """

    def __init__(self) -> None:
        self.objects: dict[Hash, bytes] = {}
        self.timelines: dict[str, TimelineRecord] = {}
        self.checkpoints: dict[Id, CheckpointRecord] = {}
        self.ids: list[Id] = []  # sorted
        self.lines: dict[str, list[CheckpointRecord]] = {}  # by seq
        self.tombstones: dict[Id, Tombstone] = {}
        self.labels: dict[Id, Labels] = {}
        self.notes: dict[Id, dict[str, bytes]] = {}
        self.log: dict[Id, LogRecord] = {}
        self.workspaces: dict[bytes, WorkspaceRecord] = {}
        self.ledger = MemoryLedger()
        self.number = 0  # of the last commit
        self.last_purge = 0
        self.pins: dict[bytes, float] = {}  # until when, by time.monotonic()

    def rows(self) -> TenantRows:
        return TenantRows(
            self.number,
            self.last_purge,
            list(self.timelines.values()),
            list(self.checkpoints.values()),
            list(self.tombstones.values()),
            list(self.labels.items()),
            [(id, [Note(*one) for one in notes.items()]) for id, notes in self.notes.items()],
            list(self.log.values()),
            list(self.workspaces.values()),
            self.ledger.rows(),
        )

    @classmethod
    def of(cls, rows: TenantRows) -> "Tenant":
        made = cls()
        made.number, made.last_purge = rows.number, rows.last_purge
        made.timelines = {line.name: line for line in rows.timelines}
        for record in rows.checkpoints:
            made.add(record)
        made.tombstones = {stone.id: stone for stone in rows.tombstones}
        made.labels = dict(rows.labels)
        made.notes = {id: dict(notes) for id, notes in rows.notes}
        made.log = {entry.id: entry for entry in rows.log}
        made.workspaces = {each.id: each for each in rows.workspaces}
        made.ledger = MemoryLedger.of(rows.ledger)
        return made

    def apply(self, batch: Batch, number: int) -> int:
        """Do what was checked, after commit `number`; the number of this one."""
        for address, data in batch.objects.items():
            self.objects.setdefault(address, data)
        for move in moves_of(batch):
            self.timelines[move.become.name] = self._moved(move)
        for one in batch.workspaces:
            self.workspaces[one.become.id] = one.become
        number = self.ledger.apply(batch.work, number)
        for record in batch.changes.checkpoints:
            number += 1
            self.add(record._replace(number=number, hidden=0))
        number += len(batch.changes.tombstones) + 1
        self.change(batch.changes, number)
        self.note(batch.event, number)
        if batch.labels or batch.notes:
            self._attach(batch)
        return number

    def _attach(self, batch: Batch) -> None:
        for id, labels in batch.labels.items():
            if id in self.checkpoints:
                self.labels[id] = labels
        for id, notes in batch.notes.items():
            if id in self.checkpoints:
                self.put_notes(id, notes)

    def put_notes(self, id: Id, notes: Sequence[Note], *, replace: bool = True) -> None:
        there = self.notes.setdefault(id, {})
        for key, data in notes:
            if not data:
                there.pop(key, None)
            elif replace or key not in there:
                there[key] = data

    def has_all(self, id: Id, labels: Labels) -> bool:
        return set(labels) <= set(self.labels.get(id, ()))

    def _moved(self, move: Move) -> TimelineRecord:
        """A title is changed only by a move that means to: what a handle remembers of it may have
        been purged since."""
        expect, become = move
        standing = self.timelines.get(become.name)
        if expect is None or standing is None or expect.title != become.title:
            return become
        is_known = standing.title == become.title
        return become if is_known else become._replace(title=standing.title)

    def note(self, event: CheckpointRecord | LogRecord | EntryRecord, number: int) -> None:
        if isinstance(event, CheckpointRecord):
            self.add(filled(CheckpointRecord, (number, *event[1:])))
        elif isinstance(event, LogRecord):
            self.log[event.id] = event._replace(number=number)
        else:
            self.ledger.add(event._replace(number=number))

    def add(self, record: CheckpointRecord) -> None:
        self.checkpoints[record.id] = record
        self.tombstones.pop(record.id, None)
        at = bisect_left(self.ids, record.id)
        if self.ids[at : at + 1] != [record.id]:
            self.ids.insert(at, record.id)
        line = self.lines.setdefault(record.timeline, [])
        at = bisect_left(line, record.seq, key=_seq)
        line[at : at + _is_at(line, at, record)] = [record]

    def put(self, record: CheckpointRecord) -> None:
        """In the place of the one with this id."""
        line = self.lines[record.timeline]
        line[bisect_left(line, record.seq, key=_seq)] = record
        self.checkpoints[record.id] = record

    def drop(self, record: CheckpointRecord) -> None:
        line = self.lines[record.timeline]
        at = bisect_left(line, record.seq, key=_seq)
        del line[at : at + _is_at(line, at, record)]
        at = bisect_left(self.ids, record.id)
        if self.ids[at : at + 1] == [record.id]:
            del self.ids[at]
        self.labels.pop(record.id, None)
        self.notes.pop(record.id, None)
        self.tombstones[record.id] = Tombstone(
            record.id, record.timeline, record.seq, record.parent
        )
        del self.checkpoints[record.id]

    def change(self, changes: Changes, by: int) -> None:
        """Hide, show, drop and replace, as commit `by`."""
        for id in changes.hide:
            record = self.checkpoints.get(id)
            if record is not None and not record.is_hidden:
                self.put(record._replace(hidden=by))
        turned = {*changes.show, *(-number for number in changes.hide_again)}
        if turned:
            for record in [r for r in self.checkpoints.values() if r.hidden in turned]:
                self.put(record._replace(hidden=-record.hidden))
        for new in changes.replace:
            record = self.checkpoints.get(new.id)
            if record is not None:
                self.put(_in_the_place_of(record, new))
        for id in changes.drop:
            record = self.checkpoints.get(id)
            if record is not None:
                self.drop(record)
        for stone in changes.tombstones:
            if stone.id not in self.checkpoints:
                self.tombstones.setdefault(stone.id, stone)
        if changes.purges:
            self.last_purge = by
        if changes.forget_log:
            for entry in [e for e in self.log.values() if e.number <= changes.forget_log]:
                del self.log[entry.id]
        for id in changes.forget_workspaces:
            self.workspaces.pop(id, None)

    def row(self, line: TimelineRecord) -> TimelineRow:
        """A timeline as a list has it."""
        newest = next(self._shown(line), None)
        updated = max(line.created_at, 0 if newest is None else newest.created_at)
        head = None if line.head is None else self.checkpoints.get(line.head)
        saved = sum(1 for _ in self._shown(line))
        return TimelineRow(line, updated, newest, head, saved)

    def branches(self, timeline: str, first: int, last: int) -> list[CheckpointRecord]:
        """What was saved on top of these, but for each one's successor."""
        parents = {each.id: each for each in self.lines.get(timeline, ())}
        found = [
            record
            for record in self.checkpoints.values()
            if record.parent in parents and not record.is_hidden
            if first <= parents[record.parent].seq <= last
            if (record.timeline, record.seq) != (timeline, parents[record.parent].seq + 1)
        ]
        return sorted(found)

    def ancestors(self, id: Id | None) -> Iterator[CheckpointRecord]:
        """A checkpoint, its parent, and so on."""
        while id is not None and (record := self.checkpoints.get(id)) is not None:
            yield record
            id = record.parent

    def workspace_of(self, row: TimelineRow) -> bytes | None:
        """The workspace that its newest files are of."""
        some = islice(self._shown(row.line), FILES_WITHIN)
        found = next((each.workspace for each in some if each.workspace is not None), None)
        return row.head.workspace if found is None and row.head is not None else found

    def _shown(self, line: TimelineRecord) -> Iterator[CheckpointRecord]:
        records = reversed(self.lines.get(line.name, ()))
        return (record for record in records if not record.is_hidden)

    def number_of(self, batch: Batch) -> int | None:
        """The number of a batch that was committed before."""
        if isinstance(batch.event, EntryRecord):
            return self.ledger.number_of(batch.event)
        done = self.checkpoints.get(batch.event.id) or self.log.get(batch.event.id)
        return None if done is None else done.number

    def check(self, batch: Batch) -> None:
        """Raise what keeps a batch from being written."""
        changes = batch.changes
        self.ledger.check(batch.work)
        newest = next(reversed(self.log.values()), None)
        if changes.latest is not None and newest is not None and newest.number > changes.latest:
            raise Conflict("another operation has been logged meanwhile")
        self._check_moves(moves_of(batch), changes.drop)
        if batch.workspaces:
            self._check_workspaces(batch.workspaces)
        for id in changes.keeps:
            if id not in self.checkpoints:
                raise CheckpointGone(f"checkpoint {id.hex()} was dropped meanwhile")
        gone = [address for address in batch.requires if address not in self.objects]
        if gone:
            count, first = len(gone), gone[0].hex()
            raise ObjectsGone(f"{count} objects are no longer stored, {first} among them")

    def _check_moves(self, moves: list[Move], drop: Collection[Id]) -> None:
        for expect, become in moves:
            standing = self.timelines.get(become.name)
            if position(standing) != position(expect):
                raise Conflict(conflict_message(become.name, standing, expect))
        heads = {name: line.head for name, line in self.timelines.items()}
        heads |= {become.name: become.head for _, become in moves}
        for name, head in heads.items():
            if head in drop:
                raise Conflict(f"checkpoint {head!r} is the head of timeline {name!r} by now")

    def _check_workspaces(self, moves: Sequence[WorkspaceMove]) -> None:
        found = dict(self.workspaces)
        for move in moves:
            become = move.become
            there = (each for each in found.values() if each[1:3] == become[1:3])
            check_workspace(move, found.get(become.id), next(there, None))
            found[become.id] = become

    def collect(self, refs: Callable[[bytes], Collection[Hash]]) -> list[bytes]:
        """Take away what no checkpoint leads to, and return it."""
        reached: set[Hash] = set()
        frontier = {root for record in self.checkpoints.values() for root in record.roots}
        while frontier:
            reached |= frontier
            found = [self._found(address) for address in frontier]
            frontier = {ref for data in found for ref in refs(data)} - reached
        return [self.objects.pop(address) for address in self.objects.keys() - reached]

    def _found(self, address: Hash) -> bytes:
        data = self.objects.get(address)
        if data is None or digest(data) != address:
            raise Corrupt(f"object {address.hex()} is missing or damaged; run verify before gc")
        return data


def moves_of(batch: Batch) -> list[Move]:
    """Its own and those of other timelines."""
    return [*([] if batch.move is None else [batch.move]), *batch.changes.moves]


def _is_at(line: list[CheckpointRecord], at: int, record: CheckpointRecord) -> bool:
    return at < len(line) and line[at].id == record.id


def _seq(record: CheckpointRecord) -> int:
    return record.seq


def _in_the_place_of(record: CheckpointRecord, new: CheckpointRecord) -> CheckpointRecord:
    """All but number, place and time anew."""
    return new._replace(
        number=record.number,
        timeline=record.timeline,
        seq=record.seq,
        parent=record.parent,
        created_at=record.created_at,
        hidden=record.hidden,
    )
