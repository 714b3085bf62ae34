"""What is wrong with a store's own structure: rows that do not match each other.

Pages and indexes are the server's business: `pg_amcheck` looks at these.
"""

from collections.abc import Iterator
from typing import Any

from hardsave.errors import Corrupt
from hardsave.progress import check_deadline
from hardsave.stores import packs
from hardsave.stores.postgres.connections import Connections

SECONDS = 3600.0  # that one of these statements may take
_PAGE = 1_000

# What is told of a row, and the statement that finds those that should not be there.
_CHECKS = {
    "timeline {} of user {} has a head that is neither a checkpoint nor was dropped": """
        SELECT t.name, t."user" FROM timelines AS t WHERE t.head IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM checkpoints AS c WHERE c."user" = t."user" AND c.id = t.head)
    """,
    "checkpoint {} of user {} is on a timeline that does not exist": """
        SELECT encode(c.id, 'hex'), c."user" FROM checkpoints AS c WHERE NOT EXISTS (
            SELECT 1 FROM timelines AS t WHERE t."user" = c."user" AND t.name = c.timeline)
    """,
    "timeline {} of user {} has another count of checkpoints than it keeps": """
        SELECT t.name, t."user" FROM timelines AS t LEFT JOIN (
            SELECT "user", timeline, count(*) AS saved FROM checkpoints WHERE hidden <= 0
            GROUP BY "user", timeline) AS c ON c."user" = t."user" AND c.timeline = t.name
        WHERE t.saved <> coalesce(c.saved, 0)
    """,
    "user {} has a number above that of the last commit, which is {}": """
        SELECT h."user", h.number FROM heads AS h WHERE h.number < (
            SELECT max(number) FROM (
                SELECT max(number) FROM checkpoints WHERE "user" = h."user"
                UNION ALL SELECT max(number) FROM log WHERE "user" = h."user"
                UNION ALL SELECT max(number) FROM entries WHERE "user" = h."user") AS m (number))
    """,
    "user {} has {} objects, and keeps another count": """
        SELECT h."user", count(o.hash) FROM heads AS h
        LEFT JOIN objects AS o ON o."user" = h."user"
        GROUP BY h."user" HAVING count(o.hash) <> max(h.objects)
        OR coalesce(sum(o.size), 0) <> max(h.object_bytes)
    """,
    "user {} has packs of {} bytes, and keeps another count": """
        SELECT h."user", coalesce(sum(length(p.directory) + length(p.body)), 0) FROM heads AS h
        LEFT JOIN packs AS p ON p."user" = h."user" GROUP BY h."user"
        HAVING coalesce(sum(length(p.directory) + length(p.body)), 0) <> max(h.pack_bytes)
    """,
    "object {} of user {} lies in a pack that does not exist": """
        SELECT encode(o.hash, 'hex'), o."user" FROM objects AS o WHERE NOT EXISTS (
            SELECT 1 FROM packs AS p WHERE p."user" = o."user" AND p.id = o.pack)
    """,
    "object {} of user {} is not listed by the pack that it should lie in": """
        SELECT encode(o.hash, 'hex'), o."user" FROM objects AS o
        JOIN packs AS p ON p."user" = o."user" AND p.id = o.pack
        WHERE position(o.hash IN p.directory) = 0
    """,
    "a label or note of user {} belongs to checkpoint number {}, which does not exist": """
        SELECT "user", number FROM (
            SELECT "user", number FROM labels UNION SELECT "user", number FROM notes) AS attached
        WHERE NOT EXISTS (SELECT 1 FROM checkpoints AS c
            WHERE c."user" = attached."user" AND c.number = attached.number)
    """,
    "an entry of user {} is about task {}, which does not exist": """
        SELECT DISTINCT e."user", e.task FROM entries AS e WHERE e.task IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM tasks AS t WHERE t."user" = e."user" AND t.name = e.task)
    """,
}
_MOST = 20  # lines of one kind
_DIRECTORIES = """
    SELECT "user", id, size, directory FROM packs
    WHERE ("user", id) > (%(user)s, %(id)s) ORDER BY "user", id LIMIT %(page)s
"""


def faults(connections: Connections) -> list[str]:
    return [*_unmatched(connections), *_pack_faults(connections)]


def _unmatched(connections: Connections) -> Iterator[str]:
    for said, sql in _CHECKS.items():
        check_deadline()
        for row in connections.ask(f"{sql} LIMIT {_MOST}", seconds=SECONDS):
            yield said.format(*row)


def _pack_faults(connections: Connections) -> Iterator[str]:
    at: Any = (-1, 0)
    while True:
        check_deadline()
        values = {"user": at[0], "id": at[1], "page": _PAGE}
        rows = connections.ask(_DIRECTORIES, values, seconds=SECONDS)
        for user, id, size, directory in rows:
            try:
                if sum(packs.lengths(directory)) != size:
                    yield f"pack {id} of user {user} is not as long as its directory says"
            except Corrupt as error:
                yield f"pack {id} of user {user}: {error}"
        if len(rows) < _PAGE:
            return
        at = rows[-1][:2]
