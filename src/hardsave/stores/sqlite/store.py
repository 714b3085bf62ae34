"""The contract of `stores.base` on one SQLite file."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id, Note, OwnerRecord
from hardsave.stores.base import (
    Batch,
    Collected,
    Durability,
    Report,
    Stats,
    Survives,
    Turn,
)
from hardsave.stores.host.boot import awake, boot_id
from hardsave.stores.ledger import Moment
from hardsave.stores.local.database import OPEN_AGAIN, may_be_passing, translated
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.local.turns import file_turn
from hardsave.stores.sqlite import counts, ledger, packs
from hardsave.stores.sqlite.backup import backup_file, durable_files
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.connection import (
    at_one_moment,
    connect,
    lies_in_memory,
    look,
    real_path,
)
from hardsave.stores.sqlite.connection_gate import ConnectionGate
from hardsave.stores.sqlite.gc import vacuum
from hardsave.stores.sqlite.gc.maintenance import Access, Maintenance
from hardsave.stores.sqlite.gc.merge import Merger
from hardsave.stores.sqlite.open import open_stores
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.open.prepare import prepare, suspect
from hardsave.stores.sqlite.open.presence import Presence
from hardsave.stores.sqlite.open.read_only import ReadOnlyFile
from hardsave.stores.sqlite.read.object_index import bounds, indexed_upto
from hardsave.stores.sqlite.read.object_reader import ObjectReader, Scanned, next_pack
from hardsave.stores.sqlite.read.queries import Queries
from hardsave.stores.sqlite.salvage.structure_check import backup_faults, structure_faults
from hardsave.stores.sqlite.write import pins, put_ahead
from hardsave.stores.sqlite.write.put_ahead import PutAhead
from hardsave.stores.sqlite.write.transaction import PutNotes
from hardsave.stores.sqlite.write.writer import Refusing, Writer

_T = TypeVar("_T")
_G = TypeVar("_G")


class SqliteStore(Queries):
    """See `stores.base` for the contract. Threads share one instance; processes open their own."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "power",
        backup: bool = True,
        compress: Callable[[], bool] = packs.always,
        read_only: bool = False,
    ) -> None:
        """With `read_only` no file is made, locked or written, and one that is missing is
        `NotFound`."""
        self.path = real_path(path)
        self._only_reads = read_only
        self._compress = compress
        self._durability = durability
        self._has_backup = backup
        self._pins: set[bytes] = set()  # that this store has taken, and not given back
        self._ahead: dict[bytes, PutAhead] = {}  # what was put under each of them
        self._gate = ConnectionGate(self._reopen)
        self._reopen()

    @property
    def is_open(self) -> bool:
        return self._gate.is_open

    def _reopen(self) -> None:
        with open_stores.turn():
            self._start()
            open_stores.add(self)

    def _start(self) -> None:
        """Open the file, and everything that belongs to this process alone."""
        self._lock = FileLock(self.path + "-lock")
        self._mark = CommitMark(self.path + "-mark")
        self._presence = Presence(self.path + "-open")
        self._free: list[apsw.Connection] = []
        self._objects = ObjectReader(self._met)
        self._users: dict[str | None, int] = {None: 0}
        try:
            prepared = prepare(
                self.path,
                self._durability,
                self._lock,
                self._mark,
                self._presence,
                is_open_here=open_stores.has(self.path),
                only_reads=self._only_reads,
            )
            self._read_only = prepared if isinstance(prepared, ReadOnlyFile) else None
            self._writer = self._begin_writing(prepared)
        except OSError as error:
            self._let_go()
            raise Unavailable(
                f"{self.path} cannot be opened: {error}; see to it, or name a store elsewhere"
            ) from error
        except BaseException:
            self._let_go()
            raise
        self._merger = Merger(self._writer, self._connect)
        is_copied = self._has_backup and self._read_only is None
        self._copier = Copier(self._writer) if is_copied else None
        access = Access(
            self._reading_at_once,
            self._reading,
            self._apply,
            self._merge_waiting,
            self._at_rest,
            self._renew_backup,
            self._trim_backup,
            self._forget_pins,
        )
        self._housekeeper = Maintenance(self.path, access, compress=self._compress)

    def _begin_writing(self, prepared: "apsw.Connection | ReadOnlyFile") -> Writer:
        if isinstance(prepared, ReadOnlyFile):
            return Refusing(prepared)
        return Writer(
            self.path,
            prepared,
            self._lock,
            self._mark,
            self._objects.index,
            self._connect,
            relaxed=self._durability == "process",
            is_copied=self._has_backup,
            compress=self._compress,
        )

    def _make_way(self, *, to_write: bool = False) -> None:
        """What was opened on a full disk is opened anew once that may help."""
        opened = self._read_only
        to_write = to_write and not self._only_reads
        if opened is not None and (to_write or opened.has_moved()):
            self._gate.hold()
            try:
                self._gate.shut(self._shut)
            finally:
                self._gate.let_go()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Writer]:
        if self._read_only is not None:
            self._make_way(to_write=True)
        with self._gate:
            yield self._writer

    def _let_go(self) -> None:
        self._presence.close()
        self._mark.close()
        self._lock.close()

    def commit(self, batch: Batch) -> int:
        if self._read_only is not None:
            self._make_way(to_write=True)
        with self._gate:  # as `_writing` does, by the shortest way
            try:
                number = self._writer.commit(batch)
            except (apsw.Error, Corrupt) as error:
                self._note_damage(error)
                raise
            if batch.objects:
                self._saw(batch.user, batch.objects)
            if self._copier is not None:
                self._copier.is_owed = True
                self._copier.saw()
        return number

    def _saw(self, user: str | None, objects: Mapping[Hash, bytes]) -> None:
        size = sum(map(len, objects.values()))
        made = 1 + size // packs.TARGET_BYTES
        self._merger.saw(self._writer.number_of_user(user), made, len(objects))

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        known = self._users.get(user)
        if known is not None and self._gate.is_open:
            found = self._objects.kept(known, hashes)
            if len(found) == len(hashes):
                return found
        return self._asked(self._objects.read, user, hashes)

    def _met(self, user: int, count: int) -> None:
        """Packs that were not known yet: whoever finds many of them waiting merges them."""
        if self._read_only is None:
            self._merger.met(user, count)

    def rescue(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        with self._reading() as connection:
            number = self._user(user, connection)
        try:
            return backup_file.rescue(self.path, number, set(hashes), only_reads=self._only_reads)
        except Corrupt:
            log(__name__).exception("the backup of %s cannot be read", self.path)
            return {}

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        return self._asked(self._objects.missing, user, hashes)

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        """A pack at a time, each in a transaction of its own: a long one would let the WAL grow.
        Merging puts objects under a higher id, so none passes unseen. Compaction does not: what it
        has put in order meanwhile is read once more."""
        upto, seen = bounds(self._user(user))[1], self._compacted(user)
        while upto:
            found: Scanned | None = Scanned(0, {})
            while found is not None and found.pack < upto:
                with self._reading() as connection:
                    found = next_pack(connection, self._user(user, connection), found.pack)
                if found is not None:
                    yield found.objects
            before, seen = seen, self._compacted(user)
            upto = seen if seen > before else 0

    def _compacted(self, user: str | None) -> int:
        """Up to which pack a user's objects are in order by timeline."""
        found = self._row("SELECT compacted FROM users WHERE id = ?", user)
        return 0 if found is None else int(found[0])

    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        with self._writing() as writer:
            writer.put_notes(PutNotes(user, id, notes, replace))
            if self._copier is not None:
                self._copier.is_owed = True
                self._copier.saw()

    # The ledger

    def moment(self) -> Moment:
        return Moment(boot_id(), awake())

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        with self._writing() as writer:
            return writer.hold(user, owner, is_new=is_new)

    def let_go(self, user: str | None, owner: Id) -> None:
        number = self._user(user)
        with self._writing() as writer:
            writer.apply(lambda connection: ledger.let_go(connection, number, owner))

    # Objects ahead of their batch, and those that nobody needs

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        held = pins.ours(pin)
        self._note_ahead(user, held, objects)
        pinned = pins.lasting(held, self.moment(), seconds)
        with self._writing() as writer:
            self._pins.add(held)
            try:
                writer.check_room(sum(map(len, objects.values())))
            except Unavailable:  # perhaps most of it is stored already
                writer.put(user, {}, pinned)  # so that it stays
                missing = self.missing(user, objects)
                objects = {each: data for each, data in objects.items() if each in missing}
            writer.put(user, objects, pinned)
            self._saw(user, objects)

    def _note_ahead(self, user: str | None, pin: bytes, objects: Collection[Hash]) -> None:
        if pin not in self._ahead:
            with self._reading() as connection:
                self._ahead[pin] = put_ahead.begin(connection, self._user(user, connection))
        if self._ahead[pin].is_all:
            self._ahead[pin].objects.update(objects)

    def unpin(
        self,
        user: str | None,
        pin: bytes,
        *,
        given_up: Callable[[bytes], Collection[Hash]] | None = None,
    ) -> None:
        held = pins.ours(pin)
        put = self._ahead.pop(held, None)
        if given_up is not None and put is not None and put.is_all:
            from hardsave.stores.sqlite.gc.discard import Discard  # few saves are given up

            number, forget = self._user(user), self._forget_pins
            self._housekeeper.discard(Discard(number, held, put, given_up, forget))
        else:
            with self._writing() as writer:
                writer.apply(lambda connection: pins.give_back(connection, held))
        self._pins.discard(held)

    def collect(
        self, refs: Callable[[bytes], Collection[Hash]], *, exact: bool = False
    ) -> Collected:
        return self._housekeeper.collect(refs, exact=exact)

    def compact(self, refs: Callable[[bytes], Collection[Hash]]) -> None:
        self._housekeeper.compact(refs)

    def _forget_pins(self, connection: apsw.Connection) -> None:
        """Of processes that are gone. Runs as a change, that is under the writer's lock."""
        pins.forget_the_dead(connection, self.moment())
        if self._presence.is_alone():
            pins.forget_all_but(connection, self._pins)

    @contextlib.contextmanager
    def _at_rest(self, connection: apsw.Connection) -> Iterator[bool]:
        if self._copier is None:
            yield True
        else:
            with self._copier.at_rest(connection) as is_copied:
                yield is_copied

    def _renew_backup(self) -> None:
        with self._gate:
            if self._copier is not None:
                self._copier.renew()

    def _trim_backup(self) -> None:
        with self._gate:
            if self._copier is not None:
                self._copier.trim()

    def local(self, what: str) -> str | None:
        return None if self._only_reads else f"{self.path}-{what}"

    def once(self, name: str) -> contextlib.AbstractContextManager[Turn | None]:
        self._gate.check()
        if self._only_reads:
            return contextlib.nullcontext()
        return file_turn(f"{self.path}-{name}")

    is_shared = False

    def durability(self) -> Survives:
        """A file system in memory keeps nothing through a power loss, even what is synced to it."""
        return "process" if lies_in_memory(self.path) else self._durability

    def stats(self, user: str | None) -> Stats:
        found = self._row(counts.STATS, user) or (0, 0, 0, 0, 0, 0)
        timelines, checkpoints, objects, object_bytes, own, every = found
        size, copied = (
            vacuum.file_bytes(self.path),
            vacuum.file_bytes(backup_file.path_of(self.path)),
        )
        # A backup is as long as its store before long: nothing has to go for what it still holds.
        share = (size + min(size, copied)) * own // every if every else 0
        return Stats(
            *(timelines, checkpoints, objects, size + copied),
            own_bytes=share,
            backup_bytes=copied,
            object_bytes=object_bytes,
        )

    def sync(self) -> None:
        """With durability "power", every commit has done so."""
        with self._gate:
            if self._durability == "process":
                self._sync_wal()

    def _sync_wal(self) -> None:
        try:
            with contextlib.suppress(FileNotFoundError):  # what moves it into the file syncs that
                durable_files.sync(self.path + "-wal")
            durable_files.sync(os.path.dirname(self.path))
        except OSError as error:
            raise Unavailable(
                f"{self.path} cannot be synced: {error}; see to the disk, then repeat"
            ) from error

    def forget(self) -> None:
        with self._gate:
            while self._free:
                self._free.pop().close()
            self._objects.forget()

    def check_usable(self) -> None:
        with self._gate:
            if self._read_only is not None:
                return  # each read opens the file anew
            if not self._writer.is_in_place():
                raise Unavailable(
                    f"{self.path} was removed or replaced while it was open; put it back, or open "
                    "the store again"
                )
            _, _, tables = look(self.path)  # not through connections that have pages in memory
            if not tables:
                raise Corrupt(f"{self.path} was emptied while it was open{OPEN_AGAIN}")

    def verify(self) -> list[str]:
        try:
            with self._reading() as connection, at_one_moment(connection):
                faults = [
                    str(row[0])
                    for row in connection.execute("PRAGMA integrity_check")
                    if row[0] != "ok"
                ]
                if faults and not self._only_reads:
                    suspect(self.path)
                faults += [
                    f"row {row[1]} of {row[0]} refers to a row of {row[2]} that is missing"
                    for row in connection.execute("PRAGMA foreign_key_check")
                ]
                return faults + structure_faults(connection) + self._backup_faults()
        except Corrupt as error:
            return [str(error), *self._backup_faults()]

    def _backup_faults(self) -> list[str]:
        return backup_faults(self.path, only_reads=self._only_reads)

    def repair(self) -> Report:
        from hardsave.stores.sqlite.salvage.repair import repair  # only whoever needs it loads it

        self._gate.hold()
        try:
            self._gate.check()
            self._gate.shut(self._shut)
            return repair(self.path)
        finally:
            self._gate.let_go()

    def close(self) -> None:
        self._gate.hold()
        try:
            self._gate.shut(self._shut)
            self._gate.is_closed = True
        finally:
            self._gate.let_go()

    # Connections

    def _shut(self) -> None:
        """Close every connection. Nobody is using one."""
        self._merger.close()
        if self._copier is not None:
            self._copier.close()
        for connection in self._free:
            connection.close()
        self._writer.close()
        self._let_go()

    def _connect(self) -> apsw.Connection:
        if self._read_only is not None:
            return self._read_only.connect()
        connection = connect(self.path, self._durability, create=False)
        if self._has_backup:  # see `Writer.move_what_is_copied`
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return connection

    def _reading(self) -> "_Reading":
        """A connection that no other thread is reading with."""
        return _Reading(self)

    def _note_damage(self, error: BaseException) -> None:
        """Whoever opens the store next takes over, if it is damaged indeed."""
        if isinstance(error, apsw.Error):
            error = translated(error, self.path)
        if isinstance(error, Corrupt) and not self._only_reads:
            suspect(self.path)

    @contextlib.contextmanager
    def _reading_at_once(self) -> Iterator[apsw.Connection]:
        """A read transaction."""
        with self._reading() as connection, at_one_moment(connection):
            yield connection

    def _apply(self, change: Callable[[apsw.Connection], None]) -> None:
        with self._writing() as writer:
            writer.apply(change)
            if self._copier is not None:
                self._copier.saw()  # whoever collects writes much, and the WAL has to be moved

    def _merge_waiting(self, user: int) -> None:
        """Merge and index all packs that are there now, however few."""
        with self._reading() as connection:
            sql = "SELECT max(id) FROM packs WHERE id < ?"
            last = connection.execute(sql, (bounds(user)[1],)).get or 0
            while indexed_upto(connection, user) < last:
                self._merger.merge(connection, user, every=True)

    def _rows(self, sql: str, user: str | None, *values: Any) -> list[tuple[Any, ...]]:
        try:
            with _Reading(self) as connection:  # as `_asked` does, by the shortest way
                return _rows(connection, self._user(user, connection), (sql, values))
        except UnicodeEncodeError:
            return []  # no stored text has lone surrogates
        except Corrupt as error:
            return self._asked_again(error, _rows, user, (sql, values))

    def _asked(
        self, question: Callable[[apsw.Connection, int, _G], _T], user: str | None, given: _G
    ) -> _T:
        """The answer to a question; where the file seems malformed, to the same asked again."""
        try:
            with _Reading(self) as connection:
                return question(connection, self._user(user, connection), given)
        except Corrupt as error:
            return self._asked_again(error, question, user, given)

    def _asked_again(
        self,
        error: Corrupt,
        question: Callable[[apsw.Connection, int, _G], _T],
        user: str | None,
        given: _G,
    ) -> _T:
        if not may_be_passing(error):
            raise error
        log(__name__).warning("%s was read again, because: %s", self.path, error)
        with _Reading(self) as connection:
            return question(connection, self._user(user, connection), given)

    def _user(self, name: str | None, connection: apsw.Connection | None = None) -> int:
        """A user's number; -1, which owns nothing, for one never seen."""
        known = self._users.get(name)
        if known is not None:
            return known
        if connection is None:
            with self._reading() as connection:
                return self._user(name, connection)
        found = connection.execute("SELECT id FROM users WHERE name = ?", (name,)).get
        if found is None:
            return -1
        self._users[name] = int(found)
        return int(found)

    # Forks: see `open.open_stores`

    def before_fork(self) -> None:
        self._gate.hold()
        self._gate.shut(self._shut)

    def after_fork_in_parent(self) -> None:
        self._gate.let_go()

    def after_fork_in_child(self) -> None:
        self._gate.renew()


def _rows(
    connection: apsw.Connection, user: int, given: tuple[str, tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    sql, values = given
    return connection.execute(sql, (user, *values)).fetchall()


class _Reading:
    """`with _Reading(store) as connection:` from the free ones, or a new one."""

    __slots__ = ("_connection", "_store")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> apsw.Connection:
        store = self._store
        if store._read_only is not None:
            store._make_way()
        store._gate.__enter__()
        try:
            try:
                self._connection = store._free.pop()
            except IndexError:
                self._connection = store._connect()
        except BaseException:
            store._gate.__exit__()
            raise
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        store = self._store
        try:
            if store._read_only is not None and store._read_only.has_moved():
                raise Unavailable(f"others write to {store.path} again; repeat it") from error
            if error is None:
                store._free.append(self._connection)
                return
            # It may be in the middle of a transaction, and would be for as long as somebody keeps
            # the error, with all its frames: no WAL could be emptied meanwhile.
            with contextlib.suppress(apsw.Error):
                self._connection.close()
            store._note_damage(error)
            if isinstance(error, apsw.Error):
                raise translated(error, store.path) from error
        finally:
            store._gate.__exit__()
