"""The one path of every write: lock, transaction, commit, mark.

Batches that wait at the same time share a transaction; each lies in a savepoint, so that
its `Conflict` is its own. If the transaction as a whole fails, nobody in it knows whether
it was written: the leader gets the error, and the others repeat, which is harmless.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import apsw

from hardsave.errors import Conflict, Corrupt, HardsaveError, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    LogRecord,
    OwnerRecord,
    TimelineRecord,
)
from hardsave.stores.base import (
    NO_CHANGES,
    Batch,
    Move,
    ObjectsGone,
    conflict_message,
    position,
)
from hardsave.stores.ledger import NO_WORK
from hardsave.stores.sqlite import changes, ledger, packs, pins
from hardsave.stores.sqlite.connection import (
    BUSY_SECONDS,
    check_wal,
    translated,
    wal_bytes,
)
from hardsave.stores.sqlite.group import Group, Ticket
from hardsave.stores.sqlite.index import Index, bounds
from hardsave.stores.sqlite.lock import FileLock
from hardsave.stores.sqlite.mark import Mark
from hardsave.stores.sqlite.pins import Pin

MAX_TIMELINES = 10_000  # whose rows are kept in mind
REPEATS = 30  # of a batch whose round failed under another leader; its own error ends it at once

# Errors that end the whole transaction, whichever batch met them first.
_FATAL = (
    apsw.FullError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.BusyError,
)

_LAST_NUMBER = """
    SELECT max((SELECT coalesce(max(number), 0) FROM checkpoints),
               (SELECT coalesce(max(number), 0) FROM log),
               (SELECT coalesce(max(number), 0) FROM ledger))
"""
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
_ADD_TIMELINE = """
    INSERT INTO timelines (user, name, head, last_seq, created_at, origin, deleted)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_TIMELINE_ID = "SELECT id FROM timelines WHERE user = ? AND name = ?"
_MOVE_TIMELINE = """
    UPDATE timelines SET head = ?, last_seq = ?, created_at = ?, origin = ?, deleted = ?
    WHERE id = ? AND head IS ? AND last_seq = ?
"""

Result = TypeVar("Result")


class _Standing:
    """What the file holds, for as long as nobody else writes to it.

    SQLite counts the changes that a connection meets, its own included. While that count is
    what it was after our last commit, what we know need not be asked again.
    """

    def __init__(self) -> None:
        self.version = -1  # the count after our last commit; in the middle of a round none
        self.users: set[int] = set()  # whose packs the index knows
        self.forget()

    def forget(self) -> None:
        """Something was taken back: what was given out for it is free again."""
        self.number: int | None = None  # the last one given out
        self.packs: dict[int, int] = {}  # the newest of each user


class _WalGone(Unavailable):
    """The WAL is not where it belongs."""


class _WalShorter(Exception):
    """The WAL is shorter than it was: somebody has emptied it, or cut it."""


class _Write(NamedTuple):
    """A batch, with its packs made before anybody is kept waiting."""

    batch: Batch
    packs: list[packs.Pack]

    @property
    def user(self) -> str | None:
        return self.batch.user


class _Put(NamedTuple):
    """Objects ahead of their batch."""

    user: str | None
    objects: Mapping[Hash, bytes]
    packs: list[packs.Pack]
    pin: Pin


_Item = _Write | _Put | Callable[[apsw.Connection], None]


class Writer:
    """The writing half of a store, over a connection to a file that was checked before."""

    def __init__(
        self,
        path: str,
        connection: apsw.Connection,
        lock: FileLock,
        mark: Mark,
        index: Index,
        reopen: Callable[[], apsw.Connection],
        *,
        relaxed: bool,
    ) -> None:
        self.path = path
        self._relaxed = relaxed
        self._lock = lock
        self._mark = mark
        self._connection = connection
        self._reopen = reopen
        self._is_doubtful = False  # a connection that failed may have fallen back to reading only
        self._identity = _identity(path)
        self._wal: tuple[int, int] | None = None  # the identity of the WAL, once it is known
        self._wal_bytes = 0  # how long it was at least, when this process last looked
        self._group: Group[_Item, int] = Group(self._run)
        self._users: dict[str | None, int] = {None: 0}
        self._timelines: dict[tuple[int, str], int] = {}  # their rows, which stay for good
        self._met: dict[tuple[int, str], int] = {}  # those of a round, which may be taken back
        self._index = index
        self._standing = _Standing()
        self._made: list[tuple[int, int, bytes]] = []  # (user, pack, directory) of a round
        self._numbers: list[int] = []  # given out in a round

    def commit(self, batch: Batch) -> int:
        write = _Write(batch, list(packs.pack(batch.objects.items())))
        return self._submit(write)

    def put(self, user: str | None, objects: Mapping[Hash, bytes], pin: Pin) -> None:
        """Store objects that nothing leads to yet, and hold them."""
        self._submit(_Put(user, objects, list(packs.pack(objects.items())), pin))

    def apply(self, change: Callable[[apsw.Connection], None]) -> None:
        """Run a change of the store's own in a transaction, in turn with the commits.

        It comes after the batches of its round: these rely on what was stored when the round
        began, and a change may remove objects.
        """
        self._submit(change)

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool) -> bool:
        """Renew or take a lease; False if it was buried."""
        held: list[bool] = []

        def change(connection: apsw.Connection) -> None:
            held.append(ledger.hold(connection, self._user(user), owner, is_new=is_new))

        self._submit(change)
        return held[-1]

    def close(self) -> None:
        self._connection.close()

    def number_of_user(self, name: str | None) -> int:
        """The number of a user who has committed something."""
        return self._users[name]

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return _identity(self.path) == self._identity

    @property
    def connection(self) -> apsw.Connection:
        return self._connection

    def _submit(self, item: _Item) -> int:
        for _ in range(REPEATS):
            number = self._group.submit(item)
            if number is not None:
                return number
        raise Unavailable(f"writing to {self.path} failed {REPEATS} times under other callers")

    def _run(self, tickets: "Sequence[Ticket[Any, int]]") -> None:
        try:
            self._lock.acquire(BUSY_SECONDS)
            try:
                if self._is_doubtful:
                    self._connection.close()
                    self._connection = self._reopen()
                    self._standing = _Standing()  # a new connection counts anew
                    self._wal = None
                    check_wal(self._connection, self.path)
                    self._wal_bytes = 0
                    self._is_doubtful = False
                self._made.clear()
                self._numbers.clear()
                self._met.clear()
                answers = self._transact_whole(tickets)
                self._remember(tickets)
            finally:
                self._lock.release()
        except apsw.Error as error:
            self._is_doubtful = True
            raise translated(error, self.path) from error
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be written: {error}") from error
        for ticket, answer in zip(tickets, answers, strict=True):
            if isinstance(answer, HardsaveError):
                ticket.error = answer
            else:
                ticket.result = answer
                if not callable(ticket.item):
                    self._keep_in_mind(ticket.item.user)

    def _transact_whole(self, tickets: "Sequence[Ticket[Any, int]]") -> list[int | HardsaveError]:
        """One transaction, on a WAL that has all its frames."""
        try:
            answers = self._transact(tickets)
        except _WalShorter:
            check_wal(self._connection, self.path)
            self._wal_bytes = 0  # it was emptied as it should be
            self._made.clear()
            self._numbers.clear()
            self._met.clear()
            answers = self._transact(tickets)
        self._wal_bytes = wal_bytes(self.path)
        return answers

    def _transact(self, tickets: "Sequence[Ticket[Any, int]]") -> list[int | HardsaveError]:
        connection = self._connection
        if connection.in_transaction:  # Ctrl-C has struck in the middle of the last rollback
            connection.execute("ROLLBACK")
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._refresh(tickets)
            if len(tickets) == 1:
                answers: list[int | HardsaveError] = [self._apply(tickets[0].item)]
            else:
                answers = [0] * len(tickets)
                for at in sorted(range(len(tickets)), key=lambda at: callable(tickets[at].item)):
                    answers[at] = self._apply_alone(tickets[at].item)
            if not self.is_in_place():
                raise Unavailable(
                    f"{self.path} was removed or replaced while it was open; nothing was saved. "
                    "Put it back, or open the store again"
                )
            self._check_wal()
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, _WalGone):
                # Its last commits are only there, and it can be read for as long as it is open.
                connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
            raise
        return answers

    def _check_wal(self) -> None:
        """SQLite would go on writing to a WAL that nobody can ever open again."""
        found = _stat(self.path + "-wal")
        identity = found and (found.st_dev, found.st_ino)
        if found is None or identity != (self._wal or identity):
            raise _WalGone(
                f"{self.path}-wal was removed or replaced while it was open; nothing was saved. "
                "What was saved before has been moved into the store: close it everywhere, and "
                "open it again"
            )
        if found.st_size < self._wal_bytes:
            raise _WalShorter
        self._wal = identity

    def _refresh(self, tickets: "Sequence[Ticket[Any, int]]") -> None:
        """Know what is stored before anything of this round is: that may be taken back."""
        if self._connection.data_version() != self._standing.version:
            self._standing = _Standing()
        self._standing.version = -1
        for ticket in tickets:
            if not callable(ticket.item):
                self._learn_packs(ticket.item.user)

    def _learn_packs(self, name: str | None) -> None:
        user = self._users.get(name)
        if user is None:
            user = self._one("SELECT id FROM users WHERE name = ?", (name,))
        if user is not None and user not in self._standing.users:
            self._index.refresh(self._connection, user)
            self._standing.users.add(user)

    def _apply_alone(self, item: Any) -> int | HardsaveError:
        """One batch of several: what goes wrong with it does not touch the others."""
        connection = self._connection
        connection.execute("SAVEPOINT batch")
        made, given = len(self._made), len(self._numbers)
        try:
            number = self._apply(item)
        except (HardsaveError, apsw.Error) as error:
            if isinstance(error, _FATAL) or not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO batch; RELEASE batch")
            self._standing.forget()
            self._met.clear()
            del self._made[made:], self._numbers[given:]
            return error if isinstance(error, HardsaveError) else translated(error, self.path)
        connection.execute("RELEASE batch")
        return number

    def _apply(self, item: Any) -> int:
        if isinstance(item, _Put):
            return self._put(item)
        if not isinstance(item, _Write):
            item(self._connection)
            return 0
        batch = item.batch
        user = self._user(batch.user)
        if ledger.is_step(batch):
            return self._add_step(user, batch)
        if not _moves_on(batch) and (done := self._number_of(user, batch)):
            return done
        timeline = self._move(user, batch, batch.move) if batch.move is not None else None
        if timeline == _DONE:
            return self._number_of(user, batch)
        for made in self._to_add(user, batch.objects, item.packs, batch.requires):
            self._add_pack(user, made)
        number: int | None = None  # whichever is next
        if batch.changes is not NO_CHANGES:
            number = self._operate(user, timeline, batch)
        if batch.work is not NO_WORK:
            number = ledger.apply(self._connection, user, batch.work, number)
        return self._add_event(user, timeline, batch.event, number)

    def _add_step(self, user: int, batch: Batch) -> int:
        """The shortest way: one look at the task, one new row. Steps are what there is most of."""
        number = self._next_number()
        added = ledger.add_step(self._connection, user, batch, number)
        if added != number:  # it was there already
            self._standing.number = number - 1
        else:
            self._numbers.append(number)
        return added

    def _operate(self, user: int, timeline: int | None, batch: Batch) -> int:
        """What an operation changes; the number for its event, above all of it."""
        connection = self._connection
        operation = batch.changes
        changes.check(connection, user, operation)
        moved = [timeline] if timeline is not None else []
        moved += [self._move(user, batch, move) for move in operation.moves]
        changes.note(connection, "timelines", moved)
        number = self._next_number()
        number = changes.add_checkpoints(connection, user, number, operation.checkpoints)
        number = changes.add_tombstones(connection, user, number, operation.tombstones)
        changes.apply(connection, user, operation, number)
        return number

    def _move(self, user: int, batch: Batch, move: Move) -> int:
        """Move a timeline; its row id, or `_DONE` if the batch was committed before.

        A batch that was committed before has moved its timeline away from what it expects,
        so only one whose expectation fails has to be looked up.
        """
        expect, become = move
        if expect is None:
            self._connection.execute(_ADD_TIMELINE, (user, *become))
            moved = self._connection.changes()
            row = self._timeline(user, become.name)
        else:
            row = self._timeline(user, become.name)
            self._connection.execute(_MOVE_TIMELINE, (*become[1:], row, *expect[1:3]))
            moved = self._connection.changes()
        if moved:
            return row
        if self._number_of(user, batch):
            return _DONE
        standing = self._connection.execute(
            "SELECT name, head, last_seq, created_at, origin FROM timelines "
            "WHERE user = ? AND name = ?",
            (user, become.name),
        ).fetchone()
        known = None if standing is None else TimelineRecord(*standing)
        raise Conflict(conflict_message(become.name, known, expect))

    def _number_of(self, user: int, batch: Batch) -> int:
        if isinstance(batch.event, EntryRecord):
            return ledger.number_of(self._connection, user, batch.event)
        table = "log" if isinstance(batch.event, LogRecord) else "checkpoints"
        found = self._one(
            f"SELECT number FROM {table} WHERE user = ? AND id = ?",  # noqa: S608 # one of two names
            (user, batch.event.id),
        )
        return int(found or 0)

    def _timeline(self, user: int, name: str) -> int:
        """The row of a timeline; 0 if there is none."""
        known = self._timelines.get((user, name))
        if known is not None:
            return known
        found = int(self._one(_TIMELINE_ID, (user, name)) or 0)
        if found:
            self._met[user, name] = found
        return found

    def _put(self, put: _Put) -> int:
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
        unknown = self._index.unknown(self._connection, user, [*requires, *fresh])
        if unknown == fresh and not self._made:
            return made  # nearly always: all of it is new, and all that it needs is there
        gone = set(unknown).intersection(requires)
        if gone:
            raise ObjectsGone(f"object {min(gone).hex()} is no longer stored")
        made_here = [directory for owner, _, directory in self._made if owner == user]
        in_round = {address for each in made_here for address in packs.hashes(each)}
        new = set(unknown) - in_round
        for address in objects.keys() - unknown:  # the prefix is known: is it the same hash?
            if not self._index.is_stored(self._connection, user, address):
                new.add(address)
        if len(new) == len(objects):
            return made
        return list(packs.pack(item for item in objects.items() if item[0] in new))

    def _add_pack(self, user: int, made: packs.Pack) -> None:
        standing = self._standing.packs
        last = standing.get(user) or int(self._one(_LAST_PACK, bounds(user)))
        standing[user] = pack = last + 1
        self._connection.execute(_ADD_PACK, (pack, *made))
        self._made.append((user, pack, made.directory))

    def _next_number(self) -> int:
        standing = self._standing
        if standing.number is None:
            standing.number = int(self._one(_LAST_NUMBER, ()))
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
            self._connection.execute(changes.ADD_CHECKPOINT, values)
        self._numbers.append(number)
        return number

    def _user(self, name: str | None) -> int:
        """A user's number. Kept in mind only after the commit that made it."""
        known = self._users.get(name)
        if known is not None:
            return known
        self._connection.execute("INSERT OR IGNORE INTO users (name) VALUES (?)", (name,))
        return int(self._one("SELECT id FROM users WHERE name = ?", (name,)))

    def _keep_in_mind(self, name: str | None) -> None:
        """What need not be asked again, now that the commit has succeeded."""
        if name not in self._users:
            self._users[name] = int(self._one("SELECT id FROM users WHERE name = ?", (name,)))

    def _one(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self._connection.execute(sql, values).get

    def _remember(self, tickets: "Sequence[Ticket[Any, int]]") -> None:
        """Move the mark, and keep in mind what the commit has made true.

        The commit stands: a mark that cannot be written is reported, not raised. It never
        moves back: a batch that was recognised, or a merge, gives out no number.
        """
        known = [self._index.learn(*made) for made in self._made]
        if all(known) and not any(_rearranges(ticket.item) for ticket in tickets):
            self._standing.version = self._connection.data_version()
        if self._met:
            self._timelines |= self._met
            if len(self._timelines) > MAX_TIMELINES:
                self._timelines.clear()
        if not self._numbers:
            return
        try:
            self._mark.write(max(self._numbers), relaxed=self._relaxed)
        except OSError:
            log(__name__).warning(
                "the mark at %s cannot be written", self._mark.path, exc_info=True
            )


_DONE = -1


def _rearranges(item: _Item) -> bool:
    """Whether an item may have changed more than it has added."""
    return callable(item) or (isinstance(item, _Write) and item.batch.changes is not NO_CHANGES)


def _moves_on(batch: Batch) -> bool:
    """Whether committing the batch makes its own expectation false for good.

    A checkpoint raises the last number, which never falls again; what is only logged may
    move a head away and be followed by a move back.
    """
    if batch.move is None or isinstance(batch.event, LogRecord):
        return False
    return position(batch.move.expect) != position(batch.move.become)


def _identity(path: str) -> tuple[int, int] | None:
    found = _stat(path)
    return None if found is None else (found.st_dev, found.st_ino)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
