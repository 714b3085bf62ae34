"""Objects that this host has fetched from a store on a server, for the next attempt at a job.

Contract. What is read is checked against its hash. What is missing, damaged, or cannot be read or
written at once is fetched from the store, and no work fails or waits for the cache. Processes of
this host may use it together, and one of them may be stopped or killed while it does. A cache is
of one mark, which says after which purge its objects were fetched: what a process that has read an
earlier mark still writes is never read, and goes with the folder.

About as many bytes are kept as the bound says; those that were not used for longest go first. A
workspace that is larger than the bound has a part of its contents here.
"""

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from hardsave.defaults import HOST_CACHE_BYTES
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash, digest
from hardsave.workspace.snapshot.content import Fetch

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS objects (
        hash BLOB PRIMARY KEY,
        size INTEGER NOT NULL,
        used INTEGER NOT NULL,  -- when it was last needed, in nanoseconds since 1970
        data BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS objects_by_use ON objects (used, size);
"""
_BUSY_MILLISECONDS = 200  # a writer that was stopped holds its lock: the others go without
_TRIES = 5  # to remove a folder that another process adds files to


class HostCache:
    """The cache in a folder."""

    def __init__(self, folder: Path, limit: int = HOST_CACHE_BYTES) -> None:
        self._folder = folder
        self._limit = limit

    @contextmanager
    def before(self, fetch: Fetch, mark: bytes, is_valid: Callable[[], bool]) -> Iterator[Fetch]:
        """A fetch for the block that asks `fetch` for what is not here. The cache is used if
        `is_valid` says so once it is open: a purge that comes later removes it."""
        try:
            connection = self._connect(mark)
        except (OSError, apsw.Error) as error:
            self._give_up(error)
            yield fetch
            return
        with closing(connection):
            if not is_valid():
                yield fetch
                return
            cached = _Cached(connection, fetch, self._limit, self._give_up)
            yield cached
            cached.end()

    def drop(self) -> None:
        """Remove all of it: it may hold what must be gone."""
        for _ in range(_TRIES):
            shutil.rmtree(self._folder, ignore_errors=True)
            if not self._folder.exists():
                return
        raise Unavailable(f"{self._folder} cannot be removed; see to its rights, then repeat")

    def _connect(self, mark: bytes) -> apsw.Connection:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        name = digest(_SCHEMA.encode() + mark).hex()  # no process takes one of another mark for it
        connection = apsw.Connection(str(self._folder / name))
        try:
            connection.set_busy_timeout(_BUSY_MILLISECONDS)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", 0)  # power that is lost may damage it
            connection.transaction_mode = "IMMEDIATE"
            connection.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_up(self, error: Exception) -> None:
        """A damaged cache goes; one that is busy, or on a full disk, is left alone."""
        log(__name__).info("the cache %s is not used now: %s", self._folder, error)
        if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.SQLError | apsw.IOError):
            shutil.rmtree(self._folder, ignore_errors=True)


class _Cached:
    """A fetch that keeps what it has fetched, until the cache fails for the first time."""

    def __init__(
        self,
        connection: apsw.Connection,
        fetch: Fetch,
        limit: int,
        give_up: Callable[[Exception], None],
    ) -> None:
        self._connection = connection
        self._fetch = fetch
        self._limit = limit
        self._give_up = give_up
        self._now = time.time_ns()
        self._needed: set[Hash] = set()  # and not noted yet
        self._room: int | None = None  # bytes, once it is known
        self._works = True

    def __call__(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        near = self._tried(lambda: self._read(wanted)) or {}
        far = [address for address in wanted if address not in near]
        if not far:
            return near
        found = self._fetch(far)
        self._tried(lambda: self._keep(found))
        return {**near, **found}

    def end(self) -> None:
        self._tried(self._note_use)

    def _tried(self, work: Callable[[], dict[Hash, bytes] | None]) -> dict[Hash, bytes] | None:
        if self._works:
            try:
                return work()
            except apsw.Error as error:
                self._works = False
                self._give_up(error)
        return None

    def _read(self, wanted: Collection[Hash]) -> dict[Hash, bytes]:
        keys = [(address,) for address in dict.fromkeys(wanted)]
        asked = "SELECT hash, data FROM objects WHERE hash = ?"
        rows = self._connection.executemany(asked, keys)
        found = {address: data for address, data in rows if _is_sound(address, data)}
        self._needed |= found.keys()
        return found

    def _keep(self, objects: Mapping[Hash, bytes]) -> None:
        size = sum(map(len, objects.values()))
        rows = [(key, len(data), self._now, data) for key, data in objects.items()]
        with self._connection:
            if self._room is None or 0 <= self._room < size:
                self._room = self._make_room(size)
            self._room -= size
            if self._room >= 0:  # else all that is here is needed by this block
                insert = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)"
                self._connection.executemany(insert, rows)

    def _make_room(self, size: int) -> int:
        """For so many bytes, by what was not needed for longest, but by nothing that this block
        needs. How much there is then."""
        self._note_use()
        self._connection.execute(
            """DELETE FROM objects WHERE used < ?1 AND hash IN (
                SELECT hash FROM (SELECT hash, sum(size) OVER (ORDER BY used DESC, hash) AS upto
                    FROM objects) WHERE upto > ?2)""",
            (self._now, self._limit - size),
        )
        kept = self._connection.execute("SELECT coalesce(sum(size), 0) FROM objects").get
        return self._limit - int(kept)

    def _note_use(self) -> None:
        rows = [(self._now, address) for address in self._needed]
        with self._connection:
            self._connection.executemany("UPDATE objects SET used = ? WHERE hash = ?", rows)
        self._needed.clear()


def _is_sound(address: Hash, data: object) -> bool:
    return isinstance(data, bytes) and digest(data) == address
