"""What is read, one statement each. `%(user)s` is the user's number."""

from hardsave.objects.records import CheckpointRecord, EntryRecord, TaskRecord
from hardsave.stores.base import FILES_WITHIN

_NAMES = CheckpointRecord._fields


def columns(table: str, names: tuple[str, ...] = _NAMES) -> str:
    """All columns of a record, in its order."""
    return ", ".join(f"{table}.{name}" for name in names)


_CHECKPOINT = f'SELECT {columns("c")} FROM checkpoints AS c WHERE c."user" = %(user)s'  # noqa: S608
CHECKPOINT = f"{_CHECKPOINT} AND c.id = %(id)s"
BETWEEN = (
    f"{_CHECKPOINT} AND c.id BETWEEN %(low)s AND %(high)s AND c.hidden <= 0 "
    "ORDER BY c.id LIMIT %(limit)s"
)
CHECKPOINTS = f"{_CHECKPOINT} AND c.timeline = %(timeline)s"  # conditions follow
HAS_LABEL = """
    EXISTS (SELECT 1 FROM labels AS l WHERE l."user" = c."user" AND l.number = c.number
            AND l.key = %({0}_key)s AND l.value = %({0}_value)s)
"""
# The first label by its index, newest first; the others are looked up for each.
LABELLED = f"""
    SELECT {columns("c")} FROM labels AS f
    JOIN checkpoints AS c ON c."user" = f."user" AND c.number = f.number
    WHERE f."user" = %(user)s AND f.key = %(key)s AND f.value = %(value)s
    AND (%(before)s::bigint IS NULL OR f.number < %(before)s) AND c.hidden <= 0 {{others}}
    ORDER BY f.number DESC LIMIT %(limit)s
"""  # noqa: S608 # put together from constants only
LABELS = """
    SELECT c.id, l.key, l.value FROM checkpoints AS c
    JOIN labels AS l ON l."user" = c."user" AND l.number = c.number
    WHERE c."user" = %(user)s AND c.id = ANY (%(ids)b::bytea[]) ORDER BY l.number, l.at
"""
NOTES = """
    SELECT c.id, n.key, n.data FROM checkpoints AS c
    JOIN notes AS n ON n."user" = c."user" AND n.number = c.number
    WHERE c."user" = %(user)s AND c.id = ANY (%(ids)b::bytea[]) ORDER BY n.at
"""
CHILDREN = f"{_CHECKPOINT} AND c.parent = %(parent)s AND c.hidden <= 0 ORDER BY c.number"
BRANCHES = f"""
    SELECT {columns("c")} FROM checkpoints AS p
    JOIN checkpoints AS c ON c."user" = p."user" AND c.parent = p.id AND c.hidden <= 0
    WHERE p."user" = %(user)s AND p.timeline = %(timeline)s
    AND p.seq BETWEEN %(first)s AND %(last)s
    AND NOT (c.timeline = p.timeline AND c.seq = p.seq + 1)
    ORDER BY c.number
"""  # noqa: S608 # put together from constants only
ANCESTORS = f"""
    WITH RECURSIVE up (number, parent, steps) AS (
        SELECT number, parent, 1 FROM checkpoints WHERE "user" = %(user)s AND id = %(id)s
        UNION ALL
        SELECT a.number, a.parent, up.steps + 1 FROM up
        JOIN checkpoints AS a ON a."user" = %(user)s AND a.id = up.parent
        WHERE up.steps < %(limit)s
    )
    SELECT {columns("c")} FROM up
    JOIN checkpoints AS c ON c."user" = %(user)s AND c.number = up.number
    ORDER BY up.steps LIMIT %(limit)s
"""  # noqa: S608 # put together from constants only
SAVED = f"{_CHECKPOINT} AND c.number > %(after)s ORDER BY c.number LIMIT %(limit)s"
CAPTURED = (
    f"{_CHECKPOINT} AND c.workspace = %(workspace)s "
    "AND (%(before)s::bigint IS NULL OR c.number < %(before)s) "
    "AND (%(hidden)s OR c.hidden <= 0) ORDER BY c.number DESC LIMIT %(limit)s"
)

_LINE = ("name", "head", "last_seq", "created_at", "origin", "is_deleted", "title")
_TIMELINE = f'SELECT {columns("t", _LINE)} FROM timelines AS t WHERE t."user" = %(user)s'  # noqa: S608
TIMELINE = f"{_TIMELINE} AND t.name = %(name)s"
TIMELINES = (
    f"{_TIMELINE} AND t.name > %(after)s AND (%(deleted)s OR NOT t.is_deleted) "
    "AND (%(prefix)s = '' OR t.name >= %(prefix)s AND starts_with(t.name, %(prefix)s)) "
    "ORDER BY t.name LIMIT %(limit)s"
)
COUNT = 'SELECT saved FROM timelines WHERE "user" = %(user)s AND name = %(name)s'
# What is asked of a timeline's own row is asked first, and if that is all, only the rows of one
# page are joined.
_LINES = """
    SELECT * FROM timelines
    WHERE "user" = %(user)s AND (%(deleted)s OR NOT is_deleted)
      AND (%(prefix)s = '' OR starts_with(name, %(prefix)s))
      AND (%(text)s = '' OR position(lower(%(text)s COLLATE "C") IN lower(name)) > 0
           OR position(lower(%(text)s COLLATE "C") IN lower(title)) > 0)
      AND (%(updated)s::bigint IS NULL OR updated_at < %(updated)s
           OR (updated_at = %(updated)s AND name > %(name)s))
"""
_IN_ORDER = "ORDER BY updated_at DESC, name LIMIT %(limit)s"
_JOINED = f"""
    SELECT {columns("t", _LINE)}, t.updated_at, t.saved, {columns("n")}, {columns("h")}
    FROM ({{lines}}) AS t
    LEFT JOIN LATERAL (
        SELECT * FROM checkpoints AS c
        WHERE c."user" = t."user" AND c.timeline = t.name AND c.hidden <= 0
        ORDER BY c.seq DESC LIMIT 1) AS n ON true
    LEFT JOIN checkpoints AS h ON h."user" = t."user" AND h.id = t.head
    {{where}} ORDER BY t.updated_at DESC, t.name LIMIT %(limit)s
"""  # noqa: S608 # put together from constants only
RECENT = _JOINED.format(lines=f"{_LINES} {_IN_ORDER}", where="")
RECENT_BY_CHECKPOINT = _JOINED.format(
    lines=_LINES,
    where=f"""
    WHERE (%(status)s::text IS NULL OR n.status = %(status)s)
      AND (%(workspace)s::bytea IS NULL OR %(workspace)s = coalesce(n.workspace, (
        SELECT workspace FROM (
            SELECT workspace, seq FROM checkpoints AS c
            WHERE c."user" = t."user" AND c.timeline = t.name AND c.hidden <= 0
            ORDER BY c.seq DESC LIMIT {FILES_WITHIN}) AS newest
        WHERE workspace IS NOT NULL ORDER BY seq DESC LIMIT 1), h.workspace))
    """,  # noqa: S608 # put together from constants only
)

_TOMBSTONE = 'SELECT id, timeline, seq, parent FROM tombstones WHERE "user" = %(user)s'
TOMBSTONE = f"{_TOMBSTONE} AND id = %(id)s"
TOMBSTONES = (
    f"{_TOMBSTONE} AND timeline = %(timeline)s "
    "AND (%(before)s::bigint IS NULL OR seq < %(before)s) ORDER BY seq DESC LIMIT %(limit)s"
)

_LOG = 'SELECT number, id, timeline, kind, created_at, data FROM log WHERE "user" = %(user)s'
LOG = f"{_LOG} AND number > %(after)s ORDER BY number LIMIT %(limit)s"
LOG_BEFORE = (
    f"{_LOG} AND (%(before)s::bigint IS NULL OR number < %(before)s) "
    "AND (%(timeline)s::text IS NULL OR timeline IS NULL OR timeline = %(timeline)s) "
    "ORDER BY number DESC LIMIT %(limit)s"
)
LOG_ENTRY = f"{_LOG} AND id = %(id)s"

_WORKSPACE = 'SELECT id, host, path, epoch FROM workspaces WHERE "user" = %(user)s'
WORKSPACE = f"{_WORKSPACE} AND id = %(id)s"
WORKSPACE_AT = f"{_WORKSPACE} AND host = %(host)s AND path = %(path)s ORDER BY id LIMIT 1"
WORKSPACES = (
    f"{_WORKSPACE} AND (host, path, id) > (%(host)s, %(path)s, %(id)s) "
    "ORDER BY host, path, id LIMIT %(limit)s"
)

# The ledger

OWNERS = """
    SELECT id, session, host, boot, space, pid, pid_started, since, until, clock FROM owners
    WHERE "user" = %(user)s ORDER BY since, id
"""
_TASK = f'SELECT {columns("t", TaskRecord._fields)} FROM tasks AS t WHERE t."user" = %(user)s'  # noqa: S608
TASK = f"{_TASK} AND t.name = %(name)s"
TASK_BY_KEY = f"{_TASK} AND t.key = %(key)s"
TASKS = (
    f"{_TASK} AND (%(state)s::text IS NULL OR t.state = %(state)s) "
    "AND (%(owner)s::bytea IS NULL OR t.owner = %(owner)s) AND {} LIMIT %(limit)s"
)
TASKS_IN_ORDER = TASKS.format("t.place > %(after)s ORDER BY t.place")
TASKS_NEWEST_FIRST = TASKS.format("(%(after)s = 0 OR t.place < %(after)s) ORDER BY t.place DESC")
DUE = (
    f"{_TASK} AND t.state = 'pending' AND t.due <= %(now)s "
    "ORDER BY t.priority DESC, t.place LIMIT %(limit)s"
)
RETRIES = (
    f"{_TASK} AND t.state = 'pending' AND t.due > %(since)s AND t.due <= %(until)s "
    "AND t.attempts > 0 AND t.place > %(after)s ORDER BY t.place LIMIT %(limit)s"
)
TASK_COUNTS = 'SELECT state, count(*) FROM tasks WHERE "user" = %(user)s GROUP BY state'
_ENTRY = f'SELECT {columns("e", EntryRecord._fields)} FROM entries AS e WHERE e."user" = %(user)s'  # noqa: S608
ENTRIES = (
    f"{_ENTRY} AND e.task = %(task)s AND e.step IS NULL AND e.number > %(after)s "
    "ORDER BY e.number LIMIT %(limit)s"
)
ENTRIES_ITSELF = (
    f"{_ENTRY} AND e.task IS NULL AND e.number > %(after)s ORDER BY e.number LIMIT %(limit)s"
)
HAPPENED = f"{_ENTRY} AND e.number > %(after)s AND e.step IS NULL ORDER BY e.number LIMIT %(limit)s"
LATEST = f"{_ENTRY} AND e.task IS NULL AND e.kind = %(kind)s ORDER BY e.number DESC LIMIT 1"
JOURNAL = (
    f"{_ENTRY} AND e.task = %(task)s AND e.step IS NOT NULL AND e.generation = %(generation)s "
    "ORDER BY e.number"
)
