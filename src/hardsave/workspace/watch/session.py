"""A watch session: uninterrupted watching, from one full scan to the next.

It reads the kernel's events, and notes what may have changed. It knows no scans and no caches.
Once it has a `rescan_reason` it is of no use any more: a full scan and another session follow.
"""

import errno
import itertools
import os
import select
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress

from hardsave.errors import Misuse
from hardsave.workspace.entries import joined
from hardsave.workspace.filesystem import mounts
from hardsave.workspace.filesystem.mounts import Mounts
from hardsave.workspace.watch import event_meaning
from hardsave.workspace.watch.event_meaning import Meaning, Pending, Watches
from hardsave.workspace.watch.inotify import Event, Source

_COOKIE = b".hardsave-cookie-"
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENAMETOOLONG)
_NOWHERE = (0, 0)  # the identity of a directory that is not there
_cookie_numbers = itertools.count(1)


class WatchSession:
    """Events are noted with the present `moment`, which its owner counts up.

    Scans call it from any thread; everything else happens under the lock of its owner.
    """

    def __init__(
        self,
        root: bytes,
        cookies: bytes,
        moment: int,
        *,
        lock: AbstractContextManager[object],
        open_source: Callable[[], Source],
        warn: Callable[[str], None],
    ) -> None:
        self._root = root
        self._prefix = root.rstrip(b"/") + b"/"
        self._cookies = cookies
        self._lock = lock
        self._warn = warn
        self._watches = Watches()
        self._ignored: dict[bytes, frozenset[bytes]] = {}
        self._cookie_watch = -1
        self._cookies_seen: set[bytes] = set()
        self._source: Source | None = None
        self._mounts: Mounts | None = None
        self.moment = moment
        self.pending = Pending()
        self.has_changes = False
        self.rescan_reason = ""
        self.identity = _identity(root)
        self._begin(open_source)

    def _begin(self, open_source: Callable[[], Source]) -> None:
        try:
            self._mounts = _mounts(self._root)
            self._source = open_source()
            self._cookie_watch = self._source.add(self._cookies, event_meaning.COOKIES_MASK)
            for name in os.listdir(self._cookies):  # of processes that were killed
                if name.startswith(_COOKIE):
                    _remove(joined(self._cookies, name))
        except OSError as error:
            self._give_up(event_meaning.refusal(error))
            return
        if self._mounts is not None and not mounts.tells_all(self._mounts.kind):
            self._give_up(f"other machines may change files on {self._mounts.kind} unnoticed")

    def close(self) -> None:
        for each in (self._source, self._mounts):
            if each is not None:
                each.close()
        self._source = self._mounts = None

    @property
    def descriptor(self) -> int | None:
        """Readable when there are events; None if there will never be any."""
        return None if self._source is None else self._source.fd

    @property
    def mounts_fd(self) -> int | None:
        """Has POLLPRI when anything was mounted, anywhere; None if this system does not tell."""
        return None if self._mounts is None else self._mounts.change_fd

    @property
    def gets_no_events(self) -> bool:
        return self._source is None

    @property
    def watches_root(self) -> bool:
        """Whether the workspace itself is watched. It is not if the scan could not open it."""
        return b"" in self._watches

    @property
    def has_no_root(self) -> bool:
        """Whether there is no workspace, and there was none when it began."""
        return self.identity == _NOWHERE == _identity(self._root)

    @property
    def root_was_replaced(self) -> bool:
        """Whether the workspace is another directory than it was, or is there again."""
        return self.identity != _identity(self._root)

    def _require_rescan(self, why: str) -> None:
        if not self.rescan_reason:
            self.rescan_reason = why
            self._warn(why)

    def _give_up(self, why: str) -> None:
        self._require_rescan(why)
        self.close()

    # Called by a scan

    def arm(self, path: bytes) -> bool:
        with self._lock:
            if self._source is None or path in self._watches:
                return False
            try:
                number = self._source.add(self._prefix + path, event_meaning.MASK)
            except OSError as error:
                self._not_armed(path, error)
                return True
            if number == self._cookie_watch:
                where = os.fsdecode(self._cookies)
                raise Misuse(f"{where!r} is captured: keep cookies outside of the workspace")
            displaced = self._watches.add(path, number)
            if displaced is not None:  # one directory under two names
                self.pending.tree(displaced, self.moment)
            return True

    def _not_armed(self, path: bytes, error: OSError) -> None:
        """A directory that is gone, or may not be read, is scanned again next time."""
        if error.errno in _NOT_THERE:
            self.pending.tree(path, self.moment)
        else:
            self._give_up(event_meaning.refusal(error))

    def scanned(self, path: bytes, ignored: Sequence[bytes]) -> None:
        with self._lock:
            if ignored:
                self._ignored[path] = frozenset(ignored)
            else:
                self._ignored.pop(path, None)

    def forget(self, path: bytes) -> None:
        with self._lock:
            self._drop(path)
            # If this scan is given up, the next one has to be told, too.
            self.pending.tree(path, self.moment - 1)

    def _drop(self, path: bytes) -> None:
        for dropped, number in self._watches.drop(path).items():
            self._ignored.pop(dropped, None)
            if self._source is not None:
                self._source.remove(number)

    # Events

    def read_all_until_now(self, answer_seconds: float) -> None:
        """After this, there is a rescan reason, or all events of earlier changes were read."""
        if self._source is None or self.rescan_reason:
            return
        if _identity(self._root) != self.identity:
            self._require_rescan("the workspace was replaced, moved or removed")
        elif self.look_at_mounts():
            pass
        elif self._source.is_prompt:
            self._read_all(answer_seconds)
        else:
            self._read_up_to_a_cookie(self._source, answer_seconds)

    def look_at_mounts(self) -> bool:
        """Whether mounts in the workspace changed: then nothing is known of what they cover."""
        if self._mounts is None or not self._mounts.have_changed():
            return False
        self._require_rescan("something in the workspace was mounted or unmounted")
        return True

    def _read_all(self, answer_seconds: float) -> None:
        end = time.monotonic() + answer_seconds
        while self.read_events() and not self.rescan_reason:
            if time.monotonic() > end:
                self._require_rescan("more happens at once than can be heard")

    def _read_up_to_a_cookie(self, source: Source, answer_seconds: float) -> None:
        """Events come in order: those of changes before the cookie come before its own."""
        cookie = b"%b%d-%d" % (_COOKIE, os.getpid(), next(_cookie_numbers))
        path = joined(self._cookies, cookie)
        end = time.monotonic() + answer_seconds
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            _remove(path)
        except OSError as error:
            self._require_rescan(f"no cookie can be left for the watcher: {error.strerror}")
        while cookie not in self._cookies_seen and not self.rescan_reason:
            left = end - time.monotonic()
            if not self.read_events() and not _is_readable(source.fd, left) and left <= 0:
                self._require_rescan(f"no event came within {answer_seconds:g} seconds")
        self._cookies_seen.clear()

    def read_events(self) -> bool:
        """Read and handle what is in the queue. True if there was anything."""
        events = [] if self._source is None else self._source.read()
        for event in events:
            self._handle(event)
        return bool(events)

    def _handle(self, event: Event) -> None:
        what = event_meaning.meaning(event.mask, event.name)
        path = self._watches.path(event.watch)
        if what is Meaning.OVERFLOW:
            self._require_rescan("more happened at once than the watcher can tell")
        elif what is Meaning.UNMOUNTED:
            self._require_rescan("a file system was unmounted")
        elif event.watch == self._cookie_watch:
            self._handle_cookie(event.name, what)
        elif path == b"" and what is Meaning.ENDED:
            self._require_rescan("the workspace was replaced, moved or removed")
        elif path is not None:
            self._handle_change(path, event.name, what)

    def _handle_cookie(self, name: bytes, what: Meaning) -> None:
        if what is Meaning.ENDED:
            self._require_rescan("the directory for cookies was moved or removed")
        else:
            self._cookies_seen.add(name)

    def _handle_change(self, path: bytes, name: bytes, what: Meaning) -> None:
        if what is Meaning.TREE:
            self._drop(joined(path, name))
        elif what is Meaning.ENDED:
            self._drop(path)
        event_meaning.note(self.pending, path, name, what, self.moment)
        if what is not Meaning.CONTENT or name not in self._ignored.get(path, ()):
            self.has_changes = True


def _identity(root: bytes) -> tuple[int, int]:
    try:
        status = os.stat(root)
    except OSError:
        return _NOWHERE
    return (status.st_dev, status.st_ino)


def _mounts(root: bytes) -> Mounts | None:
    try:
        return Mounts(root)
    except FileNotFoundError:
        return None  # no list of mounts: then only a full scan finds what was mounted


def _is_readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * 1000))


def _remove(path: bytes) -> None:
    with suppress(FileNotFoundError):  # another watch cleans up, too
        os.unlink(path)
