"""One SQLite file that this process has open: its connections, its writer, and how these end.

Every call reads or writes by way of the connection gate. A store that was closed for a fork, or
that was opened read-only on a full disk, is opened again by the next call.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.logs import log
from hardsave.stores.base import Durability
from hardsave.stores.local.database import may_be_passing, translated
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite.connection import (
    at_one_moment,
    connect,
    real_path,
)
from hardsave.stores.sqlite.connection_gate import ConnectionGate
from hardsave.stores.sqlite.open import open_stores
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.open.prepare import prepare, suspect
from hardsave.stores.sqlite.open.presence import Presence
from hardsave.stores.sqlite.open.read_only import ReadOnlyFile
from hardsave.stores.sqlite.read.object_reader import ObjectReader
from hardsave.stores.sqlite.read.queries import Queries
from hardsave.stores.sqlite.write.writer import Refusing, Writer

_T = TypeVar("_T")
_G = TypeVar("_G")


class OpenFile(Queries):
    """What a store is built on. Threads share one instance; processes open their own."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability,
        backup: bool,
        compress: Callable[[], bool],
        read_only: bool,
    ) -> None:
        self.path = real_path(path)
        self._only_reads = read_only
        self._compress = compress
        self._durability = durability
        self._has_backup = backup
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

    def _met(self, user: int, count: int) -> None:
        """So many packs of a user were read that were not known yet."""
        raise NotImplementedError

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

    def close(self) -> None:
        self._gate.hold()
        try:
            self._gate.shut(self._shut)
            self._gate.is_closed = True
        finally:
            self._gate.let_go()

    def _shut(self) -> None:
        """Close every connection. No thread is using one."""
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
        """The next process that opens the store takes over, if it is damaged indeed."""
        if isinstance(error, apsw.Error):
            error = translated(error, self.path)
        if isinstance(error, Corrupt) and not self._only_reads:
            suspect(self.path)

    @contextlib.contextmanager
    def _reading_at_once(self) -> Iterator[apsw.Connection]:
        """A read transaction."""
        with self._reading() as connection, at_one_moment(connection):
            yield connection

    def _rows(self, sql: str, user: str | None, *values: Any) -> list[tuple[Any, ...]]:
        try:
            with _Reading(self) as connection:  # as `_asked` does, by the shortest way
                return _rows(connection, self._user(user, connection), (sql, values))
        except UnicodeEncodeError:
            return []  # no stored text has lone surrogates
        except Corrupt as error:
            return self._asked_again(error, _rows, user, (sql, values))

    def _asked(
        self, query: Callable[[apsw.Connection, int, _G], _T], user: str | None, given: _G
    ) -> _T:
        """What a query answers; where the file seems malformed, what it answers a second time."""
        try:
            with _Reading(self) as connection:
                return query(connection, self._user(user, connection), given)
        except Corrupt as error:
            return self._asked_again(error, query, user, given)

    def _asked_again(
        self,
        error: Corrupt,
        query: Callable[[apsw.Connection, int, _G], _T],
        user: str | None,
        given: _G,
    ) -> _T:
        if not may_be_passing(error):
            raise error
        log(__name__).warning("%s was read again, because: %s", self.path, error)
        with _Reading(self) as connection:
            return query(connection, self._user(user, connection), given)

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

    def __init__(self, store: OpenFile) -> None:
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
            # It may be in the middle of a transaction, and would be for as long as a caller keeps
            # the error, with all its frames: no WAL could be emptied meanwhile.
            with contextlib.suppress(apsw.Error):
                self._connection.close()
            store._note_damage(error)
            if isinstance(error, apsw.Error):
                raise translated(error, store.path) from error
        finally:
            store._gate.__exit__()
