"""Where a workspace is, for one vault: its lock, its files beside the store, what is known of it.

A capture or restore holds the lock: threads of this process wait for each other, and
processes too. What is kept beside the store (the cache of the last scan, the journal of a
restore under way) goes with the workspace's id and a user: two hosts that share a folder share none
of it.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave.defaults import CAPTURE_SECONDS
from hardsave.errors import Misuse, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.objects.records import WorkspaceRecord
from hardsave.stores.local.file_lock import FileLock
from hardsave.tuples import NamedTuple
from hardsave.workspace.scan import cache as caches
from hardsave.workspace.scan.cache import Cache
from hardsave.workspace.scan.capture_policy import DEFAULT_POLICY, Policy
from hardsave.workspace.scan.git_context import GitContext
from hardsave.workspace.snapshot.capture import Git

if TYPE_CHECKING:
    from hardsave.workspace.watch.watcher import Watch


class Last(NamedTuple):
    """The capture before: an address, and what it refers to; and what it was made from, if
    that was in this process."""

    address: Hash
    refs: frozenset[Hash]
    around: GitContext | None = None
    git: Git | None = None


class Place:
    """One directory, as one user of one store captures it."""

    def __init__(
        self,
        record: WorkspaceRecord,
        prefix: str,
        own: tuple[bytes, ...],
        included: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.record = record  # as it was found, or is to be made by the first capture
        self.root = record.path
        self.journal = Path(prefix + "-journal")
        self._included = included  # by settings
        self.policy = Policy(include=self._patterns(()), own=own)
        self.sure = False
        self.last: Last | None = None
        self._eyes: tuple[int, Watch] | None = None
        self.cookies = Path(prefix + "-cookies")
        self._own = own
        self._cache_file = Path(prefix + "-cache")
        self._lock_file = Path(prefix + "-lock")
        self._cache: Cache | None = None
        self._is_written = True
        self._lock = threading.RLock()
        self._held = 0

    @property
    def id(self) -> bytes:
        """What checkpoints name it by."""
        return self.record.id

    @property
    def path(self) -> Path:
        return Path(os.fsdecode(self.root))

    def allow(
        self,
        *,
        include: tuple[str, ...] = (),
        leave_out: tuple[str, ...] = (),
        max_file_bytes: int | None = None,
        max_total_bytes: int | None = None,
        sure: bool = False,
    ) -> None:
        """What this vault captures here from now on."""
        with self._lock:
            self.sure = sure
            self.policy = Policy(
                include=self._patterns(include),
                own=(*self._own, *(os.fsencode(path) for path in leave_out)),
                max_file_bytes=DEFAULT_POLICY.max_file_bytes
                if max_file_bytes is None
                else max_file_bytes,
                max_total_bytes=DEFAULT_POLICY.max_total_bytes
                if max_total_bytes is None
                else max_total_bytes,
            )

    def _patterns(self, include: tuple[str, ...]) -> tuple[bytes, ...]:
        return tuple(os.fsencode(pattern) for pattern in (*self._included(), *include))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the directory, as far as users of this store go. May be entered again."""
        with self._lock:
            if self._held:
                yield
                return
            lock = self._acquired()
            self._held += 1
            try:
                yield
            finally:
                self._held = 0
                lock.release()  # to close it is not enough: a child that was forked has it, too
                lock.close()

    def _acquired(self) -> FileLock:
        lock = FileLock(str(self._lock_file))
        try:
            lock.acquire(CAPTURE_SECONDS)
        except OSError as error:
            raise self._unavailable(error) from error
        return lock

    def is_busy(self) -> bool:
        """Whether another thread or process holds the lock right now."""
        if self._held:
            return False
        try:
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unavailable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def _unavailable(self, error: OSError) -> Unavailable:
        return Unavailable(
            f"the lock {str(self._lock_file)!r} of a workspace cannot be opened: {error}; "
            "see to the disk, then repeat"
        )

    @property
    def eyes(self) -> "Watch | None":
        """Those of this process: a forked child has none."""
        known = self._eyes
        return known[1] if known is not None and known[0] == os.getpid() else None

    @contextmanager
    def watched(self) -> "Iterator[Watch]":
        """Keep an eye on the directory: captures then look only at what may have changed."""
        if self.eyes is not None:
            raise Misuse(f"{str(self.path)!r} is watched already; one watch is enough")
        try:
            self.cookies.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"{str(self.cookies)!r} cannot be made: {error}") from error
        from hardsave.workspace.watch.watcher import watch  # few processes stay

        with watch(self.root, cookies=self.cookies) as eyes:
            self._eyes = (os.getpid(), eyes)
            try:
                yield eyes
            finally:
                with self._lock:  # a capture under way still needs them
                    self._eyes = None

    # The cache of the last scan: lost, it costs time and nothing else

    @property
    def cache(self) -> Cache:
        if self._cache is None:
            try:
                self._cache = caches.read_file(self._cache_file)
            except OSError:
                self._cache = caches.EMPTY
        return self._cache

    def remember(self, cache: Cache, last: Last) -> None:
        """What a capture that was committed has seen."""
        cache = cache._replace(capture=(last.address, *sorted(last.refs)))
        if caches.is_worth_writing(cache, self.cache):
            self._is_written = False
        self._cache = cache
        self.last = last

    def forget(self) -> None:
        """What is known speaks of objects that may be gone."""
        self._cache = caches.EMPTY
        self.last = None
        self._is_written = False

    def write_cache(self) -> None:
        if self._is_written or self._cache is None:
            return
        self._is_written = True
        try:
            caches.write_file(self._cache_file, self._cache)
        except OSError:
            with suppress(OSError):  # then the folder is out of reach, also for readers
                self._cache_file.unlink()

    def drop_cache(self) -> None:
        """Not even names are left in it."""
        self._cache_file.unlink(missing_ok=True)
        self.forget()
        self._is_written = True
