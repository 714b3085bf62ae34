"""Rows that lost what they refer to: users and timelines get names, timelines get heads.

What was salvaged may lead to objects that are gone, or come from two sources that were not
equally far. Nothing is left pointing at nothing, and whatever changes for people is said.
"""

from collections.abc import Iterable
from typing import Any

from hardsave.objects.records import Id
from hardsave.stores.sqlite import counts
from hardsave.stores.sqlite.salvage.beside_check import mend_beside, wrong_rows
from hardsave.stores.sqlite.salvage.object_check import Owned
from hardsave.stores.sqlite.salvage.rebuild import Rebuild
from hardsave.tuples import NamedTuple


class Checkpoint(NamedTuple):
    """A checkpoint that lost something, as messages name it."""

    number: int
    id: Id
    timeline: str
    seq: int

    def __str__(self) -> str:
        return f"checkpoint chk_{self.id.hex()} ({self.timeline}:{self.seq})"


class RowRepair:
    """The rows of a new file."""

    def __init__(self, salvage: Rebuild) -> None:
        self._connection = salvage.connection

    def damaged(self, broken: set[Owned]) -> list[Checkpoint]:
        """The checkpoints that lead to something that is gone."""
        if not broken:
            return []
        sql = (
            "SELECT c.user, c.root, c.snapshot, c.number, c.id, coalesce(t.name, '?'), c.seq "
            "FROM main.checkpoints AS c LEFT JOIN main.timelines AS t ON t.id = c.timeline"
        )
        rows: list[Any] = self._connection.execute(sql).fetchall()
        return [
            Checkpoint(*about)
            for user, root, snapshot, *about in rows
            if Owned(user, root) in broken or Owned(user, snapshot) in broken
        ]

    def drop(self, checkpoints: Iterable[Checkpoint]) -> None:
        for each in checkpoints:
            self._connection.execute(
                "DELETE FROM main.checkpoints WHERE number = ?", (each.number,)
            )

    def mend(self, damaged: Iterable[Checkpoint]) -> list[str]:
        """Give every row what it refers to, and every timeline a head that can be read."""
        lines = self._name_the_nameless()
        bad = {each.id for each in damaged}
        rows: list[Any] = self._connection.execute(
            "SELECT id, user, name, head, last_seq, origin FROM main.timelines"
        ).fetchall()
        for row in rows:
            lines += self._mend_timeline(_Row(*row), bad)
        lines += self._mend_tasks()
        lines += mend_beside(self._connection, list(wrong_rows(self._connection)))
        counts.count_checkpoints(self._connection)
        return lines

    def _mend_tasks(self) -> list[str]:
        """What happened to a task whose row is gone belongs to nothing any more."""
        rows: list[Any] = self._connection.execute(_HOMELESS_ENTRIES).fetchall()
        count = len({row[0] for row in rows})
        return [f"{count} tasks are gone, with all that happened to them"] if count else []

    def _name_the_nameless(self) -> list[str]:
        connection = self._connection
        connection.execute("INSERT OR IGNORE INTO main.users (id, name) VALUES (0, NULL)")
        timelines: list[Any] = connection.execute(_ORPHANS).fetchall()
        for timeline, user, moment in timelines:
            connection.execute(
                "INSERT INTO main.timelines (id, user, name, head, last_seq, created_at) "
                "VALUES (?, ?, ?, NULL, 0, ?)",
                (timeline, user, f"recovered-{timeline}", moment),
            )
        users: list[Any] = connection.execute(_HOMELESS).fetchall()
        for (user,) in users:
            sql = "INSERT INTO main.users (id, name) VALUES (?, ?)"
            connection.execute(sql, (user, f"recovered-{user}"))
        return [
            f"a timeline lost its name; it is 'recovered-{row[0]}' now" for row in timelines
        ] + [f"a user lost its name; it is 'recovered-{row[0]}' now" for row in users]

    def _mend_timeline(self, row: "_Row", bad: set[Id]) -> list[str]:
        latest: Any = self._connection.execute(
            "SELECT max(seq), id FROM main.checkpoints WHERE timeline = ?", (row.id,)
        ).fetchone()
        seq, newest = latest
        highest = max(row.last_seq, seq or 0, self._one(_LAST_STONE, (row.id,)) or 0)
        is_older = (seq or 0) > row.last_seq  # its row, than they are
        head = newest if is_older else row.head
        standing = self._readable(row, head, bad)
        if (standing, highest) == (row.head, row.last_seq):
            return []
        self._connection.execute(
            "UPDATE main.timelines SET head = ?, last_seq = ? WHERE id = ?",
            (standing, highest, row.id),
        )
        if is_older:  # what is saved on a timeline that was deleted brings it back
            sql = "UPDATE main.timelines SET deleted = 0 WHERE id = ?"
            self._connection.execute(sql, (row.id,))
        if standing == head:
            return []
        return [f"the head of timeline {row.name!r} is gone; it stands at {_named(standing)} now"]

    def _readable(self, row: "_Row", head: Id | None, bad: set[Id]) -> Id | None:
        """A head itself, its nearest ancestor, or the newest checkpoint that can be read."""
        seen: set[Id] = set()
        at = head
        while at is not None and at not in seen:
            seen.add(at)
            sql = "SELECT id, parent FROM main.checkpoints WHERE user = ? AND id = ?"
            found: Any = self._connection.execute(sql, (row.user, at)).fetchone()
            if found is None:
                break
            if at not in bad:
                return at
            at = found[1]
        if head is None:
            return None
        sql = "SELECT id FROM main.checkpoints WHERE timeline = ? ORDER BY seq DESC"
        ids: list[Any] = self._connection.execute(sql, (row.id,)).fetchall()
        for (id,) in ids:
            if id not in bad:
                return bytes(id)
        return row.origin if row.origin not in bad and self._has(row.user, row.origin) else None

    def _has(self, user: int, id: Id | None) -> bool:
        sql = "SELECT count(*) FROM main.checkpoints WHERE user = ? AND id = ?"
        return bool(self._one(sql, (user, id)))

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        return self._connection.execute(sql, values).get


class _Row(NamedTuple):
    id: int
    user: int
    name: str
    head: Id | None
    last_seq: int
    origin: Id | None


_LAST_STONE = "SELECT max(seq) FROM main.tombstones WHERE timeline = ?"
_ORPHANS = """
    SELECT timeline, user, coalesce(min(created_at), 0) FROM (
        SELECT timeline, user, created_at FROM main.checkpoints
        UNION ALL SELECT timeline, user, NULL FROM main.tombstones)
    WHERE timeline NOT IN (SELECT id FROM main.timelines) GROUP BY timeline
"""
_HOMELESS_ENTRIES = """
    DELETE FROM main.ledger WHERE task != 0 AND task NOT IN (SELECT id FROM main.tasks)
    RETURNING task
"""
_HOMELESS = """
    SELECT DISTINCT user FROM (
        SELECT user FROM main.timelines UNION SELECT user FROM main.checkpoints
        UNION SELECT user FROM main.log UNION SELECT user FROM main.tasks
        UNION SELECT user FROM main.ledger UNION SELECT user FROM main.workspaces)
    WHERE user NOT IN (SELECT id FROM main.users)
"""


def _named(id: Id | None) -> str:
    return "nothing" if id is None else f"chk_{id.hex()}"
