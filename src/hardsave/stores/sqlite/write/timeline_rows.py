"""The rows of timelines, as a move changes them, with what is kept of their checkpoints.

A save counts its checkpoint in the statement that moves the timeline: the row is written anyway.
That statement also finds out whether the new checkpoint comes right after its parent, as nearly
every one does: the timeline was not moved since the last save on it. Otherwise that is looked up.
"""

from typing import Any, Literal

import apsw

from hardsave.objects.records import CheckpointRecord, TimelineRecord
from hardsave.stores.base import Batch, Move
from hardsave.stores.sqlite import counts

ID = "SELECT id FROM timelines WHERE user = ? AND name = ?"
_ADD = """
    INSERT INTO timelines (user, name, head, last_seq, created_at, origin, deleted, title,
                           saved, updated_at, moved)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, NOT ?9) ON CONFLICT DO NOTHING
"""
_MOVE = """
    UPDATE timelines SET head = ?, last_seq = ?, created_at = ?, origin = ?, deleted = ?,
        moved = 1
    WHERE id = ? AND head IS ? AND last_seq = ?
"""
_SAVE = """
    UPDATE timelines SET head = ?, last_seq = ?, created_at = ?, origin = ?, deleted = ?,
        updated_at = ?, saved = saved + 1, moved = 0
    WHERE id = ? AND head IS ? AND last_seq = ?
"""
_SAVE_RIGHT_AFTER = f"{_SAVE} AND NOT moved"
_SET_TITLE = "UPDATE timelines SET title = ? WHERE id = ?"
_STANDING = "SELECT name, head, last_seq, created_at, origin FROM timelines WHERE id = ?"


Outcome = Literal["elsewhere", "moved", "goes on"]
"""Where a move has met its timeline. It "goes on" with a save right after the one before."""


def add(cursor: apsw.Cursor, user: int, batch: Batch, move: Move) -> Outcome:
    """Add a timeline, unless there is one of its name."""
    event, updated_at = batch.event, move.become.created_at
    saves = isinstance(event, CheckpointRecord) and move is batch.move
    if saves:
        updated_at = max(updated_at, event.created_at)
    cursor.execute(_ADD, (user, *move.become, saves, updated_at))
    return "moved" if cursor.connection.changes() else "elsewhere"


def move(
    cursor: apsw.Cursor, row: int, batch: Batch, move: Move, expect: TimelineRecord
) -> Outcome:
    """Move a timeline, unless its head or number is not as expected."""
    become, place = move.become, (row, *expect[1:3])
    connection, event = cursor.connection, batch.event
    outcome: Outcome = "moved"
    if isinstance(event, CheckpointRecord) and move is batch.move:
        values = (*become[1:6], max(become.created_at, event.created_at), *place)
        follows = event.parent == expect.head and event.seq == expect.last_seq + 1
        if follows:
            cursor.execute(_SAVE_RIGHT_AFTER, values)
        if follows and connection.changes():
            outcome = "goes on"
        else:
            cursor.execute(_SAVE, values)
            outcome = "moved" if connection.changes() else "elsewhere"
    else:
        cursor.execute(_MOVE, (*become[1:6], *place))
        if not connection.changes():
            return "elsewhere"
        counts.change(connection, {row: 0})  # it may say that it was made at another time
    if become.title != expect.title and outcome != "elsewhere":
        cursor.execute(_SET_TITLE, (become.title, row))
    return outcome


def standing(connection: apsw.Connection, row: int) -> TimelineRecord | None:
    """A timeline as it is now; None if there is no such row."""
    found: Any = connection.execute(_STANDING, (row,)).fetchone()
    return None if found is None else TimelineRecord(*found)
