"""Watching where there is no inotify: the changes of the watchfiles library, as inotify events.

The library watches whole trees in a thread of its own, and does not say when it has missed
something. So its events only make a scan quicker, and full scans are more frequent.
"""

import itertools
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import ENOSYS, ETIMEDOUT

from hardsave.workspace.watch import inotify
from hardsave.workspace.watch.inotify import Event

FULL_SECONDS = 60.0
_READY_SECONDS = 10.0
_PROBE = b".hardsave-cookie-probe-"


def events(
    path: bytes, kind: str, *, is_dir: bool, numbers: Mapping[bytes, int]
) -> Iterator[Event]:
    """What a change of a path means for the watched directories. Pure.

    The kind of a change is not relied upon: the library may have merged several changes of a path.
    """
    above, _, name = path.rpartition(b"/")
    is_dir = is_dir or path in numbers
    if path in numbers:
        yield Event(numbers[path], inotify.ATTRIB)
    if above in numbers:
        mask = inotify.MODIFY if kind == "modified" and not is_dir else inotify.CREATE
        yield Event(numbers[above], mask | (inotify.IS_DIR if is_dir else 0), name)
        return
    while above and above not in numbers:  # in a directory that is ignored, or not known yet
        above, _, name = above.rpartition(b"/")
    if above:
        yield Event(numbers[above], inotify.ATTRIB | inotify.IS_DIR, name)


class Watchfiles:
    """Takes the place of an inotify instance. To watch one more directory costs nothing."""

    is_prompt = False

    def __init__(self, root: bytes, cookies: bytes) -> None:
        try:
            import watchfiles
        except ImportError as error:
            raise OSError(ENOSYS, "the library watchfiles is not installed") from error
        self._watchfiles = watchfiles
        self._roots = (os.fsdecode(root), os.fsdecode(cookies))
        self._numbers: dict[bytes, int] = {}
        self._paths: dict[int, bytes] = {}
        self._next = itertools.count(1)
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.fd, self._wakes = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._wakes, False)
        self._thread = threading.Thread(target=self._listen, name="hardsave-watch", daemon=True)
        self._thread.start()
        self._wait_until_ready(cookies)

    def add(self, path: bytes, mask: int) -> int:
        path = path.rstrip(b"/")
        with self._lock:
            number = self._numbers.setdefault(path, next(self._next))
            self._paths[number] = path
            return number

    def remove(self, watch: int) -> None:
        with self._lock:
            path = self._paths.pop(watch, None)
            if path is not None:
                del self._numbers[path]

    def read(self) -> list[Event]:
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)
        with self._lock:
            found, self._events = self._events, []
            return found

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self.fd)
        os.close(self._wakes)

    # In the thread

    def _listen(self) -> None:
        try:
            for changes in self._watchfiles.watch(
                *self._roots,
                watch_filter=None,
                debounce=50,
                step=5,
                rust_timeout=100,  # how long it takes at most to notice `stop_event`
                stop_event=self._stop,
                raise_interrupt=False,
            ):
                self._convert([(os.fsencode(path), kind.name) for kind, path in changes])
        finally:  # also after an error: from now on no events come
            self._put([Event(-1, inotify.Q_OVERFLOW)])

    def _convert(self, changes: list[tuple[bytes, str]]) -> None:
        found = [(path, kind, _is_directory(path)) for path, kind in changes]
        with self._lock:
            numbers = dict(self._numbers) if len(found) > 1 else self._numbers
            converted = [
                event
                for path, kind, is_dir in found
                for event in events(path, kind, is_dir=is_dir, numbers=numbers)
            ]
        self._put(converted)

    def _put(self, more: list[Event]) -> None:
        with self._lock:
            self._events += more
        with suppress(BlockingIOError):
            os.write(self._wakes, b"!")

    def _wait_until_ready(self, cookies: bytes) -> None:
        """The library does not say from when on it watches: files are made until one is noticed."""
        number = self.add(cookies, 0)
        end = time.monotonic() + _READY_SECONDS
        for probe in itertools.count():
            path = cookies + b"/%b%d-%d" % (_PROBE, os.getpid(), probe)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            time.sleep(0.02)
            with suppress(FileNotFoundError):
                os.unlink(path)
            if any(event.watch == number for event in self.read()):
                return
            if time.monotonic() > end:
                self.close()
                raise OSError(ETIMEDOUT, "the library watchfiles tells nothing")


def _is_directory(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
