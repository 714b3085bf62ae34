"""The rows of timelines, as a move changes them, with what is kept of their checkpoints.

A save counts its checkpoint in the statement that moves the timeline: the row is written anyway.
"""

from typing import Any

import apsw

from hardsave.objects.records import CheckpointRecord, TimelineRecord
from hardsave.stores.base import Batch, Move
from hardsave.stores.sqlite import counts

ID = "SELECT id FROM timelines WHERE user = ? AND name = ?"
_ADD = """
    INSERT INTO timelines (user, name, head, last_seq, created_at, origin, deleted, title,
                           saved, updated_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_MOVE = """
    UPDATE timelines SET head = ?, last_seq = ?, created_at = ?, origin = ?, deleted = ?
    WHERE id = ? AND head IS ? AND last_seq = ?
"""
_SAVE = """
    UPDATE timelines SET head = ?, last_seq = ?, created_at = ?, origin = ?, deleted = ?,
        updated_at = ?, saved = saved + 1
    WHERE id = ? AND head IS ? AND last_seq = ?
"""
_SET_TITLE = "UPDATE timelines SET title = ? WHERE id = ?"
_STANDING = "SELECT name, head, last_seq, created_at, origin FROM timelines WHERE id = ?"


def add(cursor: apsw.Cursor, user: int, batch: Batch, move: Move) -> bool:
    """Add a timeline; False if there is one of its name."""
    saves, updated_at = _saves(batch, move), _updated_at(batch, move)
    cursor.execute(_ADD, (user, *move.become, saves, updated_at))
    return cursor.connection.changes() > 0


def move(cursor: apsw.Cursor, row: int, batch: Batch, move: Move, expect: TimelineRecord) -> bool:
    """Move a timeline; False if it is not where it is expected."""
    become, place = move.become, (row, *expect[1:3])
    saves = _saves(batch, move)
    if saves:
        cursor.execute(_SAVE, (*become[1:6], _updated_at(batch, move), *place))
    else:
        cursor.execute(_MOVE, (*become[1:6], *place))
    if not cursor.connection.changes():
        return False
    if not saves:
        counts.change(cursor.connection, {row: 0})  # it may say that it was made at another time
    if become.title != expect.title:
        cursor.execute(_SET_TITLE, (become.title, row))
    return True


def standing(connection: apsw.Connection, row: int) -> TimelineRecord | None:
    """Where a timeline stands; None if there is no such row."""
    found: Any = connection.execute(_STANDING, (row,)).fetchone()
    return None if found is None else TimelineRecord(*found)


def _saves(batch: Batch, move: Move) -> bool:
    """Whether the event of the batch is a checkpoint of this timeline."""
    return isinstance(batch.event, CheckpointRecord) and move is batch.move


def _updated_at(batch: Batch, move: Move) -> int:
    made = move.become.created_at
    return max(made, batch.event.created_at) if _saves(batch, move) else made
