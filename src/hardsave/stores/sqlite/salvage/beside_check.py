"""Rows beside checkpoints: whether labels and notes belong to one and can be read, and whether the
workspaces that checkpoints name are there. Each table is read once, and joined by its key."""

# ruff: noqa: S608 # names of tables and of attached databases are our own

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import apsw

from hardsave.errors import Corrupt
from hardsave.stores.sqlite.schema import LABEL_BITS, named_workspaces
from hardsave.stores.workspaces import NO_HOST
from hardsave.tuples import NamedTuple

_MOST_LINES = 20  # of one kind of fault
_LABELS = f"""
    SELECT l.id, l.key, l.value, c.id FROM {{0}}.labels AS l
    LEFT JOIN {{0}}.checkpoints AS c ON c.number = l.id >> {LABEL_BITS} AND c.user = l.user
"""
_NOTES = """
    SELECT n.id, n.key, n.data, c.id FROM {0}.notes AS n
    LEFT JOIN {0}.checkpoints AS c ON c.number = n.checkpoint AND c.user = n.user
"""
_HAS_WORKSPACE = "SELECT count(*) FROM {0}.workspaces WHERE user = ? AND id = ?"
_ADD_WORKSPACE = "INSERT INTO workspaces (user, id, host, path, epoch) VALUES (?, ?, ?, ?, 0)"


class Wrong(NamedTuple):
    """A label or a note that no caller can read."""

    table: str
    id: int
    why: str
    is_lost: bool  # it belongs to a checkpoint, which is without it from now on


class Unknown(NamedTuple):
    """A workspace that checkpoints name, and that has no row."""

    user: int
    id: bytes

    @property
    def path(self) -> bytes:
        """What stands for its path, once it has a row again."""
        return b"/recovered-" + self.id.hex().encode()


def beside_faults(connection: apsw.Connection, name: str = "main") -> list[str]:
    """What is wrong in these tables of a database, attached as `name`."""
    rows = (f"{table[:-1]} {id} {why}" for table, id, why, _ in wrong_rows(connection, name))
    unknown = (
        f"the workspace {each.id.hex()} of user {each.user} is missing, and checkpoints name it"
        for each in unknown_workspaces(connection, name)
    )
    return [*_some(rows), *_some(unknown)]


def _some(lines: Iterator[str]) -> Iterator[str]:
    yield from islice(lines, _MOST_LINES)
    if more := sum(1 for _ in lines):
        yield f"{more} more are like this"


def wrong_rows(connection: apsw.Connection, name: str = "main") -> Iterator[Wrong]:
    """Labels and notes that belong to no checkpoint, or that cannot be read."""
    from hardsave.objects.sound import Sound  # only verify and repair need it

    sound = Sound()
    for id, key, value, home in connection.execute(_LABELS.format(name)):
        if home is None:
            yield Wrong("labels", id, "belongs to no checkpoint", False)
        elif not (isinstance(key, str) and isinstance(value, str)):
            yield Wrong("labels", id, f"of {_shown(home)} is no text", True)
    for id, key, data, home in connection.execute(_NOTES.format(name)):
        if home is None:
            yield Wrong("notes", id, "belongs to no checkpoint", False)
        elif not _is_note(sound.value, key, data):
            yield Wrong("notes", id, f"{key!r} of {_shown(home)} cannot be read", True)


def _is_note(read: Callable[[bytes], object], key: object, data: object) -> bool:
    if not (isinstance(key, str) and isinstance(data, bytes)):
        return False
    try:
        read(data)
    except Corrupt:
        return False
    return True


def _shown(id: object) -> str:
    return f"checkpoint chk_{id.hex()}" if isinstance(id, bytes) else f"checkpoint {id!r}"


def unknown_workspaces(connection: apsw.Connection, name: str = "main") -> Iterator[Unknown]:
    """Workspaces that have no row. An id that is a path is older than rows, and needs none."""
    for user, id in named_workspaces(connection, name):
        is_path = id.startswith(b"/")
        if not is_path and not connection.execute(_HAS_WORKSPACE.format(name), (user, id)).get:
            yield Unknown(user, id)


def mend_beside(connection: apsw.Connection, wrong: Iterable[Wrong]) -> list[str]:
    """Remove what no caller can read, and give workspaces a row; what is lost by it."""
    lines = []
    for table, id, why, is_lost in wrong:
        connection.execute(f"DELETE FROM main.{table} WHERE id = ?", (id,))
        if is_lost:
            lines.append(f"{table[:-1]} {why}, and was left out")
    for each in list(unknown_workspaces(connection)):
        connection.execute(_ADD_WORKSPACE, (*each, NO_HOST, each.path))
        lines.append(
            f"the path of a workspace is lost; it is {each.path.decode()!r} of no host now"
        )
    return lines
