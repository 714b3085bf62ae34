"""Connections of one store: a pool of them, patience with a server that comes back, deadlines.

Each call runs on a connection of its own until it has its answer. One whose connection is lost is
repeated on another: the server may have restarted, or closed what was idle, and no caller has to
know. All that is asked here may be repeated; see `stores.base`.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from hardsave.defaults import BUSY_SECONDS, SERVER_CONNECTIONS, SERVER_SECONDS
from hardsave.errors import Misuse, Unavailable
from hardsave.progress import check_deadline, within_deadline
from hardsave.stores.postgres.address import Address
from hardsave.stores.postgres.overdue import answered_within
from hardsave.stores.postgres.translation import is_passing, raise_ours

T = TypeVar("T")
Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]
Pool = ConnectionPool[Connection]
Values = Sequence[Any] | Mapping[str, Any]
Asked = tuple[str, Values]  # a statement and its values

CLOSED = "this store is closed; open it again"
_POOL = "hardsave "  # how the name of each begins
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two attempts
_ATTEMPT_SECONDS = 2.0  # for one connection; the pool itself pauses longer and longer
CONNECT: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": 10,
    "application_name": "hardsave",
    # To prepare a statement is a round trip more, and a pipeline that fails leaves the driver with
    # statements in mind that the server never saw. What is asked here is planned in no time.
    "prepare_threshold": None,
    # A peer that is gone without a word is noticed after half a minute.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# One statement: a new connection costs no more round trips than it must. The server looks after
# its peers, too: the turn of a host that is gone is free again.
_SETTINGS = """
    SELECT set_config('search_path', %s, false),
           set_config('statement_timeout', %s, false),
           set_config('lock_timeout', %s, false),
           set_config('idle_in_transaction_session_timeout', %s, false),
           set_config('default_transaction_isolation', 'read committed', false),
           set_config('default_transaction_read_only', %s, false),
           set_config('client_encoding', 'UTF8', false),
           set_config('tcp_keepalives_idle', '10', false),
           set_config('tcp_keepalives_interval', '5', false),
           set_config('tcp_keepalives_count', '4', false),
           set_config('synchronous_commit', CASE
               WHEN %s THEN 'off'
               WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
               ELSE current_setting('synchronous_commit') END, false)
"""
# A replica that takes over begins a timeline of its own; a restored dump is in another cluster.
_GENERATION = """
    SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || CASE
        WHEN pg_is_in_recovery()
        THEN lpad(upper(to_hex((SELECT timeline_id FROM pg_control_checkpoint()))), 8, '0')
        ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END
"""
_UNTOLD = (  # by servers that are not quite PostgreSQL, or to whom little is granted
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.UndefinedFunction,
)
_WITHIN = "SELECT set_config('statement_timeout', %s, true)"  # until the end of the transaction
_LOCKS_WITHIN = "set_config('lock_timeout', %s, true)"  # the same


class _Pooled(psycopg.Connection[Row]):
    """One of a pool of ours."""


def _is_of_others(record: logging.LogRecord) -> bool:
    """The pool warns of each connection that is lost and each that it cannot make. Callers of ours
    have another, or get an error that says more."""
    about = record.args if isinstance(record.args, tuple) else ()
    return not any(
        isinstance(each, _Pooled) or (isinstance(each, str) and each.startswith(_POOL))
        for each in about
    )


logging.getLogger("psycopg.pool").addFilter(_is_of_others)


class Connections:
    """To one store, of this process. Threads share it."""

    def __init__(self, address: Address, *, read_only: bool, survives_process_only: bool) -> None:
        self._address = address
        self._read_only = read_only
        self._survives_process_only = survives_process_only
        self._is_closed = False
        self._store_id: bytes | None = None  # which store it was when it was opened
        self._is_another = False
        self.generation = b""  # of the server that the newest connection leads to
        self._pool: Pool | None = None
        self._process = 0

    @property
    def shown(self) -> str:
        return self._address.shown

    # Connections

    def connect(self) -> Connection:
        """One beside the pool, which its caller closes; what fails is raised as it is meant."""
        conninfo: Any = {**CONNECT}
        try:
            connection = psycopg.connect(self._address.conninfo, **conninfo)
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            raise_ours(error, self.shown)
        return connection

    def start(self, store_id: bytes) -> None:
        """From now on calls are answered, by this store and no other."""
        self._store_id = store_id
        try:
            self._open_pool()
        except PoolTimeout as error:
            raise_ours(error, self.shown)

    def _open_pool(self) -> Pool:
        """Of this process: a child of a fork must not speak on its parent's connections."""
        pool: Pool = ConnectionPool(
            self._address.conninfo,
            connection_class=_Pooled,
            kwargs=CONNECT,
            min_size=1,
            max_size=SERVER_CONNECTIONS,
            configure=self._configure,
            reconnect_timeout=_ATTEMPT_SECONDS,
            num_workers=1,
            name=f"{_POOL}{self._address.schema}",
            open=False,
        )
        pool.open(wait=True, timeout=within_deadline(SERVER_SECONDS))
        self._pool, self._process = pool, os.getpid()
        return pool

    def _set_up(self, connection: Connection) -> None:
        waits = str(int(BUSY_SECONDS * 1000))
        values = (self._address.schema, waits, waits, waits, "on" if self._read_only else "off")
        connection.execute(_SETTINGS, (*values, self._survives_process_only))

    def _configure(self, connection: Connection) -> None:
        with connection.pipeline():
            self._set_up(connection)
            found = connection.execute("SELECT id FROM store")
        row = found.fetchone()
        self._is_another = row is None or row[0] != self._store_id
        self.generation = _generation(connection)

    # Calls

    def ask(self, sql: str, values: Values = (), seconds: float = BUSY_SECONDS) -> list[Row]:
        """The rows of one statement."""
        return self.ask_all([(sql, values)], seconds)[0]

    def ask_all(self, asked: Sequence[Asked], seconds: float = BUSY_SECONDS) -> list[list[Row]]:
        """The rows of several, in one transaction and one round trip."""
        return self.run(lambda connection: answers(connection, asked, seconds))

    def run(self, work: Callable[[Connection], T]) -> T:
        """What `work` makes of a connection. It is called again if the connection is lost, or the
        server is about to come back, for as long as the caller may be kept waiting."""
        until = time.monotonic() + within_deadline(SERVER_SECONDS)
        pause = 0.0
        while True:
            try:
                with self._free().connection(timeout=within_deadline(_ATTEMPT_SECONDS)) as one:
                    self._check_is_same()
                    return work(one)
            except (psycopg.Error, PoolTimeout, PoolClosed) as error:
                self._check_open()
                check_deadline()
                self._check_writes(error)
                if not is_passing(error) or time.monotonic() >= until:
                    raise_ours(error, self.shown)
            time.sleep(pause)
            pause = min(max(_FIRST_PAUSE, 2 * pause), _LONGEST_PAUSE)
            self._free().check()  # what was idle is lost as well, mostly

    def _free(self) -> Pool:
        self._check_open()
        check_deadline()
        if self._pool is None or self._process != os.getpid():
            return self._open_pool()
        return self._pool

    def _check_open(self) -> None:
        if self._is_closed:
            raise Misuse(CLOSED)

    def check(self) -> None:
        """`Misuse` if it was closed."""
        self._check_open()

    def _check_writes(self, error: BaseException) -> None:
        """A server that takes over refuses writes for a moment; a store for reading always does."""
        if self._read_only and isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            raise Unavailable(
                f"{self.shown} was opened for reading alone; open it without read_only=True"
            ) from error

    def _check_is_same(self) -> None:
        if self._is_another:
            raise Unavailable(
                f"{self.shown} was replaced by another store while it was open; open it again"
            )

    def close(self) -> None:
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.close()


def _generation(connection: Connection) -> bytes:
    """Which history the server goes on with. A connection is lost with its server, so it is asked
    once for each."""
    try:
        found = connection.execute(_GENERATION).fetchone()
    except _UNTOLD:
        return b""
    assert found is not None
    return str(found[0]).encode()


def answers(
    connection: Connection,
    asked: Sequence[Asked],
    seconds: float = BUSY_SECONDS,
) -> list[list[Row]]:
    """What several statements answer, in one pipeline: without a sync between them they are one
    transaction. None takes longer than the caller's deadline leaves."""
    limit = within_deadline(seconds)
    with answered_within(connection, limit):
        if len(asked) == 1 and limit == BUSY_SECONDS:  # as the connection is set up
            return [_asked(connection, *asked[0]).fetchall()]
        with connection.pipeline():
            if limit != BUSY_SECONDS:
                connection.execute(_WITHIN, (str(max(1, int(limit * 1000))),))
            cursors = [_asked(connection, *one) for one in asked]
        return [cursor.fetchall() for cursor in cursors]


def called(connection: Connection, calls: Sequence[str], values: Sequence[Any]) -> Row:
    """What functions of the server answer that lock a user's row. All are one statement, which is
    sent with its end: a client that is stopped between two would keep the row locked for as long as
    it stands still. So the caller's deadline is a part of it, as that of waiting for locks: that is
    what takes long."""
    limit = within_deadline(BUSY_SECONDS)
    with answered_within(connection, limit):
        text = f"SELECT {', '.join([_LOCKS_WITHIN, *calls])}"
        given = (str(max(1, int(limit * 1000))), *values)
        ((_, *answered),) = _asked(connection, text, given).fetchall()
    return tuple(answered)


def _asked(connection: Connection, sql: str, values: Values) -> psycopg.Cursor[Row]:
    text: Any = sql  # put together from constants; values never are a part of it
    return connection.cursor(binary=True).execute(text, values)
