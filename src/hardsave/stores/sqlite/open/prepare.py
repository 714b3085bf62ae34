"""Opening a store: create the file or check it, before it is used.

What is not a store is refused untouched. What has been cut, damaged or lost commits is taken
over from its backup, or `Corrupt` if that cannot be. All of it happens under the writer's
lock, so that two processes can begin at once.
"""

import contextlib
import os
from typing import Any

import apsw

from hardsave.defaults import BUSY_SECONDS
from hardsave.errors import Corrupt, Misuse, NotFound, Unavailable
from hardsave.logs import log
from hardsave.stores.base import Durability
from hardsave.stores.local.database import OPEN_AGAIN, in_our_words
from hardsave.stores.local.file_lock import FileLock
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.backup import backup_file
from hardsave.stores.sqlite.connection import (
    PAGE_BYTES,
    check_pages_are_checked,
    check_wal,
    connect,
    look,
    refuse_place,
    refuse_second_name,
    seems_cut,
    wal_bytes,
)
from hardsave.stores.sqlite.gc import rewrite_lock
from hardsave.stores.sqlite.open.commit_mark import CommitMark, MarkRecord
from hardsave.stores.sqlite.open.presence import Presence
from hardsave.stores.sqlite.open.read_only import (
    ASKED,
    LiveFile,
    ReadOnlyFile,
    Reason,
    is_disk_full,
    is_live,
    read_only,
)
from hardsave.stores.sqlite.salvage.wal_reader import dropped, is_cut

SUSPECT = "-suspect"


def prepare(
    path: str,
    durability: Durability,
    lock: FileLock,
    mark: CommitMark,
    presence: Presence,
    *,
    is_open_here: bool,
    only_reads: bool = False,
) -> apsw.Connection | ReadOnlyFile:
    """Create, check or take over the file, under the writer's lock, before any caller uses it. On a
    full disk, or where it may not be written, it can only be read. With `only_reads` nothing is
    made, locked or mended in any case."""
    if os.path.isdir(path):
        raise Misuse(f"{path} is a directory; name a file for the store")
    if os.path.exists(path) and not os.path.isfile(path):
        raise Misuse(f"{path} is no plain file; name one for the store")
    if only_reads:
        if not os.path.exists(path):
            raise NotFound(
                f"there is no store at {path}; see how it is spelt, or open it without "
                "read_only=True, which makes it"
            )
        return _read_only(path, mark, ASKED, is_open_here=is_open_here)
    for folder in reversed(_folders(path)):
        if not os.path.exists(folder):
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.mkdir(folder, 0o700)
    refuse_place(path)
    if (reason := read_only(path)) is not None:
        return _read_only(path, mark, reason, is_open_here=is_open_here)
    refuse_second_name(path)
    _take_turns(path, lock)
    try:
        _finish_takeover(path, presence)
        try:
            connection = _open(path, durability, mark, presence, is_open_here=is_open_here)
        except Corrupt as damage:
            connection = _take_over(path, durability, mark, presence, damage)
        except Unavailable as error:
            if not is_disk_full(error):
                raise
            presence.share()
            return _full_disk(path, mark, error)
        try:
            presence.share()
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        lock.release()


def _full_disk(path: str, mark: CommitMark, error: Unavailable) -> ReadOnlyFile:
    try:
        found = ReadOnlyFile(path, mark)
    except Unavailable:
        raise error from error.__cause__  # it is not that alone
    log(__name__).info("%s is opened for reading alone: no space is left for it", path)
    return found


def _read_only(path: str, mark: CommitMark, reason: Reason, *, is_open_here: bool) -> ReadOnlyFile:
    """Without the lock that says that we have it open: there is no file that we could lock, or
    repair."""
    if os.path.exists(path + "-takeover"):
        raise Unavailable(
            f"a takeover of {path} was broken off, and cannot be finished: "
            f"{reason.why.format('it')}; {reason.cure} and open it again"
        )
    if not is_open_here:
        _check_header(path, mark.read() is not None or os.path.exists(backup_file.path_of(path)))
    if reason is ASKED and is_live(path):
        return LiveFile(path, mark)
    found = ReadOnlyFile(path, mark, reason)
    with contextlib.closing(found.connect()) as connection, in_our_words(path):
        _check_read_only(connection, path, mark)
    log(__name__).info("%s is opened for reading alone", path)
    return found


def _check_read_only(connection: apsw.Connection, path: str, mark: CommitMark) -> None:
    """What opening it otherwise would have found out."""
    pages, number = int(connection.pragma("page_count")), schema.last_number(connection)
    if wal_bytes(path) == 0 and os.path.getsize(path) < pages * PAGE_BYTES:
        raise Corrupt(f"{path} has been cut short")
    if os.path.exists(path + SUSPECT):
        _check_every_page(connection, path)
    known = mark.read()
    if known is None or mark.may_be_old(known):
        _compare_with_backup(path, number, only_reads=True)
    if known is None:
        _look_behind(path, number)


def _open(
    path: str, durability: Durability, mark: CommitMark, presence: Presence, *, is_open_here: bool
) -> apsw.Connection:
    """A connection to a file that was checked. What is lost or damaged is `Corrupt`."""
    known = mark.read()
    was_ours = known is not None or os.path.exists(backup_file.path_of(path))
    seems_short = False
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        _check_is_new(path, mark, known)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        is_new = True
    else:
        seems_short = not is_open_here and _check_header(path, was_ours)
        is_new = not _look(path, was_ours)
    connection = connect(path, durability, create=is_new)
    try:
        with in_our_words(path):
            check_pages_are_checked(connection, path)
            check_wal(connection, path)
            if seems_short and is_cut(connection, path):
                raise Corrupt(f"{path} has been cut short")
            if not is_new and schema.is_older(connection):
                presence.seize("renewed for this Hardsave")
            schema.migrate(connection)
            _check_suspicion(connection, path)
            _compare_with_mark(connection, path, mark, durability)
        if schema.last_number(connection) == 0:
            # The process that made the folders may have died before they were synced.
            for created in _folders(path):
                _sync_folder(created)
    except BaseException:
        # Nothing of its WAL is moved into a file that may be damaged.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()
        raise
    return connection


def _check_is_new(path: str, mark: CommitMark, known: MarkRecord | None) -> None:
    copied = backup_file.peek(path)
    commits = max(known.number if known else 0, copied.number if copied else 0)
    if commits > 0:
        raise Corrupt(
            f"{path} is gone or empty, but {commits} commits were made to it; put it back. If it "
            f"was removed on purpose, delete {mark.path} and {backup_file.path_of(path)} as well"
        )
    if _is_left(path + "-wal"):  # which SQLite would delete
        raise Corrupt(
            f"{path} is gone or empty, and {path}-wal still holds commits to it; put it back. If "
            "it was removed on purpose, delete the other as well"
        )
    if os.path.exists(backup_file.path_of(path)) and copied is None:
        raise Corrupt(
            f"{path} is gone or empty, and {backup_file.path_of(path)} is damaged; put a "
            "copy back, or delete both if they were removed on purpose"
        )


def _is_left(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0


def _finish_takeover(path: str, presence: Presence) -> None:
    """Finish the work of a process that died while it put a new file in place."""
    if not os.path.exists(path + "-takeover"):
        return
    from hardsave.stores.sqlite.salvage import takeover  # few processes need it

    presence.seize()
    aside = takeover.put_in_place(path)
    log(__name__).error(
        "%s was damaged; a takeover that was broken off is finished, see %s", path, aside
    )


def _take_over(
    path: str, durability: Durability, mark: CommitMark, presence: Presence, damage: Corrupt
) -> apsw.Connection:
    """Replace a damaged file by what its backup and itself still hold, unless it is open."""
    from hardsave.stores.sqlite.salvage import takeover  # few processes need it

    if not os.path.exists(backup_file.path_of(path)):
        found = str(damage).removesuffix(OPEN_AGAIN)
        raise Corrupt(f"{found}. It has no backup: {takeover.ADVICE}") from damage
    presence.seize()
    wrong = str(damage).partition(";")[0]  # what is wrong, without what to do about it
    takeover.take_over(path, mark, wrong)
    return _open(path, durability, mark, presence, is_open_here=False)


def _check_suspicion(connection: apsw.Connection, path: str) -> None:
    """A process has met damage in the middle of use: look at every page before going on."""
    if not os.path.exists(path + SUSPECT):
        return
    _check_every_page(connection, path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + SUSPECT)


def _check_every_page(connection: apsw.Connection, path: str) -> None:
    found: Any = connection.execute("PRAGMA integrity_check(1)").get
    if found != "ok":
        raise Corrupt(f"{path} is damaged ({found.splitlines()[-1]})")


def suspect(path: str) -> None:
    """Let the next process that opens the store look at every page of it."""
    try:
        os.close(os.open(path + SUSPECT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        log(__name__).exception(
            "%s is damaged, and that cannot be noted for the next process that opens it", path
        )


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
        raise Corrupt(f"the header of {path} is damaged")
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
    connection: apsw.Connection, path: str, mark: CommitMark, durability: Durability
) -> None:
    """A store that ends before its mark has lost acknowledged saves."""
    number = schema.last_number(connection)
    known = mark.read()
    if known is None or known.number > number or mark.may_be_old(known):
        _compare_with_backup(path, number)
    if known is None:
        _look_behind(path, number)
    if known is not None and number < known.number:
        if not known.relaxed or mark.is_from_this_boot(known):
            raise Corrupt(
                f"{path} ends at commit {number}, but commit {known.number} was acknowledged: a "
                "file was damaged, cut or replaced"
            )
        log(__name__).error(
            "%s lost commits %d to %d when the machine went down: it was opened with "
            "durability='process', which gives them up",
            path,
            number + 1,
            known.number,
        )
    if known is None or known.number != number:
        mark.write(number, relaxed=durability == "process")


def _compare_with_backup(path: str, number: int, *, only_reads: bool = False) -> None:
    """Only if the mark says too little: what was copied was committed, and is missing now."""
    copied = backup_file.peek(path, only_reads=only_reads)
    if copied is not None and copied.number > number:
        raise Corrupt(
            f"{path} ends at commit {number}, but its backup at {copied.number}: a file was "
            "damaged, cut or replaced"
        )


def _look_behind(path: str, number: int) -> None:
    """Only if there is no mark: a WAL may hold commits that SQLite does not get to. They may be
    what a power loss has taken: never acknowledged, or with durability='process' not promised to
    survive. So that is no reason to refuse. But no other check would say that they are gone."""
    if count := dropped(path):
        log(__name__).error(
            "%s ends at commit %d: in its WAL %d transactions more are damaged, or were not "
            "finished when the machine went down; its mark, which would tell, is missing or "
            "damaged, too",
            path,
            number,
            count,
        )


def _take_turns(path: str, lock: FileLock) -> None:
    """Be alone with the file. A process that rewrites it may take longer than others do."""
    try:
        lock.acquire(BUSY_SECONDS)
    except Unavailable:
        if not rewrite_lock.waited_for(path):
            raise
        lock.acquire(BUSY_SECONDS)


def _folders(path: str) -> list[str]:
    """The folders that lead to a file, innermost first."""
    folders = [os.path.dirname(path)]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    return folders


def _sync_folder(folder: str) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # not ours to read, so not ours to have made
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
