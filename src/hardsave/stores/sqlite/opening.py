"""Opening a store: create the file or check it, before anybody uses it.

What is not a store is refused untouched, what has been cut, damaged or lost commits is
`Corrupt`; all of it under the writer's lock, so that two processes can begin at once.
"""

import logging
import os
from pathlib import Path

import apsw

from hardsave.errors import Corrupt, Misuse
from hardsave.stores.base import Durability
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.connection import (
    BUSY_SECONDS,
    check_length,
    check_pages_are_checked,
    connect,
    in_our_words,
    look,
    refuse_network_file_system,
    seems_cut,
)
from hardsave.stores.sqlite.lock import FileLock
from hardsave.stores.sqlite.mark import Mark

_log = logging.getLogger(__name__)


def prepare(
    path: str, durability: Durability, lock: FileLock, mark: Mark, *, is_open_here: bool
) -> apsw.Connection:
    """Create or check the file, under the writer's lock, before anybody uses it."""
    if os.path.isdir(path):
        raise Misuse(f"{path} is a directory; name a file for the store")
    folder = Path(path).parent
    for parent in reversed([folder, *folder.parents]):
        if not parent.exists():
            parent.mkdir(mode=0o700, exist_ok=True)
    refuse_network_file_system(path)
    lock.acquire(BUSY_SECONDS)
    try:
        known = mark.read()
        is_cut = False
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            if known is not None and known.number > 0:
                raise Corrupt(
                    f"{path} is gone or empty, but {known.number} commits were made to it; put it "
                    f"back, or delete {mark.path} if it was removed on purpose"
                )
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            is_new = True
        else:
            is_cut = not is_open_here and _check_header(path, known is not None)
            is_new = not _look(path, known is not None)
        connection = connect(path, durability, create=is_new)
        try:
            with in_our_words(path):
                check_pages_are_checked(connection, path)
                if is_cut:
                    check_length(connection, path)
                schema.migrate(connection)
                _compare_with_mark(connection, path, mark, durability)
            if last_number(connection) == 0:
                # Whoever made the folders may have died before they were safe.
                for created in (folder, *folder.parents):
                    _sync_folder(created)
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        lock.release()


def _check_header(path: str, was_ours: bool) -> bool:
    """Whether the file seems to have been cut. One that is no database at all is refused.

    SQLite takes a short file of any kind for an empty database, and would overwrite it. Not
    to be called while this process has the file open: closing it takes SQLite's locks away.
    """
    with open(path, "rb") as file:
        header = file.read(32)
    if header.startswith(b"SQLite format 3\0"):
        return seems_cut(path, header)
    if was_ours:
        raise Corrupt(f"the header of {path} is damaged; restore it from a copy")
    raise Misuse(f"{path} is not a Hardsave store; choose another path")


def _look(path: str, was_ours: bool) -> bool:
    """Whether a file holds a store already; False if it is empty of tables."""
    try:
        application, version, tables = look(path)
    except Corrupt as error:
        if was_ours:
            raise
        raise Misuse(f"{path} is not a Hardsave store; choose another path") from error
    schema.check_is_ours(path, application, version, tables)
    return tables > 0


def _compare_with_mark(
    connection: apsw.Connection, path: str, mark: Mark, durability: Durability
) -> None:
    """A store that ends before its mark has lost acknowledged saves."""
    number = last_number(connection)
    known = mark.read()
    if known is not None and number < known.number:
        if not known.relaxed or mark.is_from_this_boot(known):
            raise Corrupt(
                f"{path} ends at commit {number}, but commit {known.number} was acknowledged: a "
                "file was damaged, cut or replaced. Put it back from a copy, or delete "
                f"{mark.path} to accept the loss"
            )
        _log.error(
            "%s lost commits %d to %d when the machine went down: it was opened with "
            "durability='process', which gives them up",
            path,
            number + 1,
            known.number,
        )
    if known is None or known.number != number:
        mark.write(number, relaxed=durability == "process")


def last_number(connection: apsw.Connection) -> int:
    found = connection.execute(
        "SELECT max((SELECT coalesce(max(number), 0) FROM checkpoints), "
        "(SELECT coalesce(max(number), 0) FROM log))"
    ).get
    return int(found)


def _sync_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # not ours to read, so not ours to have made
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
