"""Opening the file: page checksums, pragmas that are checked to hold, errors in our words.

Every page carries a checksum, kept by SQLite's own checksum VFS, which comes with apsw. A
bit that flips on disk is an error at the next read of its page, not a row that is quietly
wrong or gone. Any SQLite tool can look at the file, opened read-only: one that writes does
not know the checksums.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Literal

import apsw

from hardsave.defaults import BUSY_SECONDS
from hardsave.errors import Corrupt, Misuse, Unavailable
from hardsave.stores.base import Durability
from hardsave.stores.local.database import (
    CHECKSUM_BYTES,
    CHECKSUM_VFS,
    in_our_words,
    load_checksums,
)

PAGE_BYTES = 4096
APPLICATION_ID = 0x48534156  # "HSAV"


def real_path(path: str | os.PathLike[str]) -> str:
    """Where a path leads: one file has one lock and one mark, under every name."""
    name = os.fspath(path)
    if "\0" in name:
        raise Misuse(f"{name!r} cannot be the name of a file; choose another path")
    try:
        real = os.path.realpath(name)
        real.encode()
    except UnicodeEncodeError as error:
        raise Misuse(
            f"{name!r} is not UTF-8, which SQLite wants its names in; choose another path"
        ) from error
    return real


def connect(path: str, durability: Durability, *, create: bool) -> apsw.Connection:
    """A connection whose pragmas are known to be in force."""
    load_checksums()
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    with in_our_words(path):
        connection = apsw.Connection(path, flags=flags, vfs=CHECKSUM_VFS)
        try:
            if connection.readonly("main"):  # SQLite falls back to that without a word
                raise Unavailable(f"{path} cannot be opened for writing")
            _configure(connection, durability, create=create)
        except BaseException:
            connection.close()
            raise
    return connection


def look(path: str) -> tuple[int, int, int]:
    """(application id, schema version, number of tables) without changing a byte."""
    load_checksums()
    with in_our_words(path):
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=CHECKSUM_VFS)
        try:
            connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            application = connection.pragma("application_id")
            version = connection.pragma("user_version")
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        finally:
            connection.close()
    return int(application), int(version), int(tables)


def _configure(connection: apsw.Connection, durability: Durability, *, create: bool) -> None:
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    if create:
        connection.reserve_bytes(None, CHECKSUM_BYTES)
        _pragma(connection, "page_size", PAGE_BYTES)
        _pragma(connection, "auto_vacuum", 2)  # incremental; only before the first table
    _pragma(connection, "journal_mode", "wal")
    _pragma(connection, "synchronous", 2 if durability == "power" else 1)
    _pragma(connection, "foreign_keys", 1)
    _pragma(connection, "cell_size_check", 1)
    _pragma(connection, "mmap_size", 0)
    _zero_what_is_deleted(connection, "fast")
    if sys.platform == "darwin":  # fsync does not reach the platter there
        _pragma(connection, "fullfsync", 1)
        _pragma(connection, "checkpoint_fullfsync", 1)


def _pragma(connection: apsw.Connection, name: str, wanted: int | str) -> None:
    """Set a pragma, and see that it took effect: SQLite ignores what it cannot do."""
    connection.pragma(name, wanted)
    got = connection.pragma(name)
    if got != wanted:
        raise Unavailable(f"SQLite keeps {name} at {got!r} instead of {wanted!r}")


@contextlib.contextmanager
def zeroing(connection: apsw.Connection) -> Iterator[None]:
    """Pages that become free are overwritten at once.

    A page that is used again in the same transaction keeps what it held, up to where it is
    written: behind a new pack there could stay a piece of an old one, for as long as it lives.
    """
    _zero_what_is_deleted(connection, "on")
    try:
        yield
    finally:
        _zero_what_is_deleted(connection, "fast")


def _zero_what_is_deleted(connection: apsw.Connection, how: Literal["fast", "on"]) -> None:
    """`fast`: only in pages that are written anyway, not in those that become free."""
    if connection.pragma("secure_delete", how) != {"fast": 2, "on": 1}[how]:
        raise Unavailable("SQLite does not overwrite what is deleted; install the apsw wheel")


def check_pages_are_checked(connection: apsw.Connection, path: str) -> None:
    """A file without space for checksums is not ours, or its header is damaged."""
    if connection.reserve_bytes(None, -1) != CHECKSUM_BYTES:
        raise Corrupt(f"{path} has lost its page checksums; its header is damaged")


def seems_cut(path: str, header: bytes) -> bool:
    """Whether a file is shorter than its header says, or ends inside a page."""
    size = os.path.getsize(path)
    page_size = int.from_bytes(header[16:18])
    if page_size != PAGE_BYTES:
        return False  # not one of ours, or damaged: SQLite finds out which
    return size < int.from_bytes(header[28:32]) * page_size or size % page_size != 0


def check_wal(connection: apsw.Connection, path: str) -> None:
    """A WAL that was cut while a process has it open reads as zeros where frames should be.

    SQLite would go on behind them, and in the end copy the zeros over the main file. To be called
    under the writer's lock, outside of a transaction. The size comes first: a process that empties
    a WAL lets it have no frames before it cuts it.
    """
    size = wal_bytes(path)
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(NOOP)").get
    if size < wal_bytes_of(frames):
        raise Corrupt(
            f"{path}-wal was cut while it was open; nothing was saved. Close it everywhere and "
            "open it again, which takes over from its backup"
        )


def wal_bytes(path: str) -> int:
    """How long the WAL of a file is; 0 if there is none."""
    try:
        return os.stat(path + "-wal").st_size
    except FileNotFoundError:
        return 0


def wal_bytes_of(frames: int) -> int:
    """How long a WAL with so many frames is at least."""
    return _WAL_HEADER + frames * (_FRAME_HEADER + PAGE_BYTES) if frames > 0 else 0


def cut_wal(connection: apsw.Connection, path: str) -> None:
    """Cut off what a transaction that was rolled back has left at the end of the WAL.

    SQLite would write over it, or cut it once all of the WAL has been moved; on a full disk that is
    the space which is needed to do so. To be called under the writer's lock, outside of a
    transaction: nothing reads behind the last frame of a commit.
    """
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(NOOP)").get
    if frames >= 0 and wal_bytes(path) > (size := wal_bytes_of(frames) or _WAL_HEADER):
        os.truncate(path + "-wal", size)


_WAL_HEADER, _FRAME_HEADER = 32, 24


def refuse_place(path: str) -> None:
    """Places where a WAL would not be shared by all processes that have the file open."""
    folder, name = os.path.split(os.path.abspath(path))
    real = os.path.realpath(folder)
    mounts = _mounts()
    kind = _file_system(real, mounts)
    if kind in _NETWORK:  # which have no memory that processes share
        raise Misuse(f"{path} lies on a network file system ({kind}); use a local disk")
    if any(mount == os.path.join(real, name) for mount, _ in mounts):
        # As into a container. Its WAL would lie in a folder that others do not see, and go with it.
        raise Misuse(f"{path} is mounted by itself, without what lies beside it; mount its folder")


def lies_in_memory(path: str) -> bool:
    """Whether the file system that a file lies on ends with the power."""
    return _file_system(os.path.realpath(os.path.dirname(path)), _mounts()) in _IN_MEMORY


def refuse_second_name(path: str) -> None:
    """SQLite has a WAL for each name of a file, and to move one destroys what the other holds."""
    if os.path.exists(path) and os.stat(path).st_nlink > 1:
        raise Misuse(
            f"{path} is a file with several names (hard links, as of cp -l), and what is saved "
            "under one would destroy what is saved under another; close it everywhere, replace "
            "it and every file whose name begins with its own by copies, and open it again"
        )


_MOUNTS = "/proc/self/mountinfo"
_IN_MEMORY = {"tmpfs", "ramfs"}
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "fuse.sshfs", "afpfs", "webdav"}


def _mounts() -> list[tuple[str, str]]:
    """What is mounted where, and the type of its file system, where the kernel says (Linux)."""
    try:
        with open(_MOUNTS) as file:
            parts = [line.partition(" - ") for line in file.read().splitlines()]
    except OSError:
        return []
    return [(left.split()[4].replace("\\040", " "), right.split()[0]) for left, _, right in parts]


def _file_system(folder: str, mounts: list[tuple[str, str]]) -> str | None:
    """The type of the file system under `folder`."""
    best, kind = "", None
    for mount, type_ in mounts:
        inside = mount == "/" or folder == mount or folder.startswith(mount + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, type_
    return kind


@contextlib.contextmanager
def at_one_moment(connection: apsw.Connection) -> Iterator[None]:
    """Several reads of the same moment. After an error the transaction is left open."""
    connection.execute("BEGIN")
    yield
    connection.execute("END")
