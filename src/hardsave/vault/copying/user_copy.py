"""One user's part of a store, copied.

Objects first, under a pin, then the commits in order, a chunk in one commit of the copy, whose
event keeps its id. Timelines are there from their first checkpoint on, but empty and deleted: they
move to where they stand with the last chunk, which brings tombstones and workspaces, too. So a copy
that was interrupted shows no half a history, and goes on behind the last commit that it has.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from hardsave.errors import Conflict, Corrupt
from hardsave.objects.hashing import digest
from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    Id,
    TaskRecord,
    TimelineRecord,
    Tombstone,
    named_id,
)
from hardsave.progress import meter
from hardsave.stores.base import Batch, Changes, Move
from hardsave.stores.ledger import NO_WORK, TaskMove, TaskQuery, Work, every
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.vault.copying.chunks import Chunk, Event, chunks, with_hidden
from hardsave.vault.copying.events import (
    PAGE,
    STEPS,
    Row,
    Side,
    all_timelines,
    all_tombstones,
    all_workspaces,
    events,
    is_same,
    read_steps,
)
from hardsave.vault.copying.numbers import Numbers, renumbered
from hardsave.vault.scratch import Scratch

OTHER = (
    "the store to copy to holds something else already; name an empty one, or one that a copy of "
    "this store into it was interrupted in"
)
PIN_SECONDS = 3600.0
_KEEP_EVERY = 200  # chunks between two of which the pin is renewed


class UserCopy:
    """The copy of what one user has. `run` may be called again in another process."""

    def __init__(self, source: Side, copy: Side, steps: Scratch) -> None:
        self.source = source
        self.copy = copy
        self.numbers = Numbers()
        self.hidden: dict[int, int] = {}  # what stands in the copy for a commit that hid something
        self.stones: list[Tombstone] = []
        self.commits = 0  # of the source
        self.last = 0  # the number of the last of them
        self._steps = steps
        self._hidden_ids: dict[int, list[Id]] = {}
        self._shown: set[int] = set()
        self._lines: dict[str, TimelineRecord] = {}
        self._begun: dict[str, TimelineRecord] = {}  # timelines as the copy has them
        self._tasks: Iterator[TaskRecord] = iter(())
        self._added: set[str] = set()  # tasks that the copy has

    def run(self) -> None:
        """Copy what is not there yet."""
        upto = self.source.store.latest_number(self.source.user)
        pin = named_id("copy", repr(self.source.user))
        self._copy_objects(pin)
        self._look()
        self._copy_commits(upto, pin)
        self.copy.store.unpin(self.copy.user, pin)
        if self.source.store.latest_number(self.source.user) != upto:
            raise Conflict("a process has saved in the store that is copied; stop it, and repeat")

    def _copy_objects(self, pin: bytes) -> None:
        store, user = self.copy
        counting = meter("copying", "objects")
        store.put(user, {}, pin=pin, seconds=PIN_SECONDS)
        for part in self.source.store.scan(self.source.user):
            missing = store.missing(user, list(part))
            for address in missing:
                if digest(part[address]) != address:
                    raise Corrupt(f"object {address.hex()} is damaged; run verify before a copy")
            new = {address: data for address, data in part.items() if address in missing}
            store.put(user, new, pin=pin, seconds=PIN_SECONDS)
            counting.add(len(part), sum(map(len, part.values())))

    def _look(self) -> None:
        """What the source has that can change without a commit of its own."""
        store, user = self.source
        read_steps(self.source, self._steps)
        for line in all_timelines(self.source):
            self._lines[line.name] = line
            self.stones += all_tombstones(self.source, line.name)
        after = 0
        while rows := store.saved(user, after, PAGE):
            for row in rows:
                if row.hidden:
                    self._hidden_ids.setdefault(abs(row.hidden), []).append(row.id)
                if row.hidden < 0:
                    self._shown.add(-row.hidden)
            after = rows[-1].number
        self._begun = {line.name: line for line in all_timelines(self.copy)}
        self._tasks = every(store, user, TaskQuery(PAGE))
        there = sum(self.copy.store.task_counts(self.copy.user).values())
        self._added = {task.name for task in islice(self._tasks, there)}

    def _copy_commits(self, upto: int, pin: bytes) -> None:
        counting = meter("copying", "commits")
        for done, chunk in enumerate(chunks(self._left(upto)), 1):
            self._commit(chunk)
            counting.add(len(chunk.events))
            if done % _KEEP_EVERY == 0:
                self.copy.store.put(self.copy.user, {}, pin=pin, seconds=PIN_SECONDS)

    def _left(self, upto: int) -> Iterator[Event]:
        """The commits that the copy does not have. `Conflict` if it has others."""
        with Scratch(STEPS) as scratch:
            read_steps(self.copy, scratch)
            end = self.copy.store.latest_number(self.copy.user)
            there = events(self.copy, scratch, end)
            rows = events(self.source, self._steps, upto)
            for event in with_hidden(rows, self._hidden_ids, self._shown):
                self._meet(event)
                has = next(there, None)
                if has is None:
                    yield event
                elif is_same(event.row, has):
                    self.numbers.give(has.number)
                else:
                    raise Conflict(OTHER)
            if next(there, None) is not None:
                raise Conflict(OTHER)

    def _meet(self, event: Event) -> None:
        self.commits += 1
        self.last = event.row.number
        self.numbers.meet(event.row.number)
        for number in event.hid:
            self.hidden[number] = event.row.number

    def _commit(self, chunk: Chunk) -> None:
        """One commit. All of its rows have the numbers right before that of its event."""
        batch = self._batch(chunk)
        number = self.copy.store.commit(batch)
        before = len(chunk.events) - 1
        for at in range(before):
            self.numbers.give(number - len(batch.changes.tombstones) - before + at)
        self.numbers.give(number)
        moves = [*batch.changes.moves, *([] if batch.move is None else [batch.move])]
        self._begun.update((move.become.name, move.become) for move in moves)

    def _batch(self, chunk: Chunk) -> Batch:
        rows = [each.row for each in chunk.events]
        event = rows.pop()
        checkpoints = [row for row in (*rows, event) if isinstance(row, CheckpointRecord)]
        ids = [row.id for row in checkpoints]
        moves = self._moves(checkpoints, is_last=chunk.is_last)
        own = moves.pop(event.timeline) if isinstance(event, CheckpointRecord) else None
        stones = self.stones if chunk.is_last else []
        shown = [self.hidden[number] for number in self._shown if number in self.hidden]
        store, user = self.source
        return Batch(
            self.copy.user,
            renumbered(event, self.numbers, stones=len(stones)),
            own,
            requires=[root for row in checkpoints for root in row.roots],
            changes=Changes(
                moves=[move for move in moves.values() if move.expect != move.become],
                checkpoints=[row for row in rows if isinstance(row, CheckpointRecord)],
                tombstones=stones,
                hide=chunk.events[-1].hides,
                show=[self.numbers.of(number) for number in shown] if chunk.is_last else (),
            ),
            work=self._work(rows, event, is_last=chunk.is_last),
            labels=store.labels(user, ids),
            notes=store.notes(user, ids),
            workspaces=[
                WorkspaceMove(None, each)
                for each in (all_workspaces(self.source) if chunk.is_last else ())
            ],
        )

    def _moves(self, checkpoints: Sequence[CheckpointRecord], *, is_last: bool) -> dict[str, Move]:
        """Timelines by name: those of the checkpoints begin; with the last chunk all of them move
        to where they stand."""
        if is_last:
            return {name: Move(self._begun.get(name), line) for name, line in self._lines.items()}
        found: dict[str, Move] = {}
        for name in dict.fromkeys(row.timeline for row in checkpoints):
            before = self._begun.get(name)
            line = self._lines[name]
            empty = line._replace(head=None, last_seq=0, origin=None, is_deleted=True, title="")
            found[name] = Move(before, before or empty)
        return found

    def _work(self, rows: Sequence[Row], event: Row, *, is_last: bool) -> Work:
        entries = [row for row in rows if isinstance(row, EntryRecord)]
        named = {row.task for row in (*entries, event) if isinstance(row, EntryRecord) and row.task}
        moves: list[TaskMove] = []
        while is_last or not named <= self._added:
            task = next(self._tasks, None)
            if task is None:
                break
            moves.append(TaskMove(None, task))
            self._added.add(task.name)
        return Work(moves=moves, entries=entries) if moves or entries else NO_WORK
