"""What one transaction does for the items that share it.

Each of several items lies in a savepoint, so that its `Conflict` is its own. What a transaction
learns is cached only after its commit: until then all of it may be taken back.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import apsw

from hardsave.errors import Conflict, Corrupt, HardsaveError
from hardsave.objects.hashing import Hash
from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    Id,
    LogRecord,
    Note,
)
from hardsave.stores import packs
from hardsave.stores.base import (
    NO_CHANGES,
    Batch,
    Move,
    ObjectsGone,
    conflict_message,
)
from hardsave.stores.ledger import NO_WORK
from hardsave.stores.local.database import translated
from hardsave.stores.sqlite import attached, counts, ledger, schema, workspaces
from hardsave.stores.sqlite.read.object_index import ObjectIndex, bounds
from hardsave.stores.sqlite.write import needs, operations, pins, timeline_rows
from hardsave.stores.sqlite.write.pins import Pin
from hardsave.stores.sqlite.write.writer_cache import Standing, WriterCache
from hardsave.tuples import NamedTuple

MAX_TIMELINES = 10_000  # whose rows are kept in mind


# Errors that end the whole transaction, not only the item that met them.
_FATAL = (
    apsw.FullError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.BusyError,
)
# What a value can raise that SQLite does not take: one caller's, and no other's business.
_OF_ONE = (operations.Recognised, HardsaveError, apsw.Error, ValueError, TypeError, OverflowError)
_DONE = -1  # in the place of a timeline's row: the batch was committed before

_ADD_LOG = """
    INSERT INTO log (number, user, id, timeline, kind, created_at, data)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
# Above `indexed` too: the newest packs may have been removed, and their ids are not used again.
_LAST_PACK = """
    SELECT max(?1, (SELECT indexed FROM users WHERE id = ?1 >> 40),
               coalesce((SELECT max(id) FROM packs WHERE id > ?1 AND id < ?2), 0))
"""
_ADD_PACK = "INSERT INTO packs (id, size, directory, body) VALUES (?, ?, ?, ?)"


class Write(NamedTuple):
    """A batch, with its packs made before other writers have to wait."""

    batch: Batch
    packs: list[packs.Pack]

    @property
    def user(self) -> str | None:
        return self.batch.user


class Put(NamedTuple):
    """Objects ahead of their batch."""

    user: str | None
    objects: Mapping[Hash, bytes]
    packs: list[packs.Pack]
    pin: Pin


class PutNotes(NamedTuple):
    """Notes for a checkpoint that is there."""

    user: str | None
    id: Id
    notes: Sequence[Note]
    replace: bool


Change = Callable[[apsw.Connection], None]  # of the store's own
Item = Write | Put | PutNotes | Change


class Transaction:
    """One transaction's work. The writer begins and commits the transaction."""

    def __init__(
        self,
        items: Sequence[Any],
        cursor: apsw.Cursor,
        index: ObjectIndex,
        known: WriterCache,
        *,
        compress: Callable[[], bool] = packs.always,
    ) -> None:
        self.items = items
        self.answers: list[int | Exception] = []
        self._cursor = cursor
        self._connection = cursor.connection
        self._index = index
        self._known = known
        self._compress = compress
        self._users: dict[str | None, int] = {}  # met here
        self._timelines: dict[tuple[int, str], int] = {}  # met here
        self._has_indexes = known.has_indexes
        self._made: list[tuple[int, int, bytes]] = []  # (user, pack, directory)
        self._numbers: list[int] = []  # given out
        self._rearranges = False  # may have changed more than was added
        self._goes_on = False  # the batch's checkpoint comes right after its parent

    def run(self) -> None:
        """Do what the items ask for, and answer each: its number, or its own error.

        A change of the store's own comes after the batches: these rely on what was stored when
        the transaction began, and a change may remove objects.
        """
        self._refresh()
        if len(self.items) == 1:
            try:
                self.answers = [self._apply(self.items[0])]
            except operations.Recognised as known:
                self.answers = [self._recognised_late(known)]
            return
        self.answers = [0] * len(self.items)
        for at in sorted(range(len(self.items)), key=lambda at: callable(self.items[at])):
            self.answers[at] = self._apply_alone(self.items[at])

    def settle(self) -> int | None:
        """Keep in mind what the commit has made true; the highest number given out.

        To be called while no other process can write.
        """
        known = self._known
        is_known = True
        for made in self._made:
            is_known &= self._index.learn(*made)
        if is_known and not self._rearranges:
            known.standing.version = self._connection.data_version()
        if self._users:
            known.users |= self._users
        known.has_indexes = self._has_indexes
        if self._timelines:
            known.timelines |= self._timelines
            if len(known.timelines) > MAX_TIMELINES:
                known.timelines.clear()
        numbers = self._numbers
        return max(numbers) if numbers else None

    def _refresh(self) -> None:
        """Know what is stored before anything of this transaction is: that may be taken back."""
        standing = self._known.standing
        if self._connection.data_version() != standing.version:
            standing = self._known.standing = Standing()
        standing.version = -1
        self._standing = standing
        for item in self.items:
            if isinstance(item, Put) or (
                isinstance(item, Write) and needs.relies_on_packs(item.batch)
            ):
                self._learn_packs(item.user)

    def _learn_packs(self, name: str | None) -> None:
        user = self._known.users.get(name)
        if user is None:
            user = self._one("SELECT id FROM users WHERE name = ?", (name,))
        if user is None or (user in self._standing.users and self._index.knows(user)):
            return
        self._index.refresh(self._connection, user)
        self._standing.users.add(user)

    def _recognised_late(self, known: operations.Recognised) -> int:
        """The only item, which needs no savepoint: what it has written goes with the transaction,
        and an empty one takes its place."""
        self._connection.execute("ROLLBACK; BEGIN IMMEDIATE")
        self._take_back({}, {}, 0, 0, self._known.has_indexes)
        return known.number

    def _take_back(
        self,
        users: dict[str | None, int],
        timelines: dict[tuple[int, str], int],
        made: int,
        given: int,
        has_indexes: bool,
    ) -> None:
        """Forget what was learned of rows that are not there."""
        self._standing.forget()
        self._users, self._timelines, self._has_indexes = users, timelines, has_indexes
        del self._made[made:], self._numbers[given:]

    def _apply_alone(self, item: Item) -> int | Exception:
        """One of several: what goes wrong with it does not touch the others."""
        connection = self._connection
        connection.execute("SAVEPOINT item")
        users, timelines = self._users.copy(), self._timelines.copy()
        made, given, has_indexes = len(self._made), len(self._numbers), self._has_indexes
        try:
            number = self._apply(item)
        except _OF_ONE as error:
            if isinstance(error, _FATAL) or not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO item; RELEASE item")
            self._take_back(users, timelines, made, given, has_indexes)
            if isinstance(error, operations.Recognised):
                return error.number
            if isinstance(error, apsw.Error):
                return translated(error, connection.filename)
            return error
        connection.execute("RELEASE item")
        return number

    def _apply(self, item: Item) -> int:
        if isinstance(item, Write):
            return self._write(item.batch, item.packs)
        if isinstance(item, Put):
            return self._put(item)
        if isinstance(item, PutNotes):
            user = self._user(item.user)
            self._need_indexes()
            attached.put_notes(self._connection, user, item.id, item.notes, replace=item.replace)
            return 0
        self._rearranges = True
        item(self._connection)
        return 0

    def _write(self, batch: Batch, made: list[packs.Pack]) -> int:
        user = self._known.users.get(batch.user)
        if user is None:
            user = self._user(batch.user)
        if not self._has_indexes and not needs.only_saves(batch):
            self._need_indexes()
        if ledger.is_step(batch):
            return self._add_step(user, batch)
        if not needs.moves_on(batch) and (done := self._number_of(user, batch)):
            return done
        self._goes_on = False
        timeline = self._move(user, batch, batch.move) if batch.move is not None else None
        if timeline == _DONE:
            return self._number_of(user, batch)
        if batch.workspaces:
            self._rearranges |= workspaces.apply(self._connection, user, batch.workspaces)
        for pack in self._to_add(user, batch.objects, made, batch.requires):
            self._add_pack(user, pack)
        number: int | None = None  # the next one
        if batch.work is not NO_WORK:
            number = ledger.apply(self._connection, user, batch.work)
        if batch.changes is NO_CHANGES:
            number = self._add_event(user, timeline, batch.event, number)
        else:
            number = self._add_operation(user, timeline, batch, number)
        if batch.labels or batch.notes:
            attached.apply(self._connection, user, batch, number)
        return number

    def _add_operation(
        self, user: int, timeline: int | None, batch: Batch, number: int | None
    ) -> int:
        shown: operations.Shown = Counter()
        number = self._operate(user, timeline, batch, number, shown)
        self._add_event(user, timeline, batch.event, number)
        counts.change(self._connection, shown)
        operations.note(self._connection, "timelines", shown)
        return number

    def _need_indexes(self) -> None:
        if not self._has_indexes:
            schema.add_indexes(self._connection)
        self._has_indexes = True

    def _add_step(self, user: int, batch: Batch) -> int:
        """The shortest way: one look at the task, one new row. Steps are what there is most of."""
        number = self._next_number()
        added = ledger.add_step(self._cursor, user, batch, number)
        if added != number:  # it was there already
            self._standing.number = number - 1
        else:
            self._numbers.append(number)
        return added

    def _operate(
        self,
        user: int,
        timeline: int | None,
        batch: Batch,
        number: int | None,
        shown: operations.Shown,
    ) -> int:
        """What an operation changes; the number for its event, above all of it."""
        self._rearranges = True
        connection = self._connection
        operation = batch.changes
        operations.check(connection, user, operation)
        moved = [timeline] if timeline is not None else []
        moved += [self._move(user, batch, move) for move in operation.moves]
        operations.note(connection, "timelines", moved)
        if number is None:
            number = self._next_number()
        number = operations.add_checkpoints(connection, user, number, operation.checkpoints, shown)
        number = operations.add_tombstones(connection, user, number, operation.tombstones)
        operations.apply(connection, user, operation, number, shown)
        workspaces.forget(connection, user, operation.forget_workspaces)
        return number

    def _move(self, user: int, batch: Batch, move: Move) -> int:
        """Move a timeline; its row id, or `_DONE` if the batch was committed before.

        A batch that was committed before has moved its timeline away from what it expects,
        so only one whose expectation fails has to be looked up.
        """
        name, expect = move.become.name, move.expect
        outcome = timeline_rows.add(self._cursor, user, batch, move) if expect is None else None
        row = self._timeline(user, name)
        if expect is not None:
            outcome = timeline_rows.move(self._cursor, row, batch, move, expect)
        self._goes_on = outcome == "goes on"
        if outcome != "elsewhere":
            return row
        if self._number_of(user, batch):
            return _DONE
        standing = timeline_rows.standing(self._connection, row)
        raise Conflict(conflict_message(name, standing, expect))

    def _number_of(self, user: int, batch: Batch) -> int:
        if isinstance(batch.event, EntryRecord):
            return ledger.number_of(self._connection, user, batch.event)
        if isinstance(batch.event, CheckpointRecord):
            return operations.number_of(self._connection, user, batch.event.id) or 0
        sql = "SELECT number FROM log WHERE user = ? AND id = ?"
        return int(self._one(sql, (user, batch.event.id)) or 0)

    def _timeline(self, user: int, name: str) -> int:
        """The row of a timeline; 0 if there is none."""
        known = self._known.timelines.get((user, name))
        if known is not None:
            return known
        found = int(self._one(timeline_rows.ID, (user, name)) or 0)
        if found:
            self._timelines[user, name] = found
        return found

    def _put(self, put: Put) -> int:
        user = self._user(put.user)
        pins.take(self._connection, user, put.pin)
        for made in self._to_add(user, put.objects, put.packs):
            self._add_pack(user, made)
        return 0

    def _to_add(
        self,
        user: int,
        objects: Mapping[Hash, bytes],
        made: list[packs.Pack],
        requires: Collection[Hash] = (),
    ) -> list[packs.Pack]:
        """The packs that were made of objects, or others without what is stored already."""
        fresh = list(objects)
        asked = [*requires, *fresh]
        unknown = self._index.unknown(self._connection, user, asked, is_writing=True)
        if unknown == fresh and not self._made:
            return made  # nearly always: all of it is new, and all that it needs is there
        gone = set(unknown).intersection(requires)
        if gone:
            raise ObjectsGone(f"object {min(gone).hex()} is no longer stored")
        made_here = [directory for owner, _, directory in self._made if owner == user]
        in_group = {address for each in made_here for address in packs.hashes(each)}
        new = set(unknown) - in_group
        for address in objects.keys() - unknown:  # the prefix is known: is it the same hash?
            if not self._index.is_stored(self._connection, user, address):
                new.add(address)
        if len(new) == len(objects):
            return made
        left = [item for item in objects.items() if item[0] in new]
        return list(packs.pack(left, compress=self._compress))

    def _add_pack(self, user: int, made: packs.Pack) -> None:
        standing = self._standing.packs
        last = standing.get(user) or int(self._one(_LAST_PACK, bounds(user)))
        standing[user] = pack = last + 1
        self._cursor.execute(_ADD_PACK, (pack, *made))
        self._made.append((user, pack, made.directory))

    def _next_number(self) -> int:
        standing = self._standing
        if standing.number is None:
            standing.number = schema.last_number(self._connection)
        standing.number += 1
        return standing.number

    def _add_event(
        self,
        user: int,
        timeline: int | None,
        event: CheckpointRecord | LogRecord | EntryRecord,
        number: int | None,
    ) -> int:
        """Add the batch's event under `number`, or the next there is."""
        if number is None:
            number = self._next_number()
        self._standing.number = number
        if isinstance(event, EntryRecord):
            ledger.add_entry(self._connection, user, event, number)
        elif isinstance(event, LogRecord):
            self._connection.execute(_ADD_LOG, (number, user, *event[1:]))
        elif timeline is None:
            raise Corrupt(f"timeline {event.timeline!r} of a checkpoint does not exist")
        else:
            values = (number, user, event.id, timeline, *event[3:-1])
            operations.add_checkpoint(self._cursor, values, goes_on=self._goes_on)
        self._numbers.append(number)
        return number

    def _user(self, name: str | None) -> int:
        number = self._known.user(self._connection, name)
        self._users[name] = number
        return number

    def _one(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self._connection.execute(sql, values).get
