"""Counts that are kept, so that no list and no `stats` has to count rows.

- `timelines.saved` and `updated_at`: a save changes them with the row that it changes anyway, an
  operation by what it has hidden, shown, added and dropped (see `write.operations`).
- `users.objects`, `object_bytes` and `pack_bytes`: of the packs up to `indexed`, those that were
  merged. Triggers keep them when any part of the store rewrites or removes packs. The packs above
  `indexed` are few, and counted when a caller asks. Only compaction inserts packs at or below
  `indexed`, and counts them.
- `checkpoints.branch`: whether the parent is another than the checkpoint right before it. Where
  `timelines.moved` is 0 the head is the checkpoint saved last, and the next save needs no look.
"""

# ruff: noqa: S608 # names of attached databases are our own

from collections.abc import Mapping
from typing import Any

import apsw

MOST_LINES = 20  # of one kind of fault
OF_THIS_FILE = ("objects", "object_bytes", "pack_bytes", "compacted")
"""Columns of `users` that speak of this file's packs, and are not copied."""

KEEP_PACK_COUNTS = """
    CREATE TRIGGER packs_indexed AFTER UPDATE OF indexed ON users BEGIN
        UPDATE users SET (objects, object_bytes, pack_bytes) = (
            SELECT users.objects + coalesce(sum(length(directory) / 24), 0),
                   users.object_bytes + coalesce(sum(size), 0),
                   users.pack_bytes + coalesce(sum(length(directory) + length(body)), 0)
            FROM packs WHERE id > max(OLD.indexed, NEW.id << 40) AND id <= NEW.indexed)
        WHERE id = NEW.id;
    END;
    CREATE TRIGGER packs_removed AFTER DELETE ON packs BEGIN
        UPDATE users SET objects = objects - length(OLD.directory) / 24,
            object_bytes = object_bytes - OLD.size,
            pack_bytes = pack_bytes - length(OLD.directory) - length(OLD.body)
        WHERE id = OLD.id >> 40 AND indexed >= OLD.id;
    END;
    CREATE TRIGGER packs_rewritten AFTER UPDATE OF size, directory, body ON packs BEGIN
        UPDATE users SET
            objects = objects + (length(NEW.directory) - length(OLD.directory)) / 24,
            object_bytes = object_bytes + NEW.size - OLD.size,
            pack_bytes = pack_bytes + length(NEW.directory) + length(NEW.body)
                - length(OLD.directory) - length(OLD.body)
        WHERE id = OLD.id >> 40 AND indexed >= OLD.id;
    END;
"""
_OF_PACKS = """
    SELECT coalesce(sum(length(directory) / 24), 0), coalesce(sum(size), 0),
           coalesce(sum(length(directory) + length(body)), 0)
    FROM {0}.packs WHERE id > users.id << 40 AND id <= users.indexed
"""
_OF_TIMELINE = """
    SELECT count(*) FROM {0}.checkpoints AS c WHERE c.timeline = timelines.id AND c.hidden <= 0
"""
_NEWEST = """
    SELECT max(timelines.created_at, coalesce((
        SELECT c.created_at FROM {0}.checkpoints AS c
        WHERE c.timeline = timelines.id AND c.hidden <= 0 ORDER BY c.seq DESC LIMIT 1), 0))
"""
_PREDECESSOR = (
    "SELECT p.id FROM checkpoints AS p WHERE p.timeline = c.timeline AND p.seq = c.seq - 1"
)
_ADD_PACKS = """
    UPDATE users SET (objects, object_bytes, pack_bytes) = (
        SELECT users.objects + sum(length(directory) / 24), users.object_bytes + sum(size),
               users.pack_bytes + sum(length(directory) + length(body))
        FROM packs WHERE packs.id BETWEEN ?2 AND ?3)
    WHERE id = ?1
"""
_COUNT_PACKS = f"""
    UPDATE users SET (objects, object_bytes, pack_bytes) = ({_OF_PACKS.format("main")})
"""
_COUNT_CHECKPOINTS = f"""
    UPDATE timelines SET saved = ({_OF_TIMELINE.format("main")}),
                         updated_at = ({_NEWEST.format("main")}), moved = 1
"""
_FIND_BRANCHES = f"""
    UPDATE checkpoints AS c SET branch = 1
    WHERE c.parent IS NOT NULL AND c.parent IS NOT ({_PREDECESSOR})
"""
_CHANGE_SAVED = f"""
    UPDATE timelines SET saved = saved + ?, updated_at = ({_NEWEST.format("main")}) WHERE id = ?
"""
STATS = """
    WITH waiting (user, objects, object_bytes, pack_bytes) AS MATERIALIZED (
        SELECT u.id, coalesce(sum(length(p.directory) / 24), 0), coalesce(sum(p.size), 0),
               coalesce(sum(length(p.directory) + length(p.body)), 0)
        FROM users AS u LEFT JOIN packs AS p
            ON p.id > max(u.indexed, u.id << 40) AND p.id < (u.id + 1) << 40
        GROUP BY u.id)
    SELECT (SELECT count(*) FROM timelines WHERE user = ?1 AND NOT deleted),
           (SELECT coalesce(sum(saved), 0) FROM timelines WHERE user = ?1),
           u.objects + w.objects, u.object_bytes + w.object_bytes, u.pack_bytes + w.pack_bytes,
           (SELECT sum(pack_bytes) FROM users) + (SELECT sum(pack_bytes) FROM waiting)
    FROM users AS u JOIN waiting AS w ON w.user = u.id WHERE u.id = ?1
"""
_WRONG_USERS = f"""
    SELECT id FROM {{0}}.users WHERE (objects, object_bytes, pack_bytes) IS NOT ({_OF_PACKS})
"""
_WRONG_TIMELINES = f"""
    SELECT name FROM {{0}}.timelines
    WHERE (saved, updated_at) IS NOT (SELECT ({_OF_TIMELINE}), ({_NEWEST}))
       OR (NOT moved AND head IS NOT (
            SELECT c.id FROM {{0}}.checkpoints AS c
            WHERE c.timeline = timelines.id AND c.seq = timelines.last_seq))
"""
_WRONG_BRANCHES = """
    SELECT c.id FROM {0}.checkpoints AS c
    WHERE c.branch IS NULL AND c.parent IS NOT NULL
      AND c.parent IS NOT (SELECT p.id FROM {0}.checkpoints AS p
                           WHERE p.timeline = c.timeline AND p.seq = c.seq - 1)
      AND NOT EXISTS (SELECT 1 FROM {0}.tombstones AS p
                      WHERE p.timeline = c.timeline AND p.seq = c.seq - 1 AND p.id = c.parent)
"""


def count_packs(connection: apsw.Connection) -> None:
    """Of a file that was written without these counts."""
    connection.execute(_COUNT_PACKS)


def add_packs(connection: apsw.Connection, user: int, first: int, last: int) -> None:
    """Packs between two ids were inserted among those that are indexed."""
    connection.execute(_ADD_PACKS, (user, first, last))


def count_checkpoints(connection: apsw.Connection) -> None:
    """Of a file that was written without these counts, or put together from several."""
    connection.execute(_COUNT_CHECKPOINTS)
    connection.execute(_FIND_BRANCHES)


def change(connection: apsw.Connection, timelines: Mapping[int, int]) -> None:
    """So many checkpoints more, or fewer, can be seen on these timelines; which of them is the
    newest is looked up."""
    rows = [(more, timeline) for timeline, more in timelines.items()]
    connection.executemany(_CHANGE_SAVED, rows)


def faults(connection: apsw.Connection, name: str = "main") -> list[str]:
    """Counts of a database, attached as `name`, that are not what there is."""
    users: list[Any] = connection.execute(_WRONG_USERS.format(name)).fetchall()
    timelines: list[Any] = connection.execute(_WRONG_TIMELINES.format(name)).fetchall()
    lines = [f"the counts kept of the packs of user {user} are wrong" for (user,) in users]
    if timelines:
        some, more = timelines[0][0], len(timelines) - 1
        others = f", and of {more} more," if more else ""
        lines.append(f"the counts kept of timeline {some!r}{others} are wrong")
    branches: list[Any] = connection.execute(_WRONG_BRANCHES.format(name)).fetchall()
    return lines + [
        f"checkpoint {id.hex()} is not found by its parent: it is not noted as a branch"
        for (id,) in branches[:MOST_LINES]
    ]
