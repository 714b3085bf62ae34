"""The one path of every write: lock, transaction, commit, mark.

Items that wait at the same time share a transaction. If that fails as a whole, no caller in it
knows whether it was written: the leader gets the error, and the others repeat, which is
harmless.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import apsw

from hardsave.defaults import BUSY_SECONDS, SPARE_BYTES
from hardsave.errors import Corrupt, DeadlineExceeded, Stopped, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import OwnerRecord, filled
from hardsave.progress import check_deadline, within_deadline
from hardsave.stores import packs
from hardsave.stores.base import Batch
from hardsave.stores.group_commit import REPEATS, GroupCommit, Ticket
from hardsave.stores.local.database import free_bytes, translated
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite import ledger
from hardsave.stores.sqlite.backup import backup_file, durable_files
from hardsave.stores.sqlite.connection import cut_wal, wal_bytes_of
from hardsave.stores.sqlite.gc import rewrite_lock
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.open.file_identity import Changed, FileIdentity, IndexGone, WalGone
from hardsave.stores.sqlite.open.read_only import ReadOnlyFile
from hardsave.stores.sqlite.read.object_index import ObjectIndex
from hardsave.stores.sqlite.write.pins import Pin
from hardsave.stores.sqlite.write.transaction import (
    Change,
    Item,
    Put,
    PutNotes,
    Transaction,
    Write,
)
from hardsave.stores.sqlite.write.writer_cache import Standing, WriterCache

LONG_WAL = 1_000  # frames; SQLite's own measure
COPIED_LONG_WAL = 32_768  # of a WAL that waits for a backup, which does not come
LARGE_BYTES = 1 << 20  # what is smaller is written if it can be


class Writer:
    """The writing half of a store, over a connection to a file that was checked before."""

    def __init__(
        self,
        path: str,
        connection: apsw.Connection,
        lock: FileLock,
        mark: CommitMark,
        index: ObjectIndex,
        reopen: Callable[[], apsw.Connection],
        *,
        relaxed: bool,
        is_copied: bool,
        compress: Callable[[], bool],
    ) -> None:
        self.path = path
        self.compress = compress
        # Where there is a backup, its copier moves the WAL; unless that is stuck.
        self.long_wal = COPIED_LONG_WAL if is_copied else LONG_WAL
        self._is_wal_left = False  # for a takeover to read
        if is_copied:  # a store that is forgotten and not closed leaves it, too
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._relaxed = relaxed
        self._lock = lock
        self._mark = mark
        self._connection = connection
        self._cursor = connection.cursor()  # one for all: each commit would make some of its own
        self._reopen = reopen
        self._wrong: Corrupt | None = None  # the store is damaged
        self._is_doubtful = False  # a connection that failed may have fallen back to reading only
        self._is_unmarked = False  # the last mark could not be written
        self._file_identity = FileIdentity(path)
        self._file_identity.follow(connection)
        self._group: GroupCommit[Item, int] = GroupCommit(self._run)
        self._index = index
        self._known = WriterCache()

    def commit(self, batch: Batch) -> int:
        objects = batch.objects
        made = list(packs.pack(objects.items(), compress=self.compress)) if objects else []
        return self._submit(filled(Write, (batch, made)))

    def put(self, user: str | None, objects: Mapping[Hash, bytes], pin: Pin) -> None:
        """Store objects that nothing leads to yet, and hold them."""
        made = list(packs.pack(objects.items(), compress=self.compress))
        self.check_space(sum(len(pack.body) + len(pack.directory) for pack in made))
        self._submit(Put(user, objects, made, pin))

    def check_space(self, size: int) -> None:
        """So many bytes leave some space, for small saves and to remove something. They are written
        twice: into the WAL, and from there, with what waits in it, into the file."""
        if size < LARGE_BYTES:
            return
        times = 3 if self.long_wal == COPIED_LONG_WAL else 1  # the backup writes it twice, too
        needed = 2 * size + times * self.wal_bytes + SPARE_BYTES
        free = free_bytes(self.path)
        if free < needed:
            short = 1 + (needed - free >> 20)
            raise Unavailable(
                f"no space left for {self.path}: this needs at least {short:,} MiB more than are "
                "free; free some and repeat"
            )

    def put_notes(self, put: PutNotes) -> None:
        self._submit(put)

    def apply(self, change: Change) -> None:
        """Run a change of the store's own in a transaction, in turn with the commits."""
        self._submit(change)

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool) -> bool:
        """Renew or take a lease; False if it was reclaimed."""
        held: list[bool] = []

        def change(connection: apsw.Connection) -> None:
            number = self._known.user(connection, user)
            held.append(ledger.hold(connection, number, owner, is_new=is_new))

        self._submit(change)
        return held[-1]

    def close(self) -> None:
        self._connection.close()

    def move_what_is_copied(self) -> None:
        """Closing the last connection moves the WAL from now on, so that one file is left, unless
        it has what would be in that file alone."""
        if not self._is_wal_left and not backup_file.lacks_some(self.path, self._connection):
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        elif self._relaxed:  # no commit was synced; SQLite does that when it moves them
            with contextlib.suppress(OSError):
                durable_files.sync(self.path + "-wal")
                durable_files.sync(os.path.dirname(self.path))

    def number_of_user(self, name: str | None) -> int:
        """The number of a user that has committed something."""
        return self._known.users[name]

    def stop(self) -> None:
        """Commit nothing more: the store is damaged, and what it would take might be lost."""
        self._wrong = self._wrong or Corrupt(
            f"{self.path} is damaged, and its backup cannot follow it; nothing was saved. "
            "Close it everywhere and open it again, which takes over from its backup"
        )

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """No process commits in this block. `NotBegun` if that cannot be had."""
        lock = FileLock(self._lock.path)
        _acquire(lock)
        try:
            yield
        finally:
            lock.release()
            lock.close()

    @property
    def wal_bytes(self) -> int:
        """How long the WAL was at the last commit of this process."""
        return wal_bytes_of(self._file_identity.frames)

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return self._file_identity.is_in_place()

    def _submit(self, item: Item) -> int:
        for _ in range(REPEATS):
            number = self._group.submit(item)
            if number is not None:
                return number
        raise Unavailable(f"writing to {self.path} failed {REPEATS} times under other callers")

    def _run(self, tickets: "Sequence[Ticket[Any, int]]") -> None:
        try:
            items = [ticket.item for ticket in tickets]
            done = rewrite_lock.past(self.path, self._locked, items)
        except rewrite_lock.NotBegun as late:
            # Nothing was begun, and all of them have waited for as long as a caller has to.
            for ticket in tickets:
                ticket.error = Unavailable(str(late))
            return
        except apsw.Error as error:
            self._is_doubtful = True
            self._leave_wal()
            raise translated(error, self.path) from error
        except Corrupt:
            self._leave_wal()
            raise
        except TimeoutError:  # of a signal handler: those of alarms raise it, and disks do not
            raise
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be written: {error}") from error
        for ticket, answer in zip(tickets, done.answers, strict=True):
            if isinstance(answer, Exception):
                ticket.error = answer
            else:
                ticket.result = answer

    def _locked(self, items: Sequence[Item]) -> Transaction:
        _acquire(self._lock)
        try:
            if self._wrong is not None:
                raise Corrupt(str(self._wrong))
            if self._is_doubtful:
                self._renew_connection()
            try:
                done = self._transact_on_whole_files(items)
            except apsw.FullError:
                with contextlib.suppress(apsw.Error, OSError):  # what is raised says more
                    cut_wal(self._connection, self.path)
                raise
            number = done.settle()
            if number is not None:
                self._move_mark(number)
            return done
        finally:
            self._lock.release()

    def _leave_wal(self) -> None:
        """Closing moves nothing from the WAL into a file that may be damaged: what was saved last
        is for a takeover to read, or for the next process that finds the file sound."""
        self._is_wal_left = True
        with contextlib.suppress(apsw.Error):
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _renew_connection(self) -> None:
        self._connection.close()
        self._connection = self._reopen()
        self._cursor = self._connection.cursor()
        self._file_identity.follow(self._connection)
        self._known.standing = Standing()  # a new connection counts anew
        self._file_identity.reopened(self._connection, self._reopen)
        self._is_doubtful = self._is_wal_left = False

    def _transact_on_whole_files(self, items: Sequence[Item]) -> Transaction:
        """One transaction, on a file that has all its pages and a WAL that has all its frames."""
        for _ in range(REPEATS):
            try:
                done = self._transact(items)
            except Changed:  # perhaps by a process that vacuums much, piece by piece
                self._accept_changes()
            else:
                self._file_identity.committed(self._connection)
                if self._file_identity.frames >= self.long_wal:
                    self._move_wal()
                return done
        raise Unavailable(f"{self.path} was changed {REPEATS} times meanwhile; repeat it")

    def _accept_changes(self) -> None:
        if not self._lock.is_in_place():  # other processes may write under another lock file by now
            self._lock.close()
            _acquire(self._lock)
        try:
            self._file_identity.changed(self._connection, self._reopen)
        except Corrupt as error:
            self._wrong = error
            raise

    def _move_wal(self) -> None:
        """Move the WAL into the file, as far as no reader needs it, as SQLite does by itself. The
        commit is done: what cannot be moved now is moved by one of the next."""
        try:
            self._connection.wal_checkpoint("main")
        except apsw.BusyError:
            pass  # another process is at it
        except apsw.FullError as error:
            log(__name__).info("the WAL of %s stays as it is: %s", self.path, error)
        except apsw.Error:
            log(__name__).warning("the WAL of %s stays as it is", self.path, exc_info=True)
        self._file_identity.moved(self._connection)

    def _transact(self, items: Sequence[Item]) -> Transaction:
        connection = self._connection
        if connection.in_transaction:  # Ctrl-C has struck in the middle of the last rollback
            connection.execute("ROLLBACK")
        cursor = self._cursor
        work = Transaction(items, cursor, self._index, self._known, compress=self.compress)
        try:
            self._begin(cursor)
            work.run()
            self._file_identity.check()
            cursor.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, WalGone):
                # Its last commits are only there, and it can be read for as long as it is open.
                connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
            if isinstance(error, IndexGone):
                # Others may have committed since: the WAL is not for this process to remove.
                self._leave_wal()
            raise
        return work

    def _begin(self, cursor: apsw.Cursor) -> None:
        """Programs that are not ours may hold SQLite's own lock."""
        patience = within_deadline(BUSY_SECONDS)
        if patience < BUSY_SECONDS:
            self._connection.set_busy_timeout(math.ceil(patience * 1000))
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            check_deadline()
            raise rewrite_lock.NotBegun(str(translated(error, self.path))) from error
        finally:
            if patience < BUSY_SECONDS:
                self._connection.set_busy_timeout(int(BUSY_SECONDS * 1000))

    def _move_mark(self, number: int) -> None:
        """The commit is done: a mark that cannot be written is reported, not raised.

        It never moves back: a batch that was recognised, or a merge, gives out no number.
        """
        try:
            self._mark.write(number, relaxed=self._relaxed)
            self._is_unmarked = False
        except TimeoutError:  # see above
            raise
        except OSError:
            if not self._is_unmarked:  # once
                log(__name__).warning(
                    "the mark at %s cannot be written", self._mark.path, exc_info=True
                )
            self._is_unmarked = True


def _acquire(lock: FileLock) -> None:
    try:
        lock.acquire(BUSY_SECONDS)
    except (DeadlineExceeded, Stopped):  # this caller's own: its group goes on without it
        raise
    except Unavailable as error:
        raise rewrite_lock.NotBegun(str(error)) from error


class Refusing(Writer):
    """That of a store on a full disk."""

    def __init__(self, file: ReadOnlyFile) -> None:
        self.path = file.path
        self._file = file
        self.compress = packs.always  # it writes nothing, but puts together what it would write

    def _submit(self, item: Item) -> int:
        raise self._file.refusal()

    def check_space(self, size: int) -> None:
        raise self._file.refusal()

    def close(self) -> None:
        self._file.close()
