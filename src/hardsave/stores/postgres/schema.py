"""The schema of a store: made when it is first opened, and brought up to date under a lock.

A migration only adds: a process that has an older Hardsave open goes on with the functions that it
knows. A store from a newer Hardsave is refused untouched.
"""

import secrets
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql

from hardsave.errors import Misuse, NotFound
from hardsave.objects.hashing import digest
from hardsave.stores.postgres.connections import Connection, Connections
from hardsave.stores.postgres.translation import raise_ours

# What each version adds to the one before, in order; files of the folder `sql`.
MIGRATIONS = (("tables_1.sql", "work_1.sql", "changes_1.sql", "refusals_1.sql", "commit_1.sql"),)
VERSION = len(MIGRATIONS)
OLDEST_SERVER = 140000  # version 14
_ID_BYTES = 16
_ABOUT = "SELECT current_setting('server_encoding'), pg_backend_pid()"
# Read as rows: what a session has looked up by name it may remember, also that it was not there.
_LOOK = """
    SELECT EXISTS (
        SELECT 1 FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = 'store')
"""


def prepare(connections: Connections, schema: str, *, read_only: bool) -> bytes:
    """Have the store there, in the form that this version knows; its id."""
    connection = connections.connect()
    try:
        _check_server(connections, connection)
        version = _version(connection, schema, connections.shown)
        if version < VERSION:
            if read_only:
                raise NotFound(f"{connections.shown} has no store that is up to date to read from")
            _migrate(connection, schema, connections.shown)
        found = connection.execute("SELECT id FROM store").fetchone()
        assert found is not None
        return bytes(found[0])
    except psycopg.Error as error:
        raise_ours(error, connections.shown)
    finally:
        connection.close()


def _check_server(connections: Connections, connection: Connection) -> None:
    shown = connections.shown
    if connection.info.server_version < OLDEST_SERVER:
        raise Misuse(f"the server of {shown} is older than PostgreSQL 14; upgrade it")
    found = connection.execute(_ABOUT).fetchone()
    assert found is not None
    encoding, pid = found
    if encoding != "UTF8":
        raise Misuse(f"the database of {shown} is not encoded in UTF8; create one that is")
    if pid != connection.info.backend_pid:
        _check_pooler(connections, connection, pid)


def _check_pooler(connections: Connections, connection: Connection, pid: int) -> None:
    """A pooler is in between. One that gives a connection of its own to another client after each
    transaction would give away settings and locks of ours."""
    with connections.connect() as other, other.transaction():
        pids = [each.execute(_ABOUT).fetchone() for each in (other, connection)]
    if [pid == found[1] for found in pids if found is not None] != [False, True]:
        raise Misuse(
            f"a pooler in front of {connections.shown} shares sessions between its clients; give "
            "this store one with pool_mode = session, or name the server itself"
        )


def _version(connection: Connection, schema: str, shown: str) -> int:
    """How many migrations it has been through; 0 if there is no store."""
    if connection.execute(_LOOK, (schema,)).fetchone() != (True,):
        return 0
    found = connection.execute("SELECT version FROM store").fetchone()
    version = 0 if found is None else int(found[0])
    if version > VERSION:
        raise Misuse(
            f"{shown} was written by a newer Hardsave (schema {version}, this one knows "
            f"{VERSION}); upgrade Hardsave to open it"
        )
    return version


def _migrate(connection: Connection, schema: str, shown: str) -> None:
    """One process of all hosts does it; the others wait, and find it done."""
    key = int.from_bytes(digest(f"migrate {schema}".encode())[:8], "big", signed=True)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        before = _version(connection, schema, shown)
        if before == 0:
            _create(connection, schema)
        for files in MIGRATIONS[before:]:
            for name in files:
                connection.execute(_read(name))
        if before == 0:
            values = (VERSION, secrets.token_bytes(_ID_BYTES))
            connection.execute("INSERT INTO store (version, id) VALUES (%s, %s)", values)
        else:
            connection.execute("UPDATE store SET version = %s", (VERSION,))


def _create(connection: Connection, schema: str) -> None:
    """A schema that its owner has made beforehand is fine: not every user may make one."""
    there = connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone()
    if there == (None,):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))


def _read(name: str) -> Any:
    return resources.files(__package__).joinpath("sql", name).read_bytes()
