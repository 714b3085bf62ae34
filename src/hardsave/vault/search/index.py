"""The file that searches read: derived from the store, one for each user, never missed.

It may be deleted or damaged at any time: the next search makes it anew. It is not backed up, and
saves do not touch it. A file for each user, because ranking counts how often a word occurs:
in one for all, ranks would tell what others write about.

A process that uses it holds an exclusive lock, and closes the file before giving the lock back. So
removing it takes nothing away from another one, and no connection crosses a fork. Where it
cannot be written, a search brings a copy up to date that goes with its vault, and sees as much.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from blake3 import blake3

from hardsave.errors import Corrupt, Unavailable
from hardsave.logs import log
from hardsave.vault.search.words import TOKENIZER, readable

if TYPE_CHECKING:
    import apsw

T = TypeVar("T")

VERSION = 3
LOCK_SECONDS = 60.0
_CACHE_KIB = 48 * 1024  # texts come by their hashes: pages all over the file

_SCHEMA = f"""
    CREATE TABLE progress (
        saved      INTEGER NOT NULL,             -- checkpoints up to this commit were looked at
        last       BLOB,                         -- the id of the one saved by it
        logged     INTEGER NOT NULL              -- the newest log entry that was looked at
    );
    CREATE TABLE timelines (
        id         INTEGER PRIMARY KEY,
        name       TEXT NOT NULL UNIQUE
    );
    CREATE TABLE checkpoints (                   -- those that are not hidden
        number     INTEGER PRIMARY KEY,
        id         BLOB NOT NULL,
        timeline   INTEGER NOT NULL,
        root       BLOB NOT NULL
    );
    CREATE TABLE tails (                         -- what a timeline had lately: see search_tail
        timeline   INTEGER PRIMARY KEY,
        known      BLOB NOT NULL
    );
    CREATE TABLE texts (                         -- every text once
        id         INTEGER PRIMARY KEY,
        digest     BLOB NOT NULL UNIQUE,
        size       INTEGER NOT NULL,             -- in UTF-8
        body       BLOB NOT NULL                 -- shorter than size: a zstd frame
    );
    CREATE TABLE places (                        -- where a timeline first had a text
        text       INTEGER NOT NULL,
        timeline   INTEGER NOT NULL,
        field      TEXT NOT NULL,
        path       TEXT NOT NULL,
        number     INTEGER NOT NULL,             -- of the checkpoint
        PRIMARY KEY (text, timeline, field, path)
    ) WITHOUT ROWID;
    CREATE INDEX places_by_timeline ON places (timeline);
    CREATE TABLE changes (                       -- which files a checkpoint has changed
        text       INTEGER NOT NULL,             -- the path
        timeline   INTEGER NOT NULL,
        number     INTEGER NOT NULL,             -- of the checkpoint
        change     TEXT NOT NULL,                -- added, changed, removed
        PRIMARY KEY (text, timeline, number)
    ) WITHOUT ROWID;
    CREATE VIEW readable AS SELECT id, text_of(size, body) AS text FROM texts;
    CREATE VIRTUAL TABLE words USING fts5(
        text, content='readable', content_rowid='id', tokenize="{TOKENIZER}"
    );
    INSERT INTO progress VALUES (0, NULL, 0);
"""  # noqa: S608 # a constant of ours


class Outdated(Exception):
    """The index does not describe this store: it is to be made anew."""


class Unwritable(Exception):
    """The index may only be read, or has no room to grow."""


class SearchIndex:
    """One user's index, at `path`, or in memory where that is None."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._memory: apsw.Connection | None = None
        self._copy: SearchIndex | None = None  # where this one cannot be written
        self._turn = threading.Lock()

    @property
    def is_made(self) -> bool:
        """Whether a search has made it."""
        return self._memory is not None or (self._path is not None and os.path.exists(self._path))

    def use(self, work: Callable[["apsw.Connection"], T]) -> T:
        """What `work` answers. It runs again, on an empty index, if the one there is no good."""
        if self._copy is None:
            try:
                with self._held():
                    return self._twice(work)
            except Unwritable as error:
                log(__name__).info("the search index cannot be written, and is copied: %s", error)
                self._copy = _copy(self._path)
        return self._copy.use(work)

    def _twice(self, work: Callable[["apsw.Connection"], T]) -> T:
        try:
            return self._once(work)
        except Outdated as error:
            log(__name__).warning("the search index is made anew: %s", error)
        self._remove()
        try:
            return self._once(work)
        except Outdated as error:
            raise Unavailable(f"the search index cannot be made: {error}") from error

    def erase(self) -> None:
        """Remove it, with every text in it."""
        try:
            with self._held():
                self._remove()
        except Unwritable as error:
            raise Unavailable(f"the search index still has it: {error}") from error
        self._copy = None

    def _once(self, work: Callable[["apsw.Connection"], T]) -> T:
        import apsw  # a program that never searches needs no database

        connection = None
        try:
            connection = self._memory or self._connect()
            return work(connection)
        except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError) as error:
            raise Unwritable(str(error)) from error
        except apsw.Error as error:
            raise _judged(error, self._path or ":memory:") from error
        finally:
            if connection is not None and connection is not self._memory:
                connection.close()

    def _connect(self) -> "apsw.Connection":
        import apsw

        from hardsave.stores.local import database as ours

        ours.load_checksums()
        if self._path is None:
            self._memory = connection = apsw.Connection(":memory:")
        else:
            with _written(self._path):
                _create(self._path)
            connection = apsw.Connection(self._path, vfs=ours.CHECKSUM_VFS)
        try:
            _prepare(connection, ours.CHECKSUM_BYTES)
        except BaseException:
            self._memory = None
            connection.close()
            raise
        return connection

    def _remove(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        for path in () if self._path is None else (self._path, f"{self._path}-journal"):
            with _written(path), contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with self._turn:
            if self._path is None:
                yield
                return
            from hardsave.stores.local.file_lock import FileLock

            lock = FileLock(self._path + "-lock")
            with _written(lock.path):
                lock.acquire(LOCK_SECONDS)
            try:
                yield
            finally:
                lock.release()
                lock.close()


def name_for(user: str | None) -> str:
    """What a user's index is called, beside the store. Whose it is cannot be read from it."""
    return "search" if user is None else f"search-{blake3(user.encode()).hexdigest(10)}"


def packed(text: str) -> tuple[int, bytes]:
    """(size, body) of a text."""
    from hardsave.stores.compression import compress

    data = text.encode("utf-8", "surrogatepass")
    frame = compress([data]) if len(data) > 200 else data
    return len(data), frame if len(frame) < len(data) else data


def text_of(size: int, body: bytes) -> str:
    from hardsave.stores.compression import decompress

    data = body if len(body) == size else decompress(body, size)
    return readable(data.decode("utf-8", "surrogatepass"))


@contextlib.contextmanager
def _written(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}") from error


def _copy(path: str | None) -> SearchIndex:
    """What is there, to be brought up to date. If that is no good, or busy, it begins with nothing:
    then the same is found, and takes longer."""
    import apsw

    from hardsave.stores.local import database as ours

    copy = SearchIndex(None)
    connection = apsw.Connection("")  # in memory while it is small, and else in a file without name
    try:
        if path is not None and os.path.exists(path):
            flags = apsw.SQLITE_OPEN_READONLY
            with (
                contextlib.closing(apsw.Connection(path, flags, ours.CHECKSUM_VFS)) as there,
                connection.backup("main", there, "main") as copying,
            ):
                copying.step()
        _prepare(connection, ours.CHECKSUM_BYTES)
        copy._memory = connection
    except (apsw.Error, Outdated) as error:
        log(__name__).info("%s cannot be copied: %s", path, error)
        connection.close()
    return copy


def _create(path: str) -> None:
    """An empty file that this user alone may read. SQLite gives its journal the same rights."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _judged(error: "apsw.Error", path: str) -> Exception:
    """Damage, or tables that are not as they should be, mean an index that is no good."""
    import apsw

    from hardsave.stores.local.database import translated

    ours = translated(error, path)
    is_no_good = isinstance(ours, Corrupt) or isinstance(error, apsw.SQLError)
    return Outdated(str(error)) if is_no_good else ours


def _prepare(connection: "apsw.Connection", checksum_bytes: int) -> None:
    """Pragmas and tables. Nothing else uses the file meanwhile: plain journalling will do."""
    import apsw

    def texts(*values: Any) -> str:
        try:
            return text_of(*values)
        except (Corrupt, UnicodeDecodeError) as error:
            raise Outdated(str(error)) from error

    flags = apsw.SQLITE_INNOCUOUS
    connection.create_scalar_function("text_of", texts, 2, deterministic=True, flags=flags)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.pragma("cell_size_check", 1)
    if connection.execute("SELECT count(*) FROM sqlite_schema").get == 0:
        connection.reserve_bytes(None, checksum_bytes)
        with connection:
            connection.execute(_SCHEMA)
            connection.pragma("user_version", VERSION)
    connection.pragma("synchronous", 1)
    connection.pragma("mmap_size", 0)
    connection.pragma("cache_size", -_CACHE_KIB)
    found = connection.pragma("user_version")
    if found != VERSION or connection.reserve_bytes(None, -1) != checksum_bytes:
        raise Outdated(f"it is of version {found}, and this is {VERSION}")
