"""A store that cannot be written, read without a byte being written: on a full disk, on a file
system that is mounted read-only, or of files that we may only read.

SQLite reads a WAL by way of a shared index beside the file, which the first process has to make:
where there is no space for that, nothing could be opened, not even to look or to export. Then each
connection keeps the index in its own memory. It takes no lock either, so nothing may be written
meanwhile: a process that does write has found space, or another path to the files, which shows in
them, and the store is opened anew. A WAL that is there is read; nothing of it is left out.

Pages of the main file are checked against their checksums here, too; SQLite checks the WAL's.
"""

import os
import threading
import time
from typing import Any

import apsw

from hardsave.defaults import BUSY_SECONDS
from hardsave.errors import Corrupt, Unavailable
from hardsave.stores.local.database import CHECKSUM_VFS, in_our_words, load_checksums
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.connection import PAGE_BYTES
from hardsave.stores.sqlite.open.commit_mark import CommitMark
from hardsave.stores.sqlite.salvage.wal_reader import with_checksum
from hardsave.tuples import NamedTuple

VFS = "hardsave-read-only"

_BASE = "unix-none"
_NO_ROOM = (apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMMAP)

_COARSE = 0.05  # seconds
_LOOKS = 40

_making = threading.Lock()
_vfs: list[apsw.VFS] = []
_files: dict[tuple[int, int], int] = {}  # main files that were read: see `_MainFile`


def is_disk_full(error: Exception) -> bool:
    """Whether a store could not be opened or written because its disk is full."""
    cause = error if isinstance(error, apsw.Error) else error.__cause__
    code = getattr(cause, "extendedresult", 0)
    return isinstance(cause, apsw.FullError) or code in _NO_ROOM


class Reason(NamedTuple):
    """Why a store can only be read, and what would help."""

    why: str
    cure: str


NO_ROOM = Reason("no space left for {}", "free some")
ASKED = Reason("{} was opened with read_only=True", "open it without read_only=True")


def read_only(path: str) -> Reason | None:
    """Why a store that is there may not be written; None if it may, as far as one can see."""
    if not os.path.isfile(path):
        return None
    if not os.access(path, os.W_OK):
        return Reason("{} may not be written", "make it writable, or copy its folder elsewhere")
    if os.access(os.path.dirname(path) or ".", os.W_OK):
        return None
    beside = [path + end for end in ("-lock", "-open", "-mark", "-wal", "-shm")]
    if all(os.access(each, os.W_OK) for each in beside):
        return None  # nothing has to be made there
    return Reason("nothing can be made beside {}", "make its folder writable, or copy it elsewhere")


class ReadOnlyFile:
    """The file at `path` as it is right now; `Corrupt` if it ends before its mark."""

    def __init__(self, path: str, mark: CommitMark, reason: Reason = NO_ROOM) -> None:
        self.path = path
        self.reason = reason
        self._stamp = _stamp(path) if reason is NO_ROOM else _settled(path)
        connection = self.connect()
        try:
            with in_our_words(path):
                self._check(connection, mark)
        finally:
            connection.close()

    def _check(self, connection: apsw.Connection, mark: CommitMark) -> None:
        application, version = (connection.pragma(x) for x in ("application_id", "user_version"))
        tables: Any = connection.execute("SELECT count(*) FROM sqlite_schema").get
        schema.check_is_ours(self.path, int(application), int(version), int(tables))
        if tables and version != schema.VERSION:
            raise Unavailable(
                f"{self.path} is of an older Hardsave, and has to be renewed: first "
                f"{self.reason.cure}"
            )
        known, number = mark.read(), schema.last_number(connection) if tables else 0
        if known is not None and known.number > number and not known.relaxed:
            raise Corrupt(
                f"{self.path} ends at commit {number}, but commit {known.number} was acknowledged; "
                f"{self.reason.cure} and open it again, which takes over from its backup"
            )
        if not tables:
            raise Unavailable(f"{self.path} is empty, and {self.reason.why.format('it')}")

    def connect(self) -> apsw.Connection:
        return connect(self.path)

    def has_moved(self) -> bool:
        """Whether a process has written since: it may be writable by now, or by another path."""
        return _stamp(self.path) != self._stamp

    def refusal(self) -> Unavailable:
        why = self.reason.why.format(self.path)
        return Unavailable(f"{why}: it is open for reading alone; {self.reason.cure} and repeat")

    def close(self) -> None:
        """Nothing is held."""


class LiveFile(ReadOnlyFile):
    """A file that other processes have open, so that the index of its WAL is there. It is shared
    with them: their commits are seen at once, and their locks hold."""

    def __init__(self, path: str, mark: CommitMark) -> None:
        self.path = path
        self.reason = ASKED
        self._file = _identity(path)
        self._kept = self.connect()  # as long as it is open, no process takes the index away
        try:
            with in_our_words(path):
                self._check(self._kept, mark)
        except BaseException:
            self._kept.close()
            raise

    def connect(self) -> apsw.Connection:
        load_checksums()
        with in_our_words(self.path):
            flags = apsw.SQLITE_OPEN_READONLY
            return _configured(apsw.Connection(self.path, flags=flags, vfs=CHECKSUM_VFS))

    def has_moved(self) -> bool:
        """Whether another file lies there by now."""
        return _identity(self.path) != self._file

    def close(self) -> None:
        self._kept.close()


def is_live(path: str) -> bool:
    """Whether the WAL and its index lie beside a file: a process has it open, or was killed."""
    return all(os.access(path + end, os.W_OK) for end in ("-wal", "-shm"))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _configured(connection: apsw.Connection) -> apsw.Connection:
    try:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # which would write
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: str) -> apsw.Connection:
    """A connection that reads, and nothing else."""
    _make_vfs()
    with in_our_words(path):
        connection = _configured(_opened(path))
        try:
            connection.pragma("locking_mode", "exclusive")  # before the first read
        except BaseException:
            connection.close()
            raise
    return connection


def _opened(path: str) -> apsw.Connection:
    try:
        return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=VFS)
    except OSError as error:  # of a file that we may not even read
        raise Unavailable(f"{path} cannot be read: {error}; see to it, then repeat") from error


def _stamp(path: str) -> list[tuple[int, int, int] | None]:
    return [_look(path), _look(path + "-wal"), _look(path + "-takeover")]


def _settled(path: str) -> list[tuple[int, int, int] | None]:
    """The same, older than file systems count time: what is written from here on shows."""
    for _ in range(_LOOKS):
        found = _stamp(path)
        youngest = max((each[2] for each in found if each is not None), default=0)
        if abs(time.time_ns() - youngest) > _COARSE * 1e9:
            return found
        time.sleep(_COARSE)
    raise Unavailable(f"others write to {path}, which can only be read here; repeat it")


def _look(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not found.st_size:
        return None  # an empty WAL is as good as none, and comes and goes
    return found.st_ino, found.st_size, found.st_mtime_ns


# Files


def _make_vfs() -> None:
    with _making:
        if not _vfs:
            _vfs.append(_Vfs())


class _Vfs(apsw.VFS):
    def __init__(self) -> None:
        super().__init__(VFS, _BASE)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # SQLite's name
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _MainFile(name.filename())
        if flags[0] & apsw.SQLITE_OPEN_WAL and not os.path.exists(name):
            return _NoFile()  # a WAL that is not there is empty; nothing is made
        return apsw.VFSFile(_BASE, name, flags)

    def xDelete(self, name: str, is_synced: bool) -> None:  # SQLite's name
        pass  # SQLite would delete a WAL here; nothing is ours to delete


class _File:
    """What SQLite asks of a file that is not written."""

    def xClose(self) -> None:
        pass

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return PAGE_BYTES

    def xDeviceCharacteristics(self) -> int:
        return 0


class _MainFile(_File):
    """The main file. It is never closed: that would take the locks away which a connection of this
    process may have on it by then, because POSIX locks belong to a process and a file."""

    def __init__(self, path: str) -> None:
        found = os.stat(path)
        key = found.st_dev, found.st_ino
        with _making:
            if key not in _files:
                _files[key] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._file = _files[key]

    def xRead(self, amount: int, offset: int) -> bytes:
        data = os.pread(self._file, amount, offset)
        if len(data) == PAGE_BYTES and offset % PAGE_BYTES == 0:
            _check_page(data, offset // PAGE_BYTES + 1)
        return data

    def xFileSize(self) -> int:
        return os.fstat(self._file).st_size

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False


class _NoFile(_File):
    """A file that is empty, and stays so."""

    def xRead(self, amount: int, offset: int) -> bytes:
        return b""

    def xFileSize(self) -> int:
        return 0


def _check_page(page: bytes, number: int) -> None:
    if with_checksum(page) != page:
        error = apsw.IOError(f"the checksum of page {number} is wrong")
        error.extendedresult = apsw.SQLITE_IOERR_DATA  # type: ignore[attr-defined] # apsw looks for it
        raise error
