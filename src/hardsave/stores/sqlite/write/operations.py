"""What operations change: hide and show, drop, move several timelines, import.

All of it runs inside the writer's transaction. A change or removal of rows that were there before
is also noted in the table `changes`, where the backup learns of it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any

import apsw

from hardsave.errors import Conflict
from hardsave.objects.records import CheckpointRecord, Id, Tombstone
from hardsave.stores.base import Changes, CheckpointGone
from hardsave.stores.sqlite import schema

MAX_GAP = 64  # numbers this close are noted as one range: the backup copies a few rows too many

_SET_PLACE = """
    UPDATE checkpoints SET name = ?, kind = ?, status = ?, description = ?, metadata = ?, root = ?,
                           snapshot = ?, workspace = ?, task = ?, generation = ?, attempt = ?,
                           summary = ?
    WHERE user = ? AND id = ? RETURNING number
"""
_HIDE = """
    UPDATE checkpoints SET hidden = ? WHERE user = ? AND id = ? AND hidden <= 0
    RETURNING number, timeline
"""
_TURN = """
    UPDATE checkpoints SET hidden = -hidden WHERE user = ? AND hidden = ?
    RETURNING number, timeline
"""
_BURY = """
    INSERT INTO tombstones (number, user, id, timeline, seq, parent)
    SELECT number, user, id, timeline, seq, parent FROM checkpoints WHERE user = ? AND id = ?
"""
_DROP = """
    DELETE FROM checkpoints WHERE user = ? AND id = ? RETURNING number, timeline, hidden <= 0
"""
_DROP_LABELS = f"""
    DELETE FROM labels
    WHERE id >= ?1 << {schema.LABEL_BITS} AND id < (?1 + 1) << {schema.LABEL_BITS} RETURNING id
"""  # noqa: S608 # put together from constants only
_DROP_NOTES = "DELETE FROM notes WHERE checkpoint = ? RETURNING id"
_ADD = """
    INSERT INTO checkpoints (number, user, id, timeline, seq, parent, created_at,
                             name, kind, status, description, metadata, root,
                             snapshot, workspace, task, generation, attempt, summary, branch)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
            {0})
"""
_IS_A_BRANCH = """
    CASE WHEN ?6 IS NOT NULL AND ?6 IS NOT (
        SELECT id FROM checkpoints WHERE timeline = ?4 AND seq = ?5 - 1) THEN 1 END
"""
_ADD_CHECKPOINT = _ADD.format(_IS_A_BRANCH)
_ADD_SUCCESSOR = _ADD.format("NULL")  # of one that is known to be right after its parent
Shown = Counter[int]  # how many more checkpoints, or fewer, can be seen on a timeline


class Recognised(Exception):
    """The event of a batch is stored already, under this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def add_checkpoint(cursor: apsw.Cursor, values: tuple[Any, ...], *, goes_on: bool) -> None:
    """Add the checkpoint of a batch; `goes_on`: it comes right after its parent.

    A save that moves its timeline on as it expects is not looked up before. So an id that another
    timeline has, or that comes again after the timeline moved, is met here: `Recognised`.
    """
    try:
        cursor.execute(_ADD_SUCCESSOR if goes_on else _ADD_CHECKPOINT, values)
    except apsw.ConstraintError:
        _, user, id, *_ = values
        if done := number_of(cursor.connection, user, id):
            raise Recognised(done) from None
        raise


def check(connection: apsw.Connection, user: int, changes: Changes) -> None:
    """Raise `Conflict` if something does not hold that the changes rely on."""
    latest: Any = connection.execute("SELECT max(number) FROM log WHERE user = ?", (user,)).get
    if changes.latest is not None and (latest or 0) > changes.latest:
        raise Conflict("another operation has been logged meanwhile")
    for id in changes.keeps:
        if number_of(connection, user, id) is None:
            raise CheckpointGone(f"checkpoint {id.hex()} was dropped meanwhile")


def add_checkpoints(
    connection: apsw.Connection,
    user: int,
    first: int,
    records: Iterable[CheckpointRecord],
    shown: Shown,
) -> int:
    """Add checkpoints to timelines that are there; the number after the last one's."""
    for record in records:
        timeline = timeline_of(connection, user, record.timeline)
        values = (first, user, record.id, timeline, *record[3:-1])
        connection.execute(_ADD_CHECKPOINT, values)
        shown[timeline] += 1
        sql = "DELETE FROM tombstones WHERE user = ? AND id = ? RETURNING number"
        note(connection, "checkpoints", _returned(connection, sql, (user, record.id)))
        first += 1
    return first


def add_tombstones(
    connection: apsw.Connection, user: int, first: int, stones: Iterable[Tombstone]
) -> int:
    """Add tombstones of checkpoints that never were here; the number after the last one's."""
    for stone in stones:
        if number_of(connection, user, stone.id) is None:
            timeline = timeline_of(connection, user, stone.timeline)
            connection.execute(
                "INSERT OR IGNORE INTO tombstones (number, user, id, timeline, seq, parent) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (first, user, stone.id, timeline, stone.seq, stone.parent),
            )
        first += 1
    return first


def apply(connection: apsw.Connection, user: int, changes: Changes, by: int, shown: Shown) -> None:
    """Hide, show, replace and drop, as commit `by`."""
    touched: list[int] = []
    for id in changes.hide:
        touched += _turned(connection, _HIDE, (by, user, id), shown, -1)
    for number in changes.show:
        touched += _turned(connection, _TURN, (user, number), shown, 1)
    for number in changes.hide_again:
        touched += _turned(connection, _TURN, (user, -number), shown, -1)
    for record in changes.replace:
        touched += _returned(connection, _SET_PLACE, (*record[6:-1], user, record.id))
    if changes.replace:
        # A root has changed under a number that a collector at work has looked at already.
        connection.execute("UPDATE users SET swept = swept + 1 WHERE id = ?", (user,))
    touched += _drop(connection, user, changes.drop, shown)
    note(connection, "checkpoints", touched)
    if changes.purges:
        connection.execute("UPDATE users SET purged = ? WHERE id = ?", (by, user))
        note(connection, "users", [user])
    if changes.forget_log:
        values = (user, changes.forget_log)
        sql = "DELETE FROM log WHERE user = ? AND number <= ? RETURNING number"
        note(connection, "log", _returned(connection, sql, values))


def _turned(
    connection: apsw.Connection, sql: str, values: tuple[Any, ...], shown: Shown, more: int
) -> list[int]:
    rows: list[Any] = connection.execute(sql, values).fetchall()
    for _, timeline in rows:
        shown[timeline] += more
    return [number for number, _ in rows]


def _drop(connection: apsw.Connection, user: int, ids: Collection[Id], shown: Shown) -> list[int]:
    if not ids:
        return []
    rows: list[Any] = connection.execute(
        "SELECT head, name FROM timelines WHERE user = ?", (user,)
    ).fetchall()
    for head, name in rows:
        if head in ids:
            raise Conflict(f"checkpoint {head.hex()} is the head of timeline {name!r} by now")
    gone: list[int] = []
    for id in ids:
        connection.execute(_BURY, (user, id))
        dropped: list[Any] = connection.execute(_DROP, (user, id)).fetchall()
        for number, timeline, was_shown in dropped:
            gone.append(number)
            shown[timeline] -= was_shown
    for table, sql in (("labels", _DROP_LABELS), ("notes", _DROP_NOTES)):
        if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get:  # noqa: S608
            note(
                connection,
                table,
                [id for each in gone for id in _returned(connection, sql, (each,))],
            )
    return gone


def note(connection: apsw.Connection, what: str, numbers: Iterable[int]) -> None:
    """Tell the backup that these rows have changed or gone."""
    rows = [(what, low, high) for low, high in ranges(numbers)]
    connection.executemany("INSERT INTO changes (what, low, high) VALUES (?, ?, ?)", rows)


def ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Numbers as a few ranges that hold all of them, and not many others."""
    ordered = sorted(set(numbers))
    if not ordered:
        return
    low = ordered[0]
    for one, following in pairwise(ordered):
        if following - one > MAX_GAP:
            yield low, one
            low = following
    yield low, ordered[-1]


def timeline_of(connection: apsw.Connection, user: int, name: str) -> int:
    """The row of a timeline that must be there."""
    sql = "SELECT id FROM timelines WHERE user = ? AND name = ?"
    found = connection.execute(sql, (user, name)).get
    if found is None:
        raise Conflict(f"timeline {name!r} does not exist")
    return int(found)


def number_of(connection: apsw.Connection, user: int, id: Id) -> int | None:
    """The commit of a checkpoint, if it is there."""
    sql = "SELECT number FROM checkpoints WHERE user = ? AND id = ?"
    found = connection.execute(sql, (user, id)).get
    return None if found is None else int(found)


def _returned(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> list[int]:
    rows: list[Any] = connection.execute(sql, values).fetchall()
    return [row[0] for row in rows]
