"""The contract of `stores.base` on one SQLite file."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id, Note, OwnerRecord
from hardsave.stores import packs
from hardsave.stores.base import Batch, Durability, Survives, Turn
from hardsave.stores.claims import EVERYTHING
from hardsave.stores.host.boot import awake, boot_id
from hardsave.stores.ledger import Moment
from hardsave.stores.local.database import OPEN_AGAIN
from hardsave.stores.local.turns import file_turn
from hardsave.stores.results import Collected, Report, Stats
from hardsave.stores.sqlite import counts, ledger
from hardsave.stores.sqlite.backup import backup_file, durable_files
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.connection import (
    at_one_moment,
    lies_in_memory,
    look,
)
from hardsave.stores.sqlite.gc import vacuum
from hardsave.stores.sqlite.gc.maintenance import Access, Maintenance
from hardsave.stores.sqlite.gc.merge import Merger
from hardsave.stores.sqlite.open.prepare import suspect
from hardsave.stores.sqlite.open_file import OpenFile
from hardsave.stores.sqlite.read.object_index import bounds, indexed_upto
from hardsave.stores.sqlite.read.object_reader import Scanned, next_pack
from hardsave.stores.sqlite.salvage.structure_check import backup_faults, structure_faults
from hardsave.stores.sqlite.write import pins, put_ahead
from hardsave.stores.sqlite.write.put_ahead import PutAhead
from hardsave.stores.sqlite.write.transaction import PutNotes


class SqliteStore(OpenFile):
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
        self._pins: set[bytes] = set()  # that this store has taken, and not given back
        self._ahead: dict[bytes, PutAhead] = {}  # what was put under each of them
        super().__init__(
            path, durability=durability, backup=backup, compress=compress, read_only=read_only
        )

    def _start(self) -> None:
        super()._start()
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

    def _shut(self) -> None:
        self._merger.close()
        if self._copier is not None:
            self._copier.close()
        super()._shut()

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

    def generation(self) -> bytes:
        return b""

    def users(self) -> list[str | None]:
        with self._reading() as connection:
            return [row[0] for row in connection.execute("SELECT name FROM users ORDER BY id")]

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        known = self._users.get(user)
        if known is not None and self._gate.is_open:
            found = self._objects.kept(known, hashes)
            if len(found) == len(hashes):
                return found
        return self._asked(self._objects.read, user, hashes)

    def _met(self, user: int, count: int) -> None:
        """Packs that were not known yet: a store that finds many of them waiting merges them."""
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

    # Objects ahead of their batch, and those that no checkpoint needs

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        held = pins.ours(pin)
        self._note_ahead(user, held, objects)
        pinned = pins.lasting(held, self.moment(), seconds)
        with self._writing() as writer:
            self._pins.add(held)
            try:
                writer.check_space(sum(map(len, objects.values())))
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
        pins.forget_ended(connection, self.moment())
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
    claims = EVERYTHING

    def failover(self) -> str:
        return ""

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
        from hardsave.stores.sqlite.salvage.repair import repair  # few processes need it

        self._gate.hold()
        try:
            self._gate.check()
            self._gate.shut(self._shut)
            return repair(self.path)
        finally:
            self._gate.let_go()

    def _apply(self, change: Callable[[apsw.Connection], None]) -> None:
        with self._writing() as writer:
            writer.apply(change)
            if self._copier is not None:
                self._copier.saw()  # a collection writes much, and the WAL has to be moved

    def _merge_waiting(self, user: int) -> None:
        """Merge and index all packs that are there now, however few."""
        with self._reading() as connection:
            sql = "SELECT max(id) FROM packs WHERE id < ?"
            last = connection.execute(sql, (bounds(user)[1],)).get or 0
            while indexed_upto(connection, user) < last:
                self._merger.merge(connection, user, every=True)
