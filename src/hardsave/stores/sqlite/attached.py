"""Labels and notes: small rows that belong to checkpoints, and go with them.

A label's id is the number of its checkpoint, shifted, and a position: so labels of new checkpoints
come after all others, and the backup finds them as it finds the checkpoints. A note may come later;
the backup learns of it from the table `changes`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from hardsave.objects.records import Id, Labels, Note
from hardsave.stores.base import Batch, CheckpointGone
from hardsave.stores.sqlite.schema import LABEL_BITS
from hardsave.stores.sqlite.write import operations

_NUMBER = "SELECT number FROM checkpoints WHERE user = ? AND id = ?"
_DROP_LABELS = f"""
    DELETE FROM labels WHERE id >= ?1 << {LABEL_BITS} AND id < (?1 + 1) << {LABEL_BITS} RETURNING id
"""  # noqa: S608 # put together from constants only
_ADD_LABEL = "INSERT INTO labels (id, user, key, value) VALUES (?, ?, ?, ?)"
_ADD_NOTE = "INSERT INTO notes (user, checkpoint, key, data) VALUES (?, ?, ?, ?) ON CONFLICT "
_REPLACE = _ADD_NOTE + "(checkpoint, key) DO UPDATE SET data = excluded.data RETURNING id"
_KEEP = _ADD_NOTE + "DO NOTHING RETURNING id"

_REMOVE = "DELETE FROM notes WHERE checkpoint = ? AND key = ? RETURNING id"

MANY = 500  # checkpoints that one statement is about
_LABELS = f"""
    SELECT c.id, l.key, l.value FROM checkpoints AS c CROSS JOIN labels AS l
    ON l.id >= c.number << {LABEL_BITS} AND l.id < (c.number + 1) << {LABEL_BITS}
    WHERE c.user = ? AND c.id IN ({{}}) ORDER BY l.id
"""  # noqa: S608 # put together from constants only
_NOTES = """
    SELECT c.id, n.key, n.data FROM checkpoints AS c CROSS JOIN notes AS n
    ON n.checkpoint = c.number WHERE c.user = ? AND c.id IN ({}) ORDER BY n.id
"""
# A look into the index for each checkpoint of a timeline: its labels lie side by side there.
_HAS = f"""
    EXISTS (SELECT 1 FROM labels AS l
            WHERE l.user = c.user AND l.key = ? AND l.value = ?
            AND l.id >= c.number << {LABEL_BITS} AND l.id < (c.number + 1) << {LABEL_BITS})
"""  # noqa: S608 # put together from constants only
# The first label by the index, newest first; the others are looked up for each.
LABELLED = f"""
    SELECT {{columns}} FROM labels AS f
    CROSS JOIN checkpoints AS c ON c.number = f.id >> {LABEL_BITS}
    WHERE f.user = ? AND f.key = ? AND f.value = ? AND (? IS NULL OR f.id < ? << {LABEL_BITS})
    AND c.hidden <= 0{{others}} ORDER BY f.id DESC LIMIT ?
"""  # noqa: S608 # put together from constants only


def labels_of(count: int) -> str:
    """The statement that reads the labels of so many checkpoints, each with its id."""
    return _LABELS.format(", ".join("?" * count))


def notes_of(count: int) -> str:
    return _NOTES.format(", ".join("?" * count))


def having(labels: Labels) -> tuple[str, list[str]]:
    """The condition that a checkpoint `c` has all of these, and its values."""
    sql = "".join(f" AND {_HAS}" for _ in labels)
    return sql, [text for label in labels for text in label]


def apply(connection: apsw.Connection, user: int, batch: Batch, number: int) -> None:
    """The labels and notes of a batch whose event got `number`."""
    changes = batch.changes
    first = number - len(changes.checkpoints) - len(changes.tombstones)  # of what the batch adds
    for id, labels in batch.labels.items():
        found = _number(connection, user, id)
        if found is not None:
            _set_labels(connection, user, found, labels, is_new=found >= first)
    for id, notes in batch.notes.items():
        found = _number(connection, user, id)
        if found is not None:
            _add_notes(connection, user, found, notes, _REPLACE)


def put_notes(
    connection: apsw.Connection, user: int, id: Id, notes: Sequence[Note], *, replace: bool
) -> None:
    number = _number(connection, user, id)
    if number is None:
        raise CheckpointGone(f"there is no checkpoint {id.hex()} to put notes on")
    _add_notes(connection, user, number, notes, _REPLACE if replace else _KEEP)


def _set_labels(
    connection: apsw.Connection, user: int, number: int, labels: Labels, *, is_new: bool
) -> None:
    base = number << LABEL_BITS
    gone = [] if is_new else _returned(connection, _DROP_LABELS, (number,))
    rows = [(base + at, user, *label) for at, label in enumerate(labels)]
    connection.executemany(_ADD_LABEL, rows)
    if not is_new:
        operations.note(connection, "labels", [*gone, *(row[0] for row in rows)])


def _add_notes(
    connection: apsw.Connection, user: int, number: int, notes: Iterable[Note], sql: str
) -> None:
    touched: list[int] = []
    for key, data in notes:
        if data:
            touched += _returned(connection, sql, (user, number, key, data))
        else:
            touched += _returned(connection, _REMOVE, (number, key))
    operations.note(connection, "notes", touched)


def _number(connection: apsw.Connection, user: int, id: Id) -> int | None:
    found = connection.execute(_NUMBER, (user, id)).get
    return None if found is None else int(found)


def _returned(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> list[int]:
    rows: list[Any] = connection.execute(sql, values).fetchall()
    return [row[0] for row in rows]
