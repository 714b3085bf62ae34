"""The ledger in SQLite: what a batch does to tasks, inside the writer's transaction.

A task's row is changed in place; the backup learns of it by the entry that goes with every
change, or, where there is none, by a note in the table `changes`.
"""

from typing import Any

import apsw

from hardsave.errors import Conflict, LeaseLost, NotFound
from hardsave.objects.records import EntryRecord, Id, OwnerRecord, TaskRecord
from hardsave.stores.base import Batch
from hardsave.stores.ledger import (
    NO_WORK,
    OVERTAKEN,
    RECLAIMED,
    Fence,
    Latest,
    TaskMove,
    TaskQuery,
    Work,
    first_unmet,
    lost_message,
)
from hardsave.stores.sqlite.connection import zeroing
from hardsave.stores.sqlite.schema import LAST_NUMBER, last_number
from hardsave.stores.sqlite.write.operations import note

LEDGER_ITSELF = 0  # in the place of a task: the entry is about the ledger as a whole

_PAST_ALL = (1 << 63) - 1  # above the place of every task
COLUMNS = (
    "name, text, key, state, priority, created_at, epoch, generation, attempts, max_attempts, "
    "not_before, due, after, waits_for, owner, started_at, ended_at, done, total, error, result, "
    "question, metadata"
)
READ = f"{COLUMNS}, id"
_COUNT = len(TaskRecord._fields) - 1  # all but its place, which is the id
_ADD_TASK = f"""
    INSERT INTO tasks (user, {COLUMNS}) VALUES (?{", ?" * _COUNT})
    ON CONFLICT DO NOTHING RETURNING id
"""  # noqa: S608 # put together from constants only
_MOVE_TASK = """
    UPDATE tasks SET state = ?, epoch = ?, generation = ?, attempts = ?, max_attempts = ?,
        not_before = ?, due = ?, waits_for = ?, owner = ?, started_at = ?, ended_at = ?,
        done = ?, total = ?, error = ?, result = ?, question = ?
    WHERE user = ? AND name = ? AND epoch = ? RETURNING id
"""  # what never changes is left out: every column named costs its indexes
_ADD_ENTRY = f"""
    INSERT INTO ledger (number, user, id, task, kind, generation, epoch, created_at, step, data)
    VALUES (coalesce(?, 1 + ({LAST_NUMBER.format("main")})), ?, ?, ?, ?, ?, ?, ?, ?, ?)
    RETURNING number
"""  # noqa: S608 # put together from constants only
_ADD_STEP = """
    INSERT INTO ledger (number, user, id, task, kind, generation, epoch, created_at, step, data)
    SELECT ?1, user, ?2, id, ?3, ?4, ?5, ?6, ?7, ?8 FROM tasks
    WHERE user = ?9 AND name = ?10 AND epoch = ?11 ON CONFLICT (task, user, id) DO NOTHING
"""  # the fence is the question which task it is: one statement for both
_HOLD = """
    INSERT INTO owners (id, user, session, host, boot, space, pid, pid_started, since, until, clock)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (user, id) DO UPDATE SET until = excluded.until, clock = excluded.clock
"""
_RENEW = "UPDATE owners SET until = ?, clock = ? WHERE user = ? AND id = ? RETURNING 1"
_WAITING = f"SELECT {READ} FROM tasks WHERE user = ? AND waits_for = ?"  # noqa: S608
_FREE = f"""
    SELECT {READ} FROM tasks
    WHERE user = ? AND state = 'pending' AND after != '' AND waits_for IS NULL
        AND question IS NULL
"""  # noqa: S608 # put together from constants only
_TRIM = """
    DELETE FROM ledger WHERE task = 0 AND user = ?1
        AND number <= (SELECT number FROM ledger WHERE task = 0 AND user = ?1
                       ORDER BY number DESC LIMIT 1 OFFSET ?2)
        AND number NOT IN (SELECT max(number) FROM ledger WHERE task = 0 AND user = ?1
                           GROUP BY kind)
    RETURNING number
"""
_ENTRY = "number, id, ?2, kind, generation, epoch, created_at, step, data"
_OF_TASK = "task = (SELECT id FROM tasks WHERE user = ?1 AND name = ?2)"
# Each part is answered by one index alone, and only the rows that are wanted are read: the first
# as a short range, the second by a look at all whose time has come.
DUE = f"""
    SELECT {READ} FROM tasks WHERE id IN (
        SELECT id FROM (SELECT id FROM tasks
            WHERE user = ?1 AND state = 'pending' AND due = 0
            ORDER BY priority DESC, id LIMIT ?3)
        UNION ALL
        SELECT id FROM (SELECT id FROM tasks
            WHERE user = ?1 AND state = 'pending' AND due > 0 AND due <= ?2
            ORDER BY priority DESC, id LIMIT ?3))
    ORDER BY priority DESC, id LIMIT ?3
"""  # noqa: S608 # put together from constants only
# By that index, and no other: it passes over those whose time is far from what is asked for.
RETRIES = f"""
    SELECT {READ} FROM tasks INDEXED BY tasks_due
    WHERE user = ?1 AND state = 'pending' AND due > ?2 AND due <= ?3 AND attempts > 0 AND id > ?4
    ORDER BY id LIMIT ?5
"""  # noqa: S608 # put together from constants only
ENTRIES = f"""
    SELECT {_ENTRY} FROM ledger
    WHERE {_OF_TASK} AND step IS NULL AND number > ?3 ORDER BY number LIMIT ?4
"""  # noqa: S608 # put together from constants only
ENTRIES_ITSELF = f"""
    SELECT {_ENTRY} FROM ledger
    WHERE task = 0 AND user = ?1 AND number > ?3 ORDER BY number LIMIT ?4
"""  # noqa: S608 # put together from constants only
HAPPENED = """
    SELECT number, id, (SELECT name FROM tasks WHERE id = task), kind, generation, epoch,
           created_at, step, data
    FROM ledger WHERE number > ?2 AND user = ?1 AND step IS NULL ORDER BY number LIMIT ?3
"""
LATEST = f"""
    SELECT {_ENTRY.replace("?2", "NULL")} FROM ledger
    WHERE task = 0 AND user = ?1 AND kind = ?2 ORDER BY number DESC LIMIT 1
"""  # noqa: S608 # put together from constants only
JOURNAL = f"""
    SELECT {_ENTRY} FROM ledger
    WHERE {_OF_TASK} AND step IS NOT NULL AND generation = ?3 ORDER BY number
"""  # noqa: S608 # put together from constants only


def listing(query: TaskQuery) -> tuple[str, list[Any]]:
    """A page of tasks, as SQL and its values; the user comes first."""
    conditions = ["user = ?1", "id < ?2" if query.newest_first else "id > ?2"]
    from_the_end = query.newest_first and not query.after
    values: list[Any] = [_PAST_ALL if from_the_end else query.after]
    for column, value in (
        ("state = {}", query.state),
        ("owner = {}", query.owner),
    ):
        if value is not None:
            values.append(value)
            conditions.append(column.format(f"?{len(values) + 1}"))
    values.append(query.limit)
    where = " AND ".join(conditions)
    order = f"ORDER BY id {'DESC ' * query.newest_first}LIMIT ?{len(values) + 1}"
    return f"SELECT {READ} FROM tasks WHERE {where} {order}", values  # noqa: S608


def task_of(row: tuple[Any, ...]) -> TaskRecord:
    """A row of `READ`."""
    task = TaskRecord._make(row)
    return task._replace(after=tuple(row[12].split("\n")) if row[12] else ())


def row_of(task: TaskRecord) -> tuple[Any, ...]:
    return (*task[:12], "\n".join(task.after), *task[13:-1])


# Inside a transaction


def number_of(connection: apsw.Connection, user: int, entry: EntryRecord) -> int:
    """The number of an entry that is there already, or 0."""
    task = _id_of(connection, user, entry.task)
    sql = "SELECT number FROM ledger WHERE task = ? AND user = ? AND id = ?"
    return int(connection.execute(sql, (task, user, entry.id)).get or 0)


def is_step(batch: Batch) -> bool:
    """Whether a batch does nothing but add one entry to the journal of a task."""
    event, work = batch.event, batch.work
    if not isinstance(event, EntryRecord) or batch.move is not None or batch.objects:
        return False
    fences = work.fences
    if len(fences) != 1 or fences[0].task != event.task or batch.requires:
        return False
    return work[1:] == NO_WORK[1:]


def add_step(cursor: apsw.Cursor, user: int, batch: Batch, number: int) -> int:
    """Add the entry under `number`; the number that it has, another one if it is there already.

    Whether it is there, or who has its task, is asked only if it cannot be added.
    """
    entry, (fence,) = batch.event, batch.work.fences
    cursor.execute(_ADD_STEP, (number, entry.id, *entry[3:], user, fence.task, fence.epoch))
    connection = cursor.connection
    if connection.changes():
        return number
    assert isinstance(entry, EntryRecord)
    done = number_of(connection, user, entry)
    if not done:
        _check(connection, user, fence)
    return done


def apply(connection: apsw.Connection, user: int, work: Work) -> int | None:
    """Check and do it; the number for what comes next, None: whichever that is."""
    for fence in work.fences:
        _check(connection, user, fence)
    if work.latest is not None:
        _check_latest(connection, user, work.latest)
    for id in work.alive:
        if _one(connection, "SELECT 1 FROM owners WHERE user = ? AND id = ?", (user, id)) is None:
            raise LeaseLost(RECLAIMED)
    for owner in work.reclaim:
        _reclaim(connection, user, owner)
    for move in work.moves:
        _move(connection, user, move)
    number: int | None = None
    for entry in work.entries:
        number = add_entry(connection, user, entry, number) + 1
    if work.forget and number is None:
        number = last_number(connection) + 1  # now: the highest may go, and is not given out again
    for name in work.forget:
        _forget(connection, user, name)
    if work.keep_itself is not None:
        _trim(connection, user, work.keep_itself)
    return number


def add_entry(
    connection: apsw.Connection, user: int, entry: EntryRecord, number: int | None
) -> int:
    """Its number: the one given, or the next there is."""
    task = _id_of(connection, user, entry.task)
    if task is None:
        raise NotFound(f"task {entry.task!r} does not exist")
    return int(_one(connection, _ADD_ENTRY, (number, user, entry.id, task, *entry[3:])))


def _check(connection: apsw.Connection, user: int, fence: Fence) -> None:
    sql = "SELECT epoch FROM tasks WHERE user = ? AND name = ?"
    standing = _one(connection, sql, (user, fence.task))
    if standing != fence.epoch:
        raise LeaseLost(lost_message(fence.task, standing, fence.epoch))


def _check_latest(connection: apsw.Connection, user: int, latest: Latest) -> None:
    sql = (
        "SELECT id FROM ledger WHERE task = 0 AND user = ? AND kind = ? "
        "ORDER BY number DESC LIMIT 1"
    )
    if _one(connection, sql, (user, latest.kind)) != latest.id:
        raise Conflict(OVERTAKEN.format(latest.kind))


def _reclaim(connection: apsw.Connection, user: int, owner: OwnerRecord) -> None:
    sql = "DELETE FROM owners WHERE user = ? AND id = ? RETURNING until"
    until = _one(connection, sql, (user, owner.id))
    if until is not None and until != owner.until:
        raise Conflict(f"session {owner.session!r} is alive: it has renewed its lease")


def _move(connection: apsw.Connection, user: int, move: TaskMove) -> None:
    expect, become = move
    become = _waiting(connection, user, become)
    if expect is None:
        if _one(connection, _ADD_TASK, (user, *row_of(become))) is None:
            raise Conflict(f"task {become.name!r} exists already, or one with its key")
    elif _one(connection, _MOVE_TASK, (*_moving(become), user, become.name, expect)) is None:
        _check(connection, user, Fence(become.name, expect))
    if become.state == "completed":
        _release(connection, user, become.name)
    elif become.state == "rolled_back":
        _hold_up(connection, user, become.name)


def _moving(task: TaskRecord) -> tuple[Any, ...]:
    return (task.state, *task[6:12], *task[13:-2])


def _waiting(connection: apsw.Connection, user: int, task: TaskRecord) -> TaskRecord:
    """A pending task as it stands, given what it has to wait for."""
    if task.state != "pending" or not task.after:
        return task

    def is_completed(name: str) -> bool:
        sql = "SELECT state FROM tasks WHERE user = ? AND name = ?"
        return _one(connection, sql, (user, name)) in (None, "completed")

    unmet = first_unmet(task.after, is_completed)
    return task if unmet is None else task._replace(waits_for=unmet, due=None)


def _release(connection: apsw.Connection, user: int, name: str) -> None:
    """Let go what has waited for a task."""
    rows: list[Any] = connection.execute(_WAITING, (user, name)).fetchall()
    for task in map(task_of, rows):
        due = task.not_before if task.question is None else None  # an answer is waited for, too
        free = _waiting(connection, user, task._replace(waits_for=None, due=due))
        sql = "UPDATE tasks SET waits_for = ?, due = ? WHERE id = ?"
        connection.execute(sql, (free.waits_for, free.due, task.place))
        note(connection, "tasks", [task.place])


def _hold_up(connection: apsw.Connection, user: int, name: str) -> None:
    """Let wait for a task again whoever had seen it completed, and has not begun."""
    rows: list[Any] = connection.execute(_FREE, (user,)).fetchall()
    for task in map(task_of, rows):
        if name in task.after:
            sql = "UPDATE tasks SET waits_for = ?, due = NULL WHERE id = ?"
            connection.execute(sql, (name, task.place))
            note(connection, "tasks", [task.place])


def _forget(connection: apsw.Connection, user: int, name: str) -> None:
    with zeroing(connection):
        sql = "DELETE FROM tasks WHERE user = ? AND name = ? RETURNING id"
        task = _one(connection, sql, (user, name))
        if task is None:
            return
        sql = "DELETE FROM ledger WHERE task = ? RETURNING number"
        rows: list[Any] = connection.execute(sql, (task,)).fetchall()
    note(connection, "tasks", [task])
    note(connection, "ledger", [row[0] for row in rows])
    _release(connection, user, name)


def _trim(connection: apsw.Connection, user: int, keep: int) -> None:
    rows: list[Any] = connection.execute(_TRIM, (user, keep)).fetchall()
    note(connection, "ledger", [row[0] for row in rows])


def _id_of(connection: apsw.Connection, user: int, task: str | None) -> int | None:
    if task is None:
        return LEDGER_ITSELF
    found = _one(connection, "SELECT id FROM tasks WHERE user = ? AND name = ?", (user, task))
    return None if found is None else int(found)


# Leases


def hold(connection: apsw.Connection, user: int, owner: OwnerRecord, *, is_new: bool) -> bool:
    if not is_new:
        return _one(connection, _RENEW, (*owner[-2:], user, owner.id)) is not None
    connection.execute(_HOLD, (owner.id, user, *owner[1:]))
    return True


def let_go(connection: apsw.Connection, user: int, owner: Id) -> None:
    connection.execute("DELETE FROM owners WHERE user = ? AND id = ?", (user, owner))


def _one(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> Any:
    return connection.execute(sql, values).get
