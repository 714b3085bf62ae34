"""The copier feeds the backup: one thread of one open store, elected by `flock`.

The thread starts with the first commit, so that opening stays cheap, and looks twice a second
whether a process has committed. If the elected process ends, the kernel gives the lock back and
another one has it at its next look. An error here is reported, and fails no save.
"""

import contextlib
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Iterator

import apsw

from hardsave.defaults import SPARE_BYTES
from hardsave.errors import Corrupt, HardsaveError, Unavailable
from hardsave.logs import log
from hardsave.stores.local.database import free_bytes, in_our_words
from hardsave.stores.local.file_lock import is_at
from hardsave.stores.sqlite.backup import backup_file, durable_files, row_feed
from hardsave.stores.sqlite.backup.backup_file import Copied
from hardsave.stores.sqlite.backup.row_feed import Outdated
from hardsave.stores.sqlite.connection import wal_bytes, wal_bytes_of
from hardsave.stores.sqlite.gc import rewrite_lock, vacuum
from hardsave.stores.sqlite.open.file_identity import status_of
from hardsave.stores.sqlite.open.read_only import is_disk_full
from hardsave.stores.sqlite.write import disk_reserve
from hardsave.stores.sqlite.write.writer import LARGE_BYTES, Writer

PASS_SECONDS = 0.5
RENEWAL_SECONDS = 60.0
TRIM_FROM = 256  # rows of `changes` that were copied, before they are worth a commit
FULL_PASSES = 20  # that fail on a full disk, before that is reported
LAST_PASS_COMMITS = 1_000  # some milliseconds; more is left to the next process that commits
WAL_BYTES = 8 * 1024 * 1024  # before it is worth the work to move it into the main file
LARGE_WAL_BYTES = 16 * 1024 * 1024  # before it is worth waiting for readers to cut it
LAST_PASS_BYTES = 8 * 1024 * 1024  # of a store whose backup has to be built first

Files = tuple[os.stat_result | None, os.stat_result | None]
"""A backup and its WAL, as far as they are there."""


class Copier:
    """Feeds the backup of the store that `writer` writes to."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._path = writer.path
        self._trimmed = 0
        self._lock: int | None = None
        self._is_elected = False
        self._connection: apsw.Connection | None = None
        self._seen: int | None = None  # the store's data version at the last pass
        self._left: Files | None = None  # of the backup, after the last pass
        self._failures = 0  # passes in a row
        self.is_owed = False  # something was saved here that the backup does not have yet
        self._is_over = False  # the store is damaged: the next process that opens it takes over
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()  # a signal handler may save, too
        self._turning = threading.Lock()
        self._stop = threading.Event()
        self._wake = threading.Event()  # before its time
        self._wake_at = WAL_BYTES  # the length of the WAL; more while a reader needs all of it
        self._is_in_a_hurry = False  # a caller waits for the thread to end
        self._is_waiting = False  # something was committed, and there was no thread to be had

    def saw(self) -> None:
        """Something was committed. Cheap: it happens on every save."""
        if self._thread is None:
            self._start()
        elif self._is_elected and self._writer.wal_bytes > self._wake_at:
            self._wake.set()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self._stop.is_set():
                return
            ours = (weakref.ref(self), self._stop, self._wake)
            thread = threading.Thread(target=_work, args=ours, name="hardsave-backup", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError as error:  # there can be no other right now; what is saved is saved
                if not self._is_waiting:  # once
                    log(__name__).warning("%s is not backed up for now: %s", self._path, error)
                self._is_waiting = True
            finally:
                if thread.ident is None:  # that, or a Ctrl-C has come before it began
                    self._thread = None

    def renew(self) -> None:
        """Have the elected copier build the backup anew: what was removed is not in it then.

        Skips a change that the backup has not seen, so that it cannot be fed any more.
        """
        if not any(map(os.path.exists, self._copies())):
            return
        skipped: list[int] = []
        self._writer.apply(lambda connection: skipped.append(_skip(connection)))
        self.saw()
        self._wake.set()
        until = time.monotonic() + RENEWAL_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(HardsaveError):  # it is being replaced right now
                known = backup_file.peek(self._path)
                is_new = known is not None and known.change >= skipped[-1]
                if is_new and not any(map(os.path.exists, self._copies()[1:])):
                    return
            time.sleep(PASS_SECONDS / 10)
        raise Unavailable(
            f"what was removed is still in the backup of {self._path}: it was not built anew in "
            f"{RENEWAL_SECONDS:.0f} s; see the log of the processes that have it open, and repeat"
        )

    def trim(self) -> None:
        """Free the space that the backup does not need any more, if it is fed from here."""
        with self._turning:
            try:
                if not self._is_over and self._writer.is_in_place() and self._elect():
                    self._fed()
                    with in_our_words(backup_file.path_of(self._path)):
                        row_feed.trim(self._connected())
            except (HardsaveError, apsw.Error, OSError, Outdated):  # the next turn sees to it
                self._disconnect()

    @contextlib.contextmanager
    def at_rest(self, connection: apsw.Connection) -> Iterator[bool]:
        """Whether the backup has all commits, so that the WAL may go. No process commits in this
        block."""
        self.saw()  # if this one is elected here, it feeds the backup from now on
        is_our_turn = self._turning.acquire(timeout=PASS_SECONDS)  # it may be built anew right now
        try:
            # Before writers have to wait: what is left then is little, or the copier is stuck.
            is_near = is_our_turn and self._has_all(connection)
            if is_near and not self._is_elected:
                self._let_others_go_on(connection)
            with _standstill(self._writer):
                yield is_near and self._has_all(connection)
        finally:
            if is_our_turn:
                self._turning.release()

    def _has_all(self, connection: apsw.Connection) -> bool:
        """Whether the backup has, or gets in time, what is committed by now."""
        if self._is_over or not self._writer.is_in_place():
            return False
        if not os.path.exists(backup_file.path_of(self._path)):
            return True  # there is none that could have it
        try:
            if self._elect():
                self._fed()
                return True
            return self._is_fed(connection)
        except (HardsaveError, apsw.Error, OSError, Outdated):  # the next turn sees to it
            self._disconnect()
            return False

    def _is_fed(self, connection: apsw.Connection) -> bool:
        """Whether the copier of another process feeds it in time."""
        upto = backup_file.standing(connection, "main")
        until = time.monotonic() + 1.5 * PASS_SECONDS
        while (known := backup_file.peek(self._path)) is None or known < upto:
            if time.monotonic() > until:
                return False
            time.sleep(PASS_SECONDS / 20)
        return known <= backup_file.standing(connection, "main")  # or the store has lost something

    def _let_others_go_on(self, connection: apsw.Connection) -> None:
        """The copier has just fed it, and does it again in half a second, if a process commits:
        for most of that time writers need not wait."""
        with contextlib.suppress(HardsaveError, apsw.Error):  # `_has_all` looks again
            if backup_file.peek(self._path) not in (None, backup_file.standing(connection, "main")):
                time.sleep(0.7 * PASS_SECONDS)

    def _copies(self) -> tuple[str, str, str]:
        """The backup; the one that it takes the place of and its draft, for a moment or after
        a crash."""
        path = backup_file.path_of(self._path)
        return path, path + row_feed.OLD, path + durable_files.BACKUP

    def close(self) -> None:
        """End the thread, with a last pass if that is short; one that takes long is broken off."""
        with self._starting:
            self._stop.set()
            self._wake.set()
            thread = self._thread
        if thread is not None:
            thread.join(2 * PASS_SECONDS)
            self._is_in_a_hurry = True
            thread.join()
            self._is_in_a_hurry = False
        if thread is not None or self._is_waiting:
            self.turn(is_last=True)
        self._writer.move_what_is_copied()
        self._let_go()

    def __del__(self) -> None:
        self._stop.set()  # a store that was forgotten and not closed
        self._wake.set()
        self._let_go()

    def turn(self, *, is_last: bool = False) -> None:
        """Copy what is new, if it is for us to do. One thread at a time."""
        with self._turning:
            self._turn(is_last=is_last)

    def _turn(self, *, is_last: bool) -> None:
        if self._is_over:
            return
        try:
            # To connect to another file that was put there would meet it with our WAL.
            if not self._writer.is_in_place():
                self._finish()
            elif self._elect() and not (is_last and self._is_much()):
                self._pass()
                if not is_last:  # the process that closes the store last does
                    self._move_wal()
                disk_reserve.set_aside(self._path)
            self._failures = 0
        except (HardsaveError, apsw.Error, OSError) as error:
            self._disconnect()
            if not isinstance(error, apsw.InterruptError):
                self._report(error, is_last=is_last)

    def _report(self, error: Exception, *, is_last: bool) -> None:
        """Once; on a full disk after a while, or at the end: a save that has filled it may free
        its space."""
        self._failures += 1
        patience = FULL_PASSES if is_disk_full(error) else 1
        if self._failures == patience or (is_last and self.is_owed and self._failures < patience):
            is_ours = isinstance(error, HardsaveError)  # and says by itself what to do
            what = "%s is not backed up for now: %s"
            log(__name__).error(what, self._path, error, exc_info=not is_ours)

    def _elect(self) -> bool:
        name = self._path + "-backup-lock"
        if self._lock is not None and not is_at(name, self._lock):
            self._let_go()  # another may be elected by now
        if self._lock is None:
            self._lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._is_elected:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._is_elected = True
            except BlockingIOError:
                return False
        return True

    def _is_much(self) -> bool:
        """Whether a last pass would keep the caller that closes the store waiting."""
        if backup_file.peek(self._path) is not None:
            with contextlib.suppress(Outdated):
                return row_feed.waiting(self._connected()) > LAST_PASS_COMMITS
        return os.path.getsize(self._path) > LAST_PASS_BYTES

    def _pass(self) -> None:
        try:
            copied = self._fed()
            if copied is not None:
                self._trim_changes(copied)
                if row_feed.is_mostly_free(self._connected()):
                    self._shrink()
        except Outdated as reason:
            self._build(str(reason))
        except Corrupt:
            if self._is_damaged():
                self._build("it is damaged")
            else:
                self._repeat()

    def _shrink(self) -> None:
        """A little is cut off; to be rid of much, a copy is made, which takes space itself."""
        with in_our_words(backup_file.path_of(self._path)):
            if row_feed.trim(self._connected()):
                return
        self._build("most of it is free")

    def _fed(self) -> Copied | None:
        """How far the backup has come; None if nothing was committed since the last pass."""
        connection = self._connected()
        self._check_files()
        with in_our_words(backup_file.path_of(self._path)):
            version = connection.execute("PRAGMA store.data_version").get
            if version == self._seen:
                return None
            self._check_space()
            copied = row_feed.feed(connection)
        self._seen = version
        self.is_owed = False
        self._left = self._files()
        return copied

    def _check_space(self) -> None:
        """What waits in the WAL is written twice, as in the store. A backup takes no space that the
        store needs to give some back."""
        size = wal_bytes(self._path)
        if size > LARGE_BYTES and free_bytes(self._path) < 2 * size + SPARE_BYTES:
            raise apsw.FullError(f"{size >> 20:,} MiB more would leave too little space")

    def _repeat(self) -> None:
        """The backup is sound: it is the store that could not be read. Look at it anew."""
        with self._giving_up():
            self._fed()

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        """A store that cannot be read for its backup takes no more saves, which only it would have.
        Another process that has it open is elected then, and finds out by itself."""
        try:
            yield
        except Corrupt:
            self._is_over = True
            self._writer.stop()
            self._let_go()
            raise

    def _finish(self) -> None:
        """The file was taken away, and can be read for as long as it is open: what was acknowledged
        last comes into the backup all the same."""
        if self._connection is not None:
            with contextlib.suppress(Outdated):
                self._fed()

    def _move_wal(self) -> None:
        """Move what was copied from the WAL into the main file.

        What is only in one of the two is lost with that one: SQLite moves it when enough has come
        together, here it stays in the WAL until the backup has it. Damage to the main file then
        costs nothing.
        """
        size = wal_bytes(self._path)
        if size <= WAL_BYTES or self._unmoved() <= WAL_BYTES:
            return
        if rewrite_lock.is_under_way(self._path):  # the rewrite moves it in the end
            return
        with (
            contextlib.suppress(Outdated),  # since the pass a moment ago: the next builds it anew
            contextlib.suppress(rewrite_lock.NotBegun),  # the next turn tries again
            self._writer.pause(),
            in_our_words(self._path),
        ):
            self._fed()
            vacuum.move_wal(self._connected(), "store", and_cut=size > LARGE_WAL_BYTES)
        # What a reader keeps from being moved is tried twice a second, and not at every commit.
        self._wake_at = WAL_BYTES + (self._writer.wal_bytes if self._unmoved() else 0)

    def _unmoved(self) -> int:
        """How many bytes of the WAL are not in the main file yet."""
        with in_our_words(self._path):
            sql = "PRAGMA store.wal_checkpoint(NOOP)"
            _, frames, moved = self._connected().execute(sql).get
        return wal_bytes_of(frames - moved)

    def _check_files(self) -> None:
        """What goes into files that were taken away or cut is never found again."""
        if self._left is None:
            return
        for what, before, now in zip(("it", "its WAL"), self._left, self._files(), strict=True):
            if before is None:
                continue
            if now is None or not os.path.samestat(before, now):
                raise Outdated(f"{what} was removed or replaced")
            if now.st_size < before.st_size:
                raise Outdated(f"{what} was cut")

    def _files(self) -> "Files":
        path = backup_file.path_of(self._path)
        return status_of(path), status_of(path + "-wal")

    def _is_damaged(self) -> bool:
        self._disconnect()
        connection = None
        try:
            connection = backup_file.look(self._path)
            return connection is None or connection.execute("PRAGMA quick_check(1)").get != "ok"
        except (Corrupt, apsw.Error):
            return True
        finally:
            if connection is not None:
                connection.close()

    def _build(self, why: str) -> None:
        self._disconnect()
        log(__name__).info("the backup of %s is built anew: %s", self._path, why)
        with self._giving_up():
            row_feed.build(self._path, self._must_end, self._writer.is_in_place)

    def _must_end(self) -> bool:
        return self._is_in_a_hurry

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            if not os.path.exists(backup_file.path_of(self._path)):
                row_feed.build(self._path, self._must_end, self._writer.is_in_place)
            ours = self._writer.is_in_place
            self._connection = row_feed.open_for_feeding(self._path, self._must_end, ours)
            self._seen = None
        return self._connection

    def _trim_changes(self, copied: Copied) -> None:
        if copied.change - self._trimmed >= TRIM_FROM:
            sql = "DELETE FROM changes WHERE id <= ?"
            self._writer.apply(lambda connection: _run(connection, sql, (copied.change,)))
            self._trimmed = copied.change

    def _disconnect(self) -> None:
        self._left = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _let_go(self) -> None:
        self._disconnect()
        if self._lock is not None:
            os.close(self._lock)
            self._lock, self._is_elected = None, False


@contextlib.contextmanager
def _standstill(writer: Writer) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(writer.pause())
        except rewrite_lock.NotBegun as late:
            raise Unavailable(str(late)) from late
        yield


def _work(copier: "weakref.ref[Copier]", stop: threading.Event, wake: threading.Event) -> None:
    """The thread. It keeps nothing alive: a store that is forgotten ends it."""
    while True:
        wake.wait(PASS_SECONDS)
        wake.clear()
        ours = copier()
        if stop.is_set():
            return
        if ours is None:
            return
        ours.turn()
        del ours


def _skip(connection: apsw.Connection) -> int:
    for _ in range(2):
        connection.execute("INSERT INTO changes (what, low, high) VALUES ('packs', 1, 0)")
    last = connection.last_insert_rowid()
    connection.execute("DELETE FROM changes WHERE id < ?", (last,))
    return last


def _run(connection: apsw.Connection, sql: str, values: tuple[int, ...]) -> None:
    connection.execute(sql, values)
