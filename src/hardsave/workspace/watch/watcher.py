"""The watcher of a workspace, for a process that stays: what may have changed since a scan.

    with watch(root, cookies=directory) as eyes:
        cache = EMPTY
        while eyes.wait():
            found = scan(root, rules=rules, cache=cache, changed=eyes.changed(cache))
            cache = snapshot(found, put).cache

`changed` names what was told since the scan that made `cache`. A scan that was given up leaves
its caller with the older cache, and so everything that it was told is told again. Whenever
something could have been missed, everything is named, with a reason, and watching begins anew:
events that were lost, a limit of the system, a root that is another directory, a watcher that
does not answer. Such a reason is logged as a warning, each once.

Only directories that a scan has looked at are watched; so nothing that is ignored costs a
watch. Nothing runs in the background: the kernel queues events, 16,384 of them unless
somebody has changed that, until they are asked for; more than that between two looks is a full
scan.

What no event tells, because there is none for it: writes through a shared mapping, before the file
is closed; writes through another name of a file, in a place that is not watched, if the file had
no other name when it was last looked at. For that, everything is named every `full_seconds`,
and `wait` returns then, too. A further write to a page of a mapping that is not written back yet
changes no stamp either: no look at stamps finds it.
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
from hardsave.workspace.watch.session import Vigil

FULL_SECONDS = 300.0
ANSWER_SECONDS = 2.0
BLIND_SECONDS = 5.0
"""Between two looks of somebody who is told nothing."""
ROOT_SECONDS = 0.5
"""Between two looks for a workspace that was removed, or moved away."""

_watch_numbers = itertools.count(1)


def watch(
    root: bytes | str | os.PathLike[str],
    *,
    cookies: Path,
    full_seconds: float | None = None,
    answer_seconds: float = ANSWER_SECONDS,
    blind_seconds: float = BLIND_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    source: Callable[[], Source] | None = None,
) -> "Watch":
    """Watch a workspace. `cookies` is a directory of ours that no scan captures; `clock` says
    when everything is due to be looked at."""
    real, beside = os.path.realpath(os.fsencode(root)), os.path.realpath(os.fsencode(cookies))
    default, seconds = _of_this_system(real, beside)
    return Watch(
        real,
        beside,
        full_seconds=seconds if full_seconds is None else full_seconds,
        answer_seconds=answer_seconds,
        blind_seconds=blind_seconds,
        clock=clock,
        source=source or default,
    )


def _of_this_system(root: bytes, cookies: bytes) -> tuple[Callable[[], Source], float]:
    """Where events come from, and how long that may be relied upon."""
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
        blind_seconds: float,
        clock: Callable[[], float],
        source: Callable[[], Source],
    ) -> None:
        self._root = root
        self._cookies = cookies
        self._full_seconds = full_seconds
        self._answer_seconds = answer_seconds
        self._blind_seconds = blind_seconds
        self._clock = clock
        self._open_source = source
        self._number = next(_watch_numbers)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._waiting = threading.Lock()
        self._is_closed = self._is_woken = False
        self._moment = 0
        self._oldest = 0  # scans with an older mark have to look at everything
        self._vigil: Vigil | None = None
        self._is_due_at = 0.0  # the next look at everything
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
        """A thread that waits returns first. To close twice does nothing."""
        if os.getpid() != self._process:
            self._close_in_child()
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._nudge()
        with self._waiting, self._lock:
            self._close_descriptors()

    def _close_in_child(self) -> None:
        """Its own descriptors, no more; and without the locks, which may never come free."""
        if not self._is_closed:
            self._is_closed = True
            self._close_descriptors()

    def _close_descriptors(self) -> None:
        if self._vigil is not None:
            self._vigil.close()
        os.close(self._reads)
        os.close(self._wakes)

    def _refuse_strangers(self) -> None:
        if os.getpid() != self._process:
            raise Misuse(
                f"this watch of {os.fsdecode(self._root)!r} belongs to process {self._process}; "
                "a forked child opens its own"
            )
        if self._is_closed:
            raise Misuse(f"this watch of {os.fsdecode(self._root)!r} is closed; open it again")

    # What changed

    def changed(self, cache: Cache) -> Changed:
        """What may be otherwise than it was seen by the scan that made this cache."""
        self._refuse_strangers()
        with self._lock:
            vigil, why = self._vigil, "nothing is known from an earlier scan"
            if vigil is not None:
                vigil.hear_all_until_now(self._answer_seconds)
                why = self._why_everything(vigil, cache)
            if vigil is None or why:
                vigil = self._begin_anew()
                why = vigil.doubt or why
            return self._tell(vigil, why, cache)

    def _why_everything(self, vigil: Vigil, cache: Cache) -> str:
        mark = _mark(cache)
        if vigil.doubt:
            return vigil.doubt
        if mark is None or mark.watch != self._number:
            return "nothing is known from an earlier scan"
        if mark.moment < self._oldest:
            return "the scan before this one was not brought to its end"
        if self._clock() >= self._is_due_at:
            return f"nothing is taken for granted longer than {self._full_seconds:g} seconds"
        return ""

    def _begin_anew(self) -> Vigil:
        """Forget what was told, and watch what the scan that follows will look at."""
        before = self._vigil
        self._oldest = self._moment
        if before is not None and before.is_blind and self._clock() < self._is_due_at:
            return before  # to try at each scan would cost more than it brings
        if before is not None:
            before.close()
        self._is_due_at = self._clock() + self._full_seconds
        self._vigil = Vigil(
            self._root,
            self._cookies,
            self._moment,
            lock=self._lock,
            open_source=self._open_source,
            warn=self._warn,
        )
        self._nudge()  # whoever waits, waits for the new one
        return self._vigil

    def _tell(self, vigil: Vigil, everything: str, cache: Cache) -> Changed:
        mark = Mark(self._number, self._moment)
        self._moment = vigil.moment = self._moment + 1
        vigil.has_news = False
        before = _mark(cache)
        if everything or before is None:
            return Changed(mark, vigil, vigil.identity, everything)
        self._oldest = before.moment
        vigil.pending.forget(self._oldest)
        return Changed(mark, vigil, vigil.identity, "", *vigil.pending.since(self._oldest))

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

        True: it is time for a scan; also if everything is due to be looked at. False:
        nothing changed within `timeout` seconds, or `wake` or `close` was called.
        """
        self._refuse_strangers()
        if not self._waiting.acquire(blocking=False):
            raise Misuse("another thread waits for this workspace already; one is enough")
        try:
            end = time.monotonic() + (float("inf") if timeout is None else timeout)
            return self._wait_for_news(end) and self._wait_for_quiet(quiet, limit)
        finally:
            self._is_woken = False
            self._waiting.release()

    def wake(self) -> None:
        """Make the thread that waits, or else the next one to wait, return at once."""
        self._refuse_strangers()
        self._is_woken = True
        self._nudge()

    def _wait_for_news(self, end: float) -> bool:
        blind_end = time.monotonic() + self._blind_seconds
        while (left := self._until_news(blind_end)) > 0:
            left_in_all = end - time.monotonic()
            if left_in_all <= 0 or not self._sleep(min(left, left_in_all)):
                return False
        return not self._is_woken and not self._is_closed

    def _until_news(self, blind_end: float) -> float:
        """How many seconds at most until it is time for a scan. None: it is."""
        with self._lock:
            vigil = self._vigil
            if vigil is None:
                return 0
            if vigil.is_blind:
                return blind_end - time.monotonic()
            vigil.hear()
            if vigil.look_at_mounts() or vigil.has_news or vigil.doubt:
                return 0
            left = self._is_due_at - self._clock()
            if vigil.sees_root:
                return left
            if vigil.is_without_root:  # and nobody tells when it comes again
                return min(left, ROOT_SECONDS)
            if vigil.is_of_another:
                return 0
            return min(left, blind_end - time.monotonic())

    def _wait_for_quiet(self, quiet: float, limit: float) -> bool:
        last = time.monotonic()
        stop = last + limit
        while (left := min(last + quiet, stop) - time.monotonic()) > 0:
            if not self._sleep(left):
                return False
            if self._hears_news():
                last = time.monotonic()
        return True

    def _hears_news(self) -> bool:
        with self._lock:
            vigil = self._vigil
            if vigil is None:
                return False
            before, vigil.has_news = vigil.has_news, False
            vigil.hear()
            heard, vigil.has_news = vigil.has_news, vigil.has_news or before
            return heard

    def _sleep(self, seconds: float) -> bool:
        """Until something is told, or time is over. False if somebody wants us to stop."""
        poll = select.poll()
        poll.register(self._reads, select.POLLIN)
        vigil = self._vigil
        if vigil is not None and (descriptor := vigil.descriptor) is not None:
            poll.register(descriptor, select.POLLIN)
        if vigil is not None and (stirs := vigil.stirs) is not None:
            poll.register(stirs, select.POLLPRI)
        poll.poll(None if seconds == float("inf") else max(seconds, 0) * 1000)
        with suppress(BlockingIOError):
            os.read(self._reads, 4096)
        return not self._is_woken and not self._is_closed

    def _nudge(self) -> None:
        with suppress(BlockingIOError):  # full: whoever waits is nudged already
            os.write(self._wakes, b"!")


def _mark(cache: Cache) -> Mark | None:
    """When the scan was asked that made this cache; None if nobody watched."""
    return None if cache.memory is None else cache.memory.mark
