"""Space that is free inside the files goes back to the file system, a little at a time.

SQLite moves pages from the end of the file to where space is free, and the file becomes
shorter: no second copy is needed, and others write in between.
"""

import contextlib
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import apsw

from hardsave.defaults import BUSY_SECONDS
from hardsave.errors import Unavailable
from hardsave.progress import Meter, Total, meter
from hardsave.stores.sqlite.backup import durable_files

STEP_PAGES = 512  # moved while others wait
PATIENCE_SECONDS = 10.0
SOME_SECONDS = 0.2  # a reader is mostly gone by then; the WAL is emptied another time otherwise
_BUSY_MILLISECONDS = 20

Apply = Callable[[Callable[[apsw.Connection], None]], None]
AtRest = Callable[[apsw.Connection], AbstractContextManager[bool]]


def give_back(apply: Apply, *, upto: int = 0) -> bool:
    """Cut free pages off the main file until `upto` are left; False if that came to no end.

    Others may free pages meanwhile, so not for ever: for twice as many as there are now.
    """
    left: list[int] = []
    most = 1
    given = Meter()
    while len(left) <= most:
        apply(lambda connection: left.append(_vacuum(connection, STEP_PAGES, upto)))
        if left[-1] <= upto:
            return True
        if len(left) > 1:
            given.add(left[-2] - left[-1])
        elif not upto:  # else it is a small part of something longer
            given = meter("giving room back", "pages", lambda: Total(left[0]))
        most = 4 + 2 * left[0] // STEP_PAGES
    return False


def _vacuum(connection: apsw.Connection, pages: int, upto: int) -> int:
    """How many pages are free after some were cut off."""
    pages = min(pages, int(connection.pragma("freelist_count")) - upto)
    if pages > 0:
        connection.execute(f"PRAGMA incremental_vacuum({pages:d})").fetchall()
    return int(connection.pragma("freelist_count"))


def rewrite(connection: apsw.Connection) -> None:
    """Write every page anew, because a page that is in use may hold a rest of what was there.

    SQLite clears what it frees only if asked to, which merging does not: it would pay each time
    for what few users need. This takes the space of a second copy for a moment.
    """
    meter("rewriting the file")
    connection.execute("VACUUM")


def truncate_wal(
    connection: apsw.Connection, patience_seconds: float, at_rest: AtRest, *, must: bool = False
) -> bool:
    """Move the WAL into the main file and empty it; False if readers were in the way.

    SQLite would keep writers out while it waits for readers: it waits a moment, often. What is in
    no backup yet stays in the WAL, unless it `must` go.
    """
    deadline = time.monotonic() + patience_seconds
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    try:
        while True:
            is_late = time.monotonic() > deadline
            with at_rest(connection) as is_copied:
                is_done = (is_copied or (must and is_late)) and _is_emptied(connection)
            if is_done or is_late:
                return is_done
            time.sleep(_BUSY_MILLISECONDS / 1000)
    finally:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))


def _is_emptied(connection: apsw.Connection) -> bool:
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
    except apsw.BusyError:
        return False
    return not busy


def move_wal(connection: apsw.Connection, name: str, *, and_cut: bool) -> None:
    """Move a WAL into its main file, as far as readers let us, and free its space if no reader
    uses it: otherwise what comes next goes over it."""
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    how = "TRUNCATE" if and_cut else "PASSIVE"
    try:
        with contextlib.suppress(apsw.BusyError):
            connection.execute(f"PRAGMA {name}.wal_checkpoint({how})").fetchall()
    finally:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))


def settle(path: str) -> None:
    """Remove what was left half made, and let it last that files were emptied and removed.

    Otherwise a power loss could bring back what must not be found again.
    """
    try:
        durable_files.discard_leftovers(path)
        for name in (path + "-wal", os.path.dirname(path)):
            if os.path.exists(name):
                durable_files.sync(name)
    except OSError as error:
        raise Unavailable(
            f"what was removed from {path} may come back: {error}; see to the disk, then repeat"
        ) from error


def file_bytes(path: str) -> int:
    """How long a file and its WAL are together."""
    size = 0
    for name in (path, f"{path}-wal"):
        with contextlib.suppress(FileNotFoundError):  # another process may take it away
            size += os.stat(name).st_size
    return size
