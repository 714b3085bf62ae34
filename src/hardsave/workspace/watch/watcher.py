"""The watch of a workspace, for a process that stays: what may have changed since a scan.

    with watch(root, cookies=directory) as watched:
        cache = EMPTY
        while watched.wait():
            found = scan(root, rules=rules, cache=cache, changed=watched.changed(cache))
            cache = snapshot(found, put).cache

`changed` names what events were about since the scan that made `cache`. A scan that was given up
leaves its caller with the older cache, and so it is told the same again. Whenever something could
have been missed, a full scan is asked for, with a reason, and watching begins anew: events that
were lost, a limit of the system, a root that is another directory, a watcher that does not answer.
Such a reason is logged as a warning, each once.

Only directories that a scan has looked at are watched; so nothing that is ignored costs a watch.
Nothing runs in the background: the kernel queues events, 16,384 of them by default, until they are
read; more than that between two reads is a full scan.

There is no event for writes through a shared mapping, before the file is closed; nor for writes
through another name of a file, in a place that is not watched, if the file had no other name when
it was last looked at. For these, a full scan is asked for every `full_seconds`, and `wait` returns
then, too. A further write to a page of a mapping that is not written back yet changes no stamp
either: no scan finds it.
"""

import itertools
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from hardsave.errors import Misuse
from hardsave.logs import log
from hardsave.workspace.scan.cache import Cache
from hardsave.workspace.scan.changed_paths import Changed, Mark
from hardsave.workspace.watch.inotify import Inotify, Source
from hardsave.workspace.watch.session import WatchSession

FULL_SECONDS = 300.0
ANSWER_SECONDS = 2.0
NO_EVENTS_SECONDS = 5.0
"""Between two scans where there are no events."""
ROOT_SECONDS = 0.5
"""Between two attempts to find a workspace that was removed, or moved away."""

_watch_numbers = itertools.count(1)


def watch(
    root: bytes | str | os.PathLike[str],
    *,
    cookies: Path,
    full_seconds: float | None = None,
    answer_seconds: float = ANSWER_SECONDS,
    no_events_seconds: float = NO_EVENTS_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    source: Callable[[], Source] | None = None,
) -> "Watch":
    """Watch a workspace. `cookies` is a directory of ours that no scan captures; `clock` says
    when a full scan is due."""
    real, beside = os.path.realpath(os.fsencode(root)), os.path.realpath(os.fsencode(cookies))
    default, seconds = _of_this_system(real, beside)
    return Watch(
        real,
        beside,
        full_seconds=seconds if full_seconds is None else full_seconds,
        answer_seconds=answer_seconds,
        no_events_seconds=no_events_seconds,
        clock=clock,
        source=source or default,
    )


def _of_this_system(root: bytes, cookies: bytes) -> tuple[Callable[[], Source], float]:
    """Where events come from, and after how many seconds a full scan is due."""
    system: str = sys.platform  # a plain string: what is for other systems is checked, too
    if system == "linux":
        return Inotify, FULL_SECONDS
    from hardsave.workspace.watch.watchfiles_backend import FULL_SECONDS as SECONDS
    from hardsave.workspace.watch.watchfiles_backend import Watchfiles

    return partial(Watchfiles, root, cookies), SECONDS


class Watch:
    """Safe to use from several threads, of which one may wait. A forked child must not use it."""

    def __init__(
        self,
        root: bytes,
        cookies: bytes,
        *,
        full_seconds: float,
        answer_seconds: float,
        no_events_seconds: float,
        clock: Callable[[], float],
        source: Callable[[], Source],
    ) -> None:
        self._root = root
        self._cookies = cookies
        self._full_seconds = full_seconds
        self._answer_seconds = answer_seconds
        self._no_events_seconds = no_events_seconds
        self._clock = clock
        self._open_source = source
        self._number = next(_watch_numbers)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._waiting = threading.Lock()
        self._is_closed = self._is_woken = False
        self._moment = 0
        self._oldest = 0  # a scan with an older mark has to be a full one
        self._session: WatchSession | None = None
        self._is_due_at = 0.0  # the next full scan
        self._warned: set[str] = set()
        self._reads, self._wakes = os.pipe()
        os.set_blocking(self._reads, False)
        os.set_blocking(self._wakes, False)

    # Closing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wakes a thread that waits, and closes after it has returned. Closing twice is fine."""
        if os.getpid() != self._process:
            self._close_in_child()
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._wake_waiter()
        with self._waiting, self._lock:
            self._close_descriptors()

    def _close_in_child(self) -> None:
        """Close the inherited descriptors, without the locks, which may never come free."""
        if not self._is_closed:
            self._is_closed = True
            self._close_descriptors()

    def _close_descriptors(self) -> None:
        if self._session is not None:
            self._session.close()
        os.close(self._reads)
        os.close(self._wakes)

    def _refuse_misuse(self) -> None:
        if os.getpid() != self._process:
            raise Misuse(
                f"this watch of {os.fsdecode(self._root)!r} belongs to process {self._process}; "
                "a forked child opens its own"
            )
        if self._is_closed:
            raise Misuse(f"this watch of {os.fsdecode(self._root)!r} is closed; open it again")

    # What changed

    def changed(self, cache: Cache) -> Changed:
        """What may differ from what the scan saw that made this cache."""
        self._refuse_misuse()
        with self._lock:
            session, why = self._session, "nothing is known from an earlier scan"
            if session is not None:
                session.read_all_until_now(self._answer_seconds)
                why = self._full_scan_reason(session, cache)
            if session is None or why:
                session = self._start_session()
                why = session.rescan_reason or why
            return self._changed_since(session, why, cache)

    def _full_scan_reason(self, session: WatchSession, cache: Cache) -> str:
        mark = _mark(cache)
        if session.rescan_reason:
            return session.rescan_reason
        if mark is None or mark.watch != self._number:
            return "nothing is known from an earlier scan"
        if mark.moment < self._oldest:
            return "the scan before this one was not brought to its end"
        if self._clock() >= self._is_due_at:
            return f"nothing is taken for granted longer than {self._full_seconds:g} seconds"
        return ""

    def _start_session(self) -> WatchSession:
        """Start a new session: it watches the directories that the next scan will look at."""
        before = self._session
        self._oldest = self._moment
        if before is not None and before.gets_no_events and self._clock() < self._is_due_at:
            return before  # to try again at each scan would cost too much
        if before is not None:
            before.close()
        self._is_due_at = self._clock() + self._full_seconds
        self._session = WatchSession(
            self._root,
            self._cookies,
            self._moment,
            lock=self._lock,
            open_source=self._open_source,
            warn=self._warn,
        )
        self._wake_waiter()  # a thread that waits shall wait for the new session
        return self._session

    def _changed_since(self, session: WatchSession, full_scan_reason: str, cache: Cache) -> Changed:
        mark = Mark(self._number, self._moment)
        self._moment = session.moment = self._moment + 1
        session.has_changes = False
        before = _mark(cache)
        if full_scan_reason or before is None:
            return Changed(mark, session, session.identity, full_scan_reason)
        self._oldest = before.moment
        session.pending.forget(self._oldest)
        return Changed(mark, session, session.identity, "", *session.pending.since(self._oldest))

    def _warn(self, why: str) -> None:
        if why not in self._warned:
            self._warned.add(why)
            root = os.fsdecode(self._root)
            log(__name__).warning("%s: %s; all of it is looked at instead", root, why)

    # Waiting

    def wait(
        self, *, quiet: float = 0.15, limit: float = 2.0, timeout: float | None = None
    ) -> bool:
        """Wait until something changed and then nothing did for `quiet` seconds, or until it
        has gone on for `limit` seconds.

        True: it is time for a scan, also because a full one is due. False:
        nothing changed within `timeout` seconds, or `wake` or `close` was called.
        """
        self._refuse_misuse()
        if not self._waiting.acquire(blocking=False):
            raise Misuse("another thread waits for this workspace already; one is enough")
        try:
            end = time.monotonic() + (float("inf") if timeout is None else timeout)
            return self._wait_for_changes(end) and self._wait_for_quiet(quiet, limit)
        finally:
            self._is_woken = False
            self._waiting.release()

    def wake(self) -> None:
        """Make the thread that waits, or else the next one to wait, return at once."""
        self._refuse_misuse()
        self._is_woken = True
        self._wake_waiter()

    def _wait_for_changes(self, end: float) -> bool:
        no_events_end = time.monotonic() + self._no_events_seconds
        while (left := self._seconds_until_scan(no_events_end)) > 0:
            left_in_all = end - time.monotonic()
            if left_in_all <= 0 or not self._sleep(min(left, left_in_all)):
                return False
        return not self._is_woken and not self._is_closed

    def _seconds_until_scan(self, no_events_end: float) -> float:
        """How many seconds at most until it is time for a scan. 0 or less: it is."""
        with self._lock:
            session = self._session
            if session is None:
                return 0
            if session.gets_no_events:
                return no_events_end - time.monotonic()
            session.read_events()
            if session.look_at_mounts() or session.has_changes or session.rescan_reason:
                return 0
            left = self._is_due_at - self._clock()
            if session.watches_root:
                return left
            if session.has_no_root:  # and no event tells when it comes again
                return min(left, ROOT_SECONDS)
            if session.root_was_replaced:
                return 0
            return min(left, no_events_end - time.monotonic())

    def _wait_for_quiet(self, quiet: float, limit: float) -> bool:
        last = time.monotonic()
        stop = last + limit
        while (left := min(last + quiet, stop) - time.monotonic()) > 0:
            if not self._sleep(left):
                return False
            if self._finds_changes():
                last = time.monotonic()
        return True

    def _finds_changes(self) -> bool:
        with self._lock:
            session = self._session
            if session is None:
                return False
            before, session.has_changes = session.has_changes, False
            session.read_events()
            changed, session.has_changes = session.has_changes, session.has_changes or before
            return changed

    def _sleep(self, seconds: float) -> bool:
        """Sleep until an event comes, or time is over. False if `wake` or `close` was called."""
        poll = select.poll()
        poll.register(self._reads, select.POLLIN)
        session = self._session
        if session is not None and (descriptor := session.descriptor) is not None:
            poll.register(descriptor, select.POLLIN)
        if session is not None and (mounts_fd := session.mounts_fd) is not None:
            poll.register(mounts_fd, select.POLLPRI)
        poll.poll(None if seconds == float("inf") else max(seconds, 0) * 1000)
        with suppress(BlockingIOError):
            os.read(self._reads, 4096)
        return not self._is_woken and not self._is_closed

    def _wake_waiter(self) -> None:
        with suppress(BlockingIOError):  # full: the thread that waits is woken already
            os.write(self._wakes, b"!")


def _mark(cache: Cache) -> Mark | None:
    """The mark of the scan that made this cache; None if it was made without a watch."""
    return None if cache.last_scan is None else cache.last_scan.mark
