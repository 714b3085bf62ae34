"""Stores that break one sentence of the contract each, every one put through the contract.

Pytest does not collect this file by itself: `test_contract_catches_faults` runs it.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hardsave.errors import Conflict, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    Id,
    Labels,
    LogRecord,
    Note,
    OwnerRecord,
    TaskRecord,
    TimelineRecord,
    Tombstone,
    WorkspaceRecord,
)
from hardsave.stores.base import (
    Batch,
    Changes,
    Move,
    Query,
    Store,
    TimelineQuery,
    TimelineRow,
    Turn,
    position,
)
from hardsave.stores.ledger import TaskQuery
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.memory.tenant import moves_of
from hardsave.stores.memory.turns import MemoryTurns
from hardsave.stores.results import Collected
from hardsave.testing import StoreContract
from hardsave.testing.batches import but

Refs = Callable[[bytes], Collection[Hash]]


class TestSound(StoreContract):
    persists = False

    def open_store(self, folder: Path) -> Store:
        return MemoryStore()


# Writing


class WritesBeforeItChecks(MemoryStore):
    def commit(self, batch: Batch) -> int:
        if batch.move is not None and batch.move.expect is not None:
            early = LogRecord(0, _other(batch), None, "", 0, b"")
            super().commit(_without_checks(self, batch, early))
        return super().commit(batch)


class KeepsTheObjectsOfARefusedBatch(MemoryStore):
    def commit(self, batch: Batch) -> int:
        try:
            return super().commit(batch)
        except Conflict:
            self._tenants[batch.user].objects.update(batch.objects)
            raise


class KnowsNoRepeats(MemoryStore):
    def commit(self, batch: Batch) -> int:
        event = batch.event
        tenant = self._tenant(batch.user)
        if event.id in tenant.checkpoints or event.id in tenant.log:
            batch = but(batch, event=event._replace(id=os.urandom(12)))
        return super().commit(batch)


class KnowsARepeatOnlyAtTheHead(MemoryStore):
    """Compares the newest checkpoint only, as a store without an index by id might."""

    def commit(self, batch: Batch) -> int:
        event = batch.event
        if isinstance(event, CheckpointRecord) and self.checkpoint(batch.user, event.id):
            standing = self.timeline(batch.user, event.timeline)
            if standing is None or standing.head != event.id:
                raise Conflict("the timeline has moved on")
        return super().commit(batch)


class ChecksTheExpectationFirst(MemoryStore):
    def commit(self, batch: Batch) -> int:
        if batch.move is not None:
            standing = self.timeline(batch.user, batch.move.become.name)
            if standing != batch.move.expect:
                raise Conflict("the timeline is elsewhere")
        return super().commit(batch)


class LooksForRepeatsOnlyAfterAConflict(MemoryStore):
    """Relies on a repeat's expectation, which holds where an id is used a second time."""

    def commit(self, batch: Batch) -> int:
        event = batch.event
        if isinstance(event, CheckpointRecord) and self.checkpoint(batch.user, event.id):
            move = moves_of(batch)[0]
            standing = self.timeline(batch.user, move.become.name)
            if position(standing) == position(move.expect):
                raise Unavailable("UNIQUE constraint failed: checkpoints.user, checkpoints.id")
        return super().commit(batch)


class IgnoresWhatIsExpected(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(_without_checks(self, batch, batch.event, requires=batch.requires))


class ExpectsTheHeadOnly(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(self._eased(batch))

    def _eased(self, batch: Batch) -> Batch:
        if batch.move is None or batch.move.expect is None:
            return batch
        standing = self.timeline(batch.user, batch.move.become.name)
        if standing is None:
            return batch
        eased = batch.move._replace(expect=self._seen(batch.move.expect, standing))
        return but(batch, move=eased)

    def _seen(self, expect: TimelineRecord, standing: TimelineRecord) -> TimelineRecord:
        return expect._replace(last_seq=standing.last_seq)


class ExpectsTheNumberOnly(ExpectsTheHeadOnly):
    def _seen(self, expect: TimelineRecord, standing: TimelineRecord) -> TimelineRecord:
        return expect._replace(head=standing.head)


class AcceptsMissingRequirements(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(but(batch, requires=()))


class NumbersEachTimelineApart(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._by_line: dict[tuple[str | None, str], int] = {}

    def commit(self, batch: Batch) -> int:
        line = batch.user, "" if batch.move is None else batch.move.become.name
        self._tenant(batch.user).number = self._by_line.get(line, 0)
        number = super().commit(batch)
        self._by_line[line] = max(number, self._by_line.get(line, 0))
        return number


class CountsSavesAloneAsTheLatest(MemoryStore):
    def latest_number(self, user: str | None) -> int:
        saved = self.saved(user, 0, 10_000)
        return saved[-1].number if saved else 0


class ShowsCommitsLate(MemoryStore):
    """Counts what it does not show yet, as one that gives numbers out before it writes."""

    def __init__(self) -> None:
        super().__init__()
        self._late = 0

    def latest_number(self, user: str | None) -> int:
        self._late = super().latest_number(user)
        return self._late

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        rows = super().saved(user, after, limit)
        return [row for row in rows if not self._late - 3 < row.number <= self._late]


class TakesALeaseOnce(MemoryStore):
    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        if is_new and owner in self.owners(user):
            return False
        return super().hold(user, owner, is_new=is_new)


class TakesEveryTurn(MemoryStore):
    """Its turns are written down, and never looked at."""

    def once(self, name: str) -> AbstractContextManager[Turn | None]:
        return MemoryTurns().take(name)


class ShowsTheHeadTooEarly(MemoryStore):
    """Moves the timeline, and writes the checkpoint a moment later."""

    def __init__(self) -> None:
        super().__init__()
        self._one_writer = threading.Lock()
        self._early: dict[tuple[str | None, str], TimelineRecord] = {}

    def commit(self, batch: Batch) -> int:
        with self._one_writer:
            if batch.move is not None and batch.move.expect is not None:
                become = batch.move.become
                self._early[batch.user, become.name] = become
                time.sleep(0.0005)
            try:
                return super().commit(batch)
            finally:
                self._early.clear()

    def timeline(self, user: str | None, name: str) -> TimelineRecord | None:
        return self._early.get((user, name)) or super().timeline(user, name)


# Users


class SharesObjectsAmongUsers(MemoryStore):
    def commit(self, batch: Batch) -> int:
        number = super().commit(but(batch, requires=self.missing(None, batch.requires)))
        of_all = self._tenant("of_all").objects
        of_all.update(batch.objects)
        return number

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        return super().read("of_all", hashes)

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        return super().missing("of_all", hashes)


class ShowsTheLogToAllUsers(MemoryStore):
    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        entries: list[LogRecord] = []
        for one in list(self._tenants):
            entries += super().log(one, after, 999)
        return sorted(entries, key=lambda entry: entry.number)[:limit]


class ShowsALogEntryToAllUsers(MemoryStore):
    def log_entry(self, user: str | None, id: Id) -> LogRecord | None:
        found = (super(ShowsALogEntryToAllUsers, self).log_entry(x, id) for x in self._tenants)
        return next((each for each in found if each is not None), None)


class FindsNoLogEntry(MemoryStore):
    def log_entry(self, user: str | None, id: Id) -> LogRecord | None:
        return None


class ShowsCheckpointsToAllUsers(MemoryStore):
    def checkpoint(self, user: str | None, id: Id) -> CheckpointRecord | None:
        for one in [user, *self._tenants]:
            if found := super().checkpoint(one, id):
                return found
        return None


class TakesNoneForAllUsers(MemoryStore):
    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        rows = super().timelines(user, after, limit, deleted=deleted)
        if user is None:
            for one in [name for name in self._tenants if name is not None]:
                rows += super().timelines(one, after, limit, deleted=deleted)
        return sorted(rows)[:limit]


# Reading


class BringsTitlesBack(MemoryStore):
    def commit(self, batch: Batch) -> int:
        number = super().commit(batch)
        tenant = self._tenants[batch.user]
        for move in moves_of(batch):
            tenant.timelines[move.become.name] = move.become
        return number


class ListsTheHeadAsTheNewest(MemoryStore):
    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        return [row._replace(newest=row.head) for row in super().recent_timelines(user, query)]


class NeverLowersACount(MemoryStore):
    """Raises a count with each save, and never lowers it."""

    def count(self, user: str | None, timeline: str) -> int:
        return len(self._tenant(user).lines.get(timeline, ()))

    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        rows = super().recent_timelines(user, query)
        return [row._replace(saved=self.count(user, row.line.name)) for row in rows]


class UpdatesWithEverySave(MemoryStore):
    """Takes the time of a save that was hidden since for the last update."""

    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        rows = super().recent_timelines(user, query)
        lines = self._tenant(user).lines
        times = [max([0, *(r.created_at for r in lines.get(row.line.name, ()))]) for row in rows]
        return [row._replace(updated_at=at) for row, at in zip(rows, times, strict=True)]


class FiltersTimelinesAfterTheLimit(MemoryStore):
    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        rows = super().recent_timelines(user, but(query, status=None))
        return [row for row in rows if row.newest and query.status in (None, row.newest.status)]


class TakesPrefixesForPatterns(MemoryStore):
    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        pattern = re.escape(query.prefix).replace("_", ".").replace("%", ".*")
        rows = super().recent_timelines(user, but(query, prefix=""))
        return [row for row in rows if re.match(pattern, row.line.name)]


class LooksForTextsInNamesAlone(MemoryStore):
    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        rows = super().recent_timelines(user, query)
        return [row for row in rows if query.text.lower() in row.line.name.lower()]


class FindsTheSuccessorAlone(MemoryStore):
    """Looks for children by number, as if no timeline was ever rewound or forked."""

    def children(self, user: str | None, parent: Id) -> list[CheckpointRecord]:
        place = self.checkpoint(user, parent) or self.tombstone(user, parent)
        found = super().children(user, parent)
        return [row for row in found if place and row.timeline == place.timeline][:1]


class ForgetsTheChildrenOfTheDropped(MemoryStore):
    def children(self, user: str | None, parent: Id) -> list[CheckpointRecord]:
        return super().children(user, parent) if self.checkpoint(user, parent) else []


class TakesSuccessorsForBranches(MemoryStore):
    def branches(
        self, user: str | None, timeline: str, first: int, last: int
    ) -> list[CheckpointRecord]:
        line = self._tenant(user).lines.get(timeline, ())
        some = [each for each in line if first <= each.seq <= last]
        return [child for each in some for child in self.children(user, each.id)]


class StaysOnTheTimeline(MemoryStore):
    """Takes what was saved before on the same timeline for the ancestors."""

    def ancestors(self, user: str | None, id: Id, limit: int) -> list[CheckpointRecord]:
        found = super().ancestors(user, id, limit)
        return [row for row in found if row.timeline == found[0].timeline]


class PassesOverTheDropped(MemoryStore):
    def ancestors(self, user: str | None, id: Id, limit: int) -> list[CheckpointRecord]:
        found = super().ancestors(user, id, limit)
        stone = self.tombstone(user, found[-1].parent or b"") if found else None
        above = None if stone is None else stone.parent
        return found + ([] if above is None else super().ancestors(user, above, limit))


class PagesByOffset(MemoryStore):
    """Remembers how far a caller has read, instead of looking for the name."""

    def __init__(self) -> None:
        super().__init__()
        self._offsets: dict[str | None, int] = {}

    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        offset = self._offsets.get(after, 0)
        page = super().timelines(user, None, 10_000, deleted=deleted)[offset : offset + limit]
        self._offsets.update((row.name, offset + n) for n, row in enumerate(page, 1))
        return page


class PagesIncludeTheirCursor(MemoryStore):
    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        if query.before_seq is None:
            return super().checkpoints(user, query)
        return super().checkpoints(user, but(query, before_seq=query.before_seq + 1))


class PagesAreAsLongAsTheyLike(MemoryStore):
    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        return super().saved(user, after, limit + 1)

    def tombstones(
        self, user: str | None, timeline: str, before_seq: int | None, limit: int
    ) -> list[Tombstone]:
        return super().tombstones(user, timeline, before_seq, limit + 1)

    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        return super().log(user, after, limit + 1)

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        return super().tasks(user, but(query, limit=query.limit + 1))

    def entries(
        self, user: str | None, task: str | None, after: int = 0, limit: int = 1_000
    ) -> list[EntryRecord]:
        return super().entries(user, task, after, limit + 1)


class FiltersAfterTheLimit(MemoryStore):
    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        rows = super().checkpoints(user, but(query, kind=None))
        return [row for row in rows if query.kind in (None, row.kind)]


class SinceExcludesItsMoment(MemoryStore):
    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        since = None if query.since is None else query.since + 1
        return super().checkpoints(user, but(query, since=since))


class SortsNamesWithoutCase(MemoryStore):
    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        rows = super().timelines(user, after, limit, deleted=deleted)
        return sorted(rows, key=lambda row: row.name.lower())


class ForgetsOddObjects(MemoryStore):
    def commit(self, batch: Batch) -> int:
        kept = {address: data for address, data in batch.objects.items() if address[0] % 7}
        return super().commit(but(batch, objects=kept))


# Labels and notes


class FindsAnyOfTheLabels(MemoryStore):
    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        every = super().checkpoints(user, but(query, labels=(), limit=10_000))
        labels = self.labels(user, [row.id for row in every])
        found = [row for row in every if set(query.labels) & set(labels.get(row.id, ()))]
        return (found if query.labels else every)[: query.limit]


class FiltersLabelsAfterTheLimit(MemoryStore):
    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        rows = super().checkpoints(user, but(query, labels=()))
        return [row for row in rows if self._tenant(user).has_all(row.id, query.labels)]


class FindsWhatWasHidden(MemoryStore):
    def labelled(
        self, user: str | None, labels: Labels, before: int | None, limit: int
    ) -> list[CheckpointRecord]:
        tenant = self._tenant(user)
        found = [row for row in tenant.checkpoints.values() if tenant.has_all(row.id, labels)]
        return sorted(found, reverse=True)[:limit]


class KeepsTheLabelsOfBefore(MemoryStore):
    """As an index would that is only ever added to."""

    def commit(self, batch: Batch) -> int:
        before = self._tenant(batch.user).labels
        kept = {id: (*before.get(id, ()), *labels) for id, labels in batch.labels.items()}
        return super().commit(but(batch, labels=kept))


class LeavesLabelsToTheNextCommit(MemoryStore):
    """Labels are not part of the batch: one that is refused leaves them behind."""

    def commit(self, batch: Batch) -> int:
        self._tenant(batch.user).labels.update(batch.labels)
        return super().commit(batch)


class KeepsNotesOfWhatIsDropped(MemoryStore):
    def commit(self, batch: Batch) -> int:
        tenant = self._tenant(batch.user)
        notes = {id: dict(each) for id, each in tenant.notes.items()}
        number = super().commit(batch)
        tenant.notes.update(notes)
        return number


class ListsNotesByKey(MemoryStore):
    def notes(self, user: str | None, ids: Collection[Id]) -> dict[Id, list[Note]]:
        return {id: sorted(notes) for id, notes in super().notes(user, ids).items()}


class KeepsNotesWithoutData(MemoryStore):
    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        super().put_notes(user, id, [note for note in notes if note.data], replace=replace)


class ReplacesNotesAlways(MemoryStore):
    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        super().put_notes(user, id, notes)


class TakesNotesOfNothing(MemoryStore):
    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        self._tenant(user).put_notes(id, notes, replace=replace)


class TakesTheBeginningForAPattern(MemoryStore):
    """As a LIKE does, in which case does not count."""

    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        rows = super().timelines(user, after, 10_000, deleted=deleted)
        return [row for row in rows if row.name.lower().startswith(prefix.lower())][:limit]


# Operating


class ScansTheObjectsOfAllUsers(MemoryStore):
    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        for each in list(self._tenants):
            yield from super().scan(each)


class ScansByOffset(MemoryStore):
    """What a commit has moved to the front comes under an offset that was passed."""

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        at = 0
        while some := list(self._tenant(user).objects)[at : at + 500]:
            yield self.read(user, some)
            at += 500

    def commit(self, batch: Batch) -> int:
        number = super().commit(batch)
        objects = self._tenant(batch.user).objects
        items = list(objects.items())
        objects.clear()
        objects.update(reversed(items))
        return number


class LooksForTheFirstOfManyHashes(MemoryStore):
    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        return super().missing(user, list(hashes)[:10_000])


class CountsWhatIsHidden(MemoryStore):
    def count(self, user: str | None, timeline: str) -> int:
        return len(self._tenant(user).lines.get(timeline, ()))


class ShowsEverythingAgain(MemoryStore):
    """Shows all that is hidden, not only what the named commit hid."""

    def commit(self, batch: Batch) -> int:
        if batch.changes.show:
            hidden = {record.hidden for record in self.saved(batch.user, 0, 999)} - {0}
            batch = but(batch, changes=batch.changes._replace(show=hidden))
        return super().commit(batch)


class LeavesNoTombstones(MemoryStore):
    def commit(self, batch: Batch) -> int:
        number = super().commit(batch)
        for id in batch.changes.drop:
            self._tenant(batch.user).tombstones.pop(id, None)
        return number


class DropsHeads(MemoryStore):
    def commit(self, batch: Batch) -> int:
        number = super().commit(but(batch, changes=batch.changes._replace(drop=())))
        for id in batch.changes.drop:
            if record := self.checkpoint(batch.user, id):
                self._tenant(batch.user).drop(record)
        return number


class KeepsNoCheckpoint(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(but(batch, changes=batch.changes._replace(keeps=())))


class DoesNotLookForTheLatest(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(but(batch, changes=batch.changes._replace(latest=None)))


class ReplacesThePlaceToo(MemoryStore):
    def commit(self, batch: Batch) -> int:
        number = super().commit(batch)
        for record in batch.changes.replace:
            if record.id in self._tenant(batch.user).checkpoints:
                self._tenant(batch.user).checkpoints[record.id] = record
        return number


class MovesOneAfterTheOther(MemoryStore):
    def commit(self, batch: Batch) -> int:
        for at, move in enumerate(batch.changes.moves):
            entry = LogRecord(0, _other(batch)[:-1] + bytes([at]), None, "", 0, b"")
            super().commit(Batch(batch.user, entry, move))
        return super().commit(but(batch, changes=batch.changes._replace(moves=())))


class PurgesForAllUsers(MemoryStore):
    def last_purge(self, user: str | None) -> int:
        return max([0, *(super(type(self), self).last_purge(name) for name in self._tenants)])


class TakesADropForAPurge(MemoryStore):
    def commit(self, batch: Batch) -> int:
        changes = batch.changes
        purges = bool(changes.drop or changes.hide)
        return super().commit(but(batch, changes=changes._replace(purges=purges)))


class SavedLeavesOutWhatIsHidden(MemoryStore):
    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        return [row for row in super().saved(user, after, limit) if not row.is_hidden]


class ForgetsTheLogOfAllUsers(MemoryStore):
    def commit(self, batch: Batch) -> int:
        number = super().commit(batch)
        for tenant in self._tenants.values():
            tenant.change(Changes(forget_log=batch.changes.forget_log), 0)
        return number


# Collecting


class CollectsNothing(MemoryStore):
    def collect(self, refs: Refs, *, exact: bool = False) -> Collected:
        return Collected(0, 0, 0)


class CollectsWhatIsHidden(MemoryStore):
    def collect(self, refs: Refs, *, exact: bool = False) -> Collected:
        for tenant in self._tenants.values():
            for record in [r for r in tenant.checkpoints.values() if r.is_hidden]:
                tenant.drop(record)
        return super().collect(refs)


class CollectsAllButRoots(MemoryStore):
    def collect(self, refs: Refs, *, exact: bool = False) -> Collected:
        return super().collect(lambda data: ())


class CollectsWhatIsPinned(MemoryStore):
    def collect(self, refs: Refs, *, exact: bool = False) -> Collected:
        for tenant in self._tenants.values():
            tenant.pins.clear()
        return super().collect(refs)


class NeverUnpins(MemoryStore):
    def unpin(
        self,
        user: str | None,
        pin: bytes,
        *,
        given_up: Callable[[bytes], Collection[Hash]] | None = None,
    ) -> None:
        pass


class PinsForAllUsers(MemoryStore):
    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        super().put(user, objects, pin=pin, seconds=seconds)
        for other in list(self._tenants):
            super().put(other, {}, pin=pin, seconds=seconds)


class CollectsBehindDamage(MemoryStore):
    def collect(self, refs: Refs, *, exact: bool = False) -> Collected:
        for tenant in self._tenants.values():
            led = {ref for data in tenant.objects.values() for ref in refs(data)}
            for address in led - tenant.objects.keys():
                refs = _without(refs, address)
        return super().collect(refs)


class RemembersWhatWasCollected(MemoryStore):
    """Answers from what it once knew, as a process might beside a collector."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[Hash] = set()

    def commit(self, batch: Batch) -> int:
        number = super().commit(but(batch, requires=set(batch.requires) - self._known))
        self._known |= batch.objects.keys()
        return number


class StoresOnceForEver(RemembersWhatWasCollected):
    def commit(self, batch: Batch) -> int:
        new = {
            address: data for address, data in batch.objects.items() if address not in self._known
        }
        self._known |= batch.objects.keys()
        return MemoryStore.commit(self, but(batch, objects=new))


# Tasks


class KnowsNoFences(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(but(batch, work=batch.work._replace(fences=())))


class FollowsAnyEntry(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(but(batch, work=batch.work._replace(latest=None)))


class MovesATaskAtAnyEpoch(MemoryStore):
    def commit(self, batch: Batch) -> int:
        moves = [
            move._replace(expect=standing.epoch)
            if (standing := self.task(batch.user, move.become.name)) and move.expect is not None
            else move
            for move in batch.work.moves
        ]
        return super().commit(but(batch, work=batch.work._replace(moves=moves)))


class ReclaimsRenewedLeases(MemoryStore):
    def commit(self, batch: Batch) -> int:
        alive = {owner.id: owner for owner in self.owners(batch.user)}
        reclaim = [alive.get(owner.id, owner) for owner in batch.work.reclaim]
        return super().commit(but(batch, work=batch.work._replace(reclaim=reclaim)))


class LetsAnOwnerWithoutALeaseClaim(MemoryStore):
    def commit(self, batch: Batch) -> int:
        return super().commit(but(batch, work=batch.work._replace(alive=())))


class RevivesReclaimedLeases(MemoryStore):
    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        return super().hold(user, owner, is_new=True)


class TakesTasksInAnyOrder(MemoryStore):
    def due(self, user: str | None, now: int, limit: int) -> list[TaskRecord]:
        return sorted(super().due(user, now, 1_000))[:limit]


class TakesTasksBeforeTheirTime(MemoryStore):
    def due(self, user: str | None, now: int, limit: int) -> list[TaskRecord]:
        return super().due(user, now + 1_000_000, limit)


class LooksForRetriesAmongTheFirst(MemoryStore):
    def retries(
        self, user: str | None, since: int, until: int, after: int, limit: int
    ) -> list[TaskRecord]:
        first = self.due(user, until, 10)
        found = [task for task in first if task.attempts and task.place > after]
        return [task for task in found if (task.due or 0) > since][:limit]


class PagesFromWhereTheNameIsNow(MemoryStore):
    """Its cursor is a name, behind the number that it gives out for it."""

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        if not query.after:
            self._named = {task.place: task.name for task in super().tasks(user, TaskQuery(99))}
            return super().tasks(user, query)
        found = self.task(user, self._named.get(query.after, ""))
        return [] if found is None else super().tasks(user, query._replace(after=found.place))


class ListsTheNewestOfTheFirst(MemoryStore):
    """Turns a page around, and not the order of all tasks."""

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        rows = super().tasks(user, but(query, newest_first=False))
        return rows[::-1] if query.newest_first else rows


class WaitsForNoTask(MemoryStore):
    def commit(self, batch: Batch) -> int:
        moves = [move._replace(become=move.become._replace(after=())) for move in batch.work.moves]
        return super().commit(but(batch, work=batch.work._replace(moves=moves)))


class ForgetsTheTaskButNotItsPast(MemoryStore):
    def commit(self, batch: Batch) -> int:
        entries = self._tenant(batch.user).ledger._entries
        kept = {name: entries[name] for name in batch.work.forget if name in entries}
        number = super().commit(batch)
        entries.update(kept)
        return number


class ShowsTasksToAllUsers(MemoryStore):
    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        return [
            task for name in self._tenants for task in super(type(self), self).tasks(name, query)
        ]


class MixesStepsIntoTheHistory(MemoryStore):
    def entries(
        self, user: str | None, task: str | None, after: int = 0, limit: int = 1_000
    ) -> list[EntryRecord]:
        found = super().entries(user, task, after, limit)
        steps = [] if task is None else self.journal(user, task, 1)
        return sorted([*found, *(step for step in steps if step.number > after)])[:limit]


# Workspaces


class KnowsNoEpochOfAWorkspace(MemoryStore):
    def commit(self, batch: Batch) -> int:
        standing = {
            each.become.id: self.workspace(batch.user, each.become.id) for each in batch.workspaces
        }
        moves = [
            each._replace(expect=None if found is None else found.epoch)
            for each in batch.workspaces
            for found in [standing[each.become.id]]
        ]
        return super().commit(but(batch, workspaces=moves))


class LetsTwoWorkspacesShareAPath(MemoryStore):
    def commit(self, batch: Batch) -> int:
        others = [each for each in batch.workspaces if each.expect is None]
        number = super().commit(
            but(batch, workspaces=[each for each in batch.workspaces if each not in others])
        )
        for each in others:
            self._tenants[batch.user].workspaces[each.become.id] = each.become
        return number


class FindsAPathOfAnyHost(MemoryStore):
    def workspace_at(self, user: str | None, host: str, path: bytes) -> WorkspaceRecord | None:
        found = self.workspaces(user, ("", b"", b""), 99)
        return next((each for each in found if each.path == path), None)


class TakesAWorkspaceOverByARefusedBatch(MemoryStore):
    def commit(self, batch: Batch) -> int:
        for each in batch.workspaces:
            self._tenant(batch.user).workspaces[each.become.id] = each.become
        return super().commit(batch)


# Closing


class CanBeUsedAfterClosing(MemoryStore):
    def close(self) -> None:
        pass


def _without(refs: Refs, address: Hash) -> Refs:
    return lambda data: [ref for ref in refs(data) if ref != address]


def _other(batch: Batch) -> Id:
    return bytes(byte ^ 0xFF for byte in batch.event.id)


def _without_checks(
    store: MemoryStore, batch: Batch, event: Any, requires: Collection[Hash] = ()
) -> Batch:
    """The same batch, expecting the timeline where it is now."""
    move = batch.move
    if move is not None:
        move = Move(store.timeline(batch.user, move.become.name), move.become)
    return but(batch, event=event, move=move, requires=requires)


def _tested(store: type[MemoryStore]) -> type[StoreContract]:
    def open_store(self: StoreContract, folder: Path) -> Store:
        return store()

    body = {"open_store": open_store, "persists": False}
    return type(f"Test{store.__name__}", (StoreContract,), body)


for _store in [
    *MemoryStore.__subclasses__(),
    *ExpectsTheHeadOnly.__subclasses__(),
    *RemembersWhatWasCollected.__subclasses__(),
]:
    globals()[f"Test{_store.__name__}"] = _tested(_store)


class TestForgetsWhenClosed(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return MemoryStore()
