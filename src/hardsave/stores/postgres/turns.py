"""Turns that one process of all hosts has at a time: an advisory lock of a session of its own.

The server gives the lock back with the session: when the block ends, the process dies, or its host
has not been heard of for half a minute. It learns of a death a moment later: a turn that is taken
is asked for a moment longer. The note of the last holder is a row.
"""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from hardsave.objects.hashing import digest
from hardsave.stores.base import Turn
from hardsave.stores.local.turns import checked
from hardsave.stores.postgres.connections import Connection, Connections
from hardsave.stores.postgres.translation import raise_ours

_A_MOMENT = "250ms"  # for the server to learn that a process is dead
_READ = "SELECT note FROM turns WHERE name = %s"
_WRITE = """
    INSERT INTO turns (name, note) VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET note = excluded.note
"""


class PostgresTurn:
    """One that this process has. Its note is written in the session that holds the lock: one that
    has lost it writes nothing."""

    def __init__(self, connection: Connection, name: str, shown: str) -> None:
        self._connection = connection
        self._name = name
        self._shown = shown

    def read(self) -> bytes:
        found: Any = self._do(_READ, self._name).fetchone()
        return b"" if found is None else bytes(found[0])

    def write(self, note: bytes) -> None:
        self._do(_WRITE, self._name, checked(note))

    def _do(self, sql: str, *values: object) -> psycopg.Cursor[Any]:
        text: Any = sql
        try:
            return self._connection.execute(text, values)
        except psycopg.Error as error:
            raise_ours(error, self._shown)


@contextmanager
def server_turn(connections: Connections, store_id: bytes, name: str) -> Iterator[Turn | None]:
    """The turn of this name; None if another process, or another caller in this one, has it."""
    key = int.from_bytes(digest(store_id + name.encode())[:8], "big", signed=True)
    connection = connections.connect()
    try:
        try:
            has_it = _is_taken(connection, key)
        except psycopg.Error as error:
            raise_ours(error, connections.shown)
        yield PostgresTurn(connection, name, connections.shown) if has_it else None
    finally:
        _give_back(connection)


def _is_taken(connection: Connection, key: int) -> bool:
    if connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone() == (True,):
        return True
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", (_A_MOMENT,))
            connection.execute("SELECT pg_advisory_lock(%s)", (key,))
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def _give_back(connection: Connection) -> None:
    """Before the session ends, which the server learns of a moment later."""
    with contextlib.suppress(psycopg.Error):  # a session that is lost has given it back
        connection.execute("SELECT pg_advisory_unlock_all()")
    connection.close()
