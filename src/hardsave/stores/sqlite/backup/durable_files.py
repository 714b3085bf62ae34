"""Files in the making: nothing relies on one until it is synced and renamed."""

import contextlib
import os

import apsw

from hardsave.stores.local.database import (
    CHECKSUM_BYTES,
    CHECKSUM_VFS,
    in_our_words,
    load_checksums,
)
from hardsave.stores.sqlite.connection import PAGE_BYTES

TAKEOVER = "-takeover-new"  # of a store that replaces a damaged one
# Beside it: what can still be read of files, by what it is a source of.
ROWS = {
    "store": "-pages",
    "backup": "-backup-pages",
    "rows": "-hidden-pages",
    "backup_rows": "-hidden-backup-pages",
}
BACKUP = "-new"  # of a backup


def create(path: str) -> apsw.Connection:
    """A new file with page checksums."""
    load_checksums()
    discard(path)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    with in_our_words(path):
        connection = apsw.Connection(path, flags=flags, vfs=CHECKSUM_VFS)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.reserve_bytes(None, CHECKSUM_BYTES)
        connection.pragma("page_size", PAGE_BYTES)
        connection.pragma("auto_vacuum", 2)
        connection.pragma("journal_mode", "memory")
        connection.pragma("synchronous", 0)
        connection.pragma("temp_store", 2)
    return connection


def discard(path: str) -> None:
    """Remove a draft that came to nothing: it may be what has filled the disk."""
    for leftover in _files(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(leftover)


def sync(path: str) -> None:
    """Make a file's bytes safe, or a folder's names."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard_leftovers(store: str) -> None:
    """Remove what a takeover left that was killed. A process that has the store open may: no other
    takes over meanwhile."""
    discard(store + TAKEOVER)
    for rows in ROWS.values():
        discard(store + TAKEOVER + rows)


def _files(path: str) -> tuple[str, ...]:
    return (path, path + "-wal", path + "-shm", path + "-journal")
