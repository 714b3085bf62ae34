"""A queue beside the ledger: `stores.dispatch` by procrastinate, in the schema of the store.

procrastinate dispatches: one process gets each hint, by priority, and is woken by NOTIFY; its
scheduler lets periodic things happen. What may run, and once, the ledger decides. The queue holds
ids of tasks only, and may be emptied or dropped at any time.
"""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import resources
from typing import Any

import procrastinate
import psycopg
from procrastinate.periodic import PeriodicTask
from procrastinate.schema import SchemaManager
from psycopg import sql

from hardsave.errors import Misuse, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import digest
from hardsave.stores.dispatch import Hints, Periodic
from hardsave.stores.postgres.address import Address
from hardsave.stores.postgres.connections import Connection, Connections
from hardsave.stores.postgres.queue_thread import Queues, QueueThread
from hardsave.stores.postgres.translation import raise_ours

_MARK = "the queue of a store of Hardsave, by procrastinate"
_OURS = f"{_MARK} {procrastinate.__version__}"
# By a query, not by the name: a session keeps in mind for a while that there was no such table.
_NOTED = """
    SELECT coalesce(obj_description(oid, 'pg_class'), '') FROM pg_class
    WHERE relname = 'procrastinate_jobs' AND relnamespace = current_schema()::regnamespace
"""
_FILE = "queue_1.sql"
# All that procrastinate has made: it is no part of what a store keeps.
_LEFT = """
    SELECT format('DROP %s IF EXISTS %s CASCADE', kind, name) FROM (
        SELECT 'TABLE' AS kind, oid::regclass::text AS name FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
        AND relname LIKE 'procrastinate\\_%'
        UNION ALL
        SELECT 'FUNCTION', oid::regprocedure::text FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'procrastinate\\_%'
        UNION ALL
        SELECT 'TYPE', oid::regtype::text FROM pg_type
        WHERE typnamespace = current_schema()::regnamespace AND typname LIKE 'procrastinate\\_%'
        AND (typtype = 'e' OR typtype = 'c' AND typrelid IN (
            SELECT oid FROM pg_class WHERE relkind = 'c'))
    ) AS found
"""


def telling(
    connections: Connections, address: Address, user: int, hints: Hints
) -> AbstractContextManager[None] | None:
    """See `stores.dispatch.Dispatching`."""
    for each in hints.periodic:
        _check(each)
    try:
        with contextlib.suppress(Unavailable):  # its thread tries again
            install(connections, address.schema)
    except Misuse as error:
        log(__name__).warning(
            "the queue of %s cannot be made, so this process asks the ledger what is due: %s",
            address.shown,
            error,
        )
        return None
    return _telling(connections, address, user, hints)


def _check(periodic: Periodic) -> None:
    task: Any = None  # it is not called here
    found: PeriodicTask[Any, Any, Any] = PeriodicTask(task, periodic.cron, periodic.name, {})
    try:
        assert found.croniter
    except ValueError as error:
        raise Misuse(
            f"{periodic.name!r}: {periodic.cron!r} is no time as cron knows it ({error}); write "
            "'0 3 * * *' for each day at 3"
        ) from error


@contextmanager
def _telling(connections: Connections, address: Address, user: int, hints: Hints) -> Iterator[None]:
    queues = Queues(f"u{user}", tuple(hints.lanes))
    thread = QueueThread(address, queues, hints, lambda: install(connections, address.schema))
    thread.start()
    try:
        yield
    finally:
        thread.close()


def install(connections: Connections, schema: str) -> None:
    """Have procrastinate's tables in the schema of the store, and what writes into them. Those of
    another version are made anew: what they hold is written again from the ledger. Those that
    another program has made are its own: `Misuse`."""
    connection = connections.connect()
    try:
        if _noted(connection) != _OURS:
            _install(connection, schema)
    except psycopg.Error as error:
        raise_ours(error, connections.shown)
    finally:
        connection.close()


def _install(connection: Connection, schema: str) -> None:
    key = int.from_bytes(digest(f"queue {schema}".encode())[:8], "big", signed=True)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        noted = _noted(connection)
        if noted == _OURS:
            return  # another process was faster
        if noted is not None and not noted.startswith(_MARK):
            raise Misuse(
                f"schema {schema!r} holds tables of procrastinate that another program has made; "
                "give this store a schema of its own"
            )
        for (drop,) in connection.execute(_LEFT).fetchall():
            connection.execute(drop)
        connection.execute(_text(SchemaManager.get_schema()))
        connection.execute(_text(resources.files(__package__).joinpath("sql", _FILE).read_text()))
        note = sql.SQL("COMMENT ON TABLE procrastinate_jobs IS {}").format(sql.Literal(_OURS))
        connection.execute(note)
    connection.execute("SELECT queue_mend_1()")  # hints of what was there before


def _noted(connection: Connection) -> str | None:
    """What the comment on the tables says; None if there are none."""
    found = connection.execute(_NOTED).fetchone()
    return None if found is None else found[0]


def _text(statement: Any) -> Any:
    """A constant, of ours or procrastinate's."""
    return statement
