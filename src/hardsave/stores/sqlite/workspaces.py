"""Rows of workspaces: how they are read, and what a batch does to them.

A capture only looks whether its workspace is at the epoch that it names, and writes no row. A row
that is added, changed or removed is noted in the table `changes`, where the backup learns of it.
"""

from collections.abc import Collection, Sequence
from typing import Any

import apsw

from hardsave.objects.records import WorkspaceRecord
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.write.operations import note
from hardsave.stores.workspaces import WorkspaceMove, check_workspace

_READ = "SELECT id, host, path, epoch FROM workspaces WHERE user = ?1"
BY_ID = f"{_READ} AND id = ?2"
AT = f"{_READ} AND host = ?2 AND path = ?3 ORDER BY id LIMIT 1"
AFTER = f"{_READ} AND (host, path, id) > (?2, ?3, ?4) ORDER BY host, path, id LIMIT ?5"

_ADD = """
    INSERT INTO workspaces (user, id, host, path, epoch) VALUES (?, ?, ?, ?, ?) RETURNING number
"""
_CHANGE = """
    UPDATE workspaces SET host = ?3, path = ?4, epoch = ?5 WHERE user = ?1 AND id = ?2
    RETURNING number
"""
_FORGET = "DELETE FROM workspaces WHERE user = ? AND id = ? RETURNING number"


def apply(connection: apsw.Connection, user: int, moves: Sequence[WorkspaceMove]) -> bool:
    """Check and do what a batch says of workspaces; whether rows were written."""
    is_written = False
    for move in moves:
        become = move.become
        row: Any = connection.execute(BY_ID, (user, become.id)).fetchone()
        if row == become and move.expect == become.epoch:  # nearly always: no record is made of it
            continue
        standing = None if row is None else WorkspaceRecord._make(row)
        there = _found(connection, AT, (user, become.host, become.path))
        check_workspace(move, standing, there)
        if standing is None:
            connection.execute(schema.OF_WORKSPACES)
        sql = _ADD if standing is None else _CHANGE
        note(connection, "workspaces", _numbers(connection, sql, (user, *become)))
        is_written = True
    return is_written


def forget(connection: apsw.Connection, user: int, ids: Collection[bytes]) -> None:
    for id in ids:
        note(connection, "workspaces", _numbers(connection, _FORGET, (user, id)))


def _found(
    connection: apsw.Connection, sql: str, values: tuple[Any, ...]
) -> WorkspaceRecord | None:
    row: Any = connection.execute(sql, values).fetchone()
    return None if row is None else WorkspaceRecord._make(row)


def _numbers(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> list[int]:
    rows: list[Any] = connection.execute(sql, values).fetchall()
    return [number for (number,) in rows]
