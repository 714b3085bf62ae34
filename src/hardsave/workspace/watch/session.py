"""Uninterrupted watching: from one look at everything to the next.

A vigil hears what the kernel tells, and notes what may have changed. It knows no scans and
no caches. Once it has a doubt it is of no use any more, and another one has to begin.
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
_NOWHERE = (0, 0)  # of what is not there: whatever comes will be another one
_cookie_numbers = itertools.count(1)


class Vigil:
    """What is told now is told at the present `moment`, which whoever asks moves on.

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
        self._cookies_heard: set[bytes] = set()
        self._source: Source | None = None
        self._mounts: Mounts | None = None
        self.moment = moment
        self.pending = Pending()
        self.has_news = False
        self.doubt = ""
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
        """Readable when something is told; None if nothing will ever be."""
        return None if self._source is None else self._source.fd

    @property
    def stirs(self) -> int | None:
        """Has something urgent when anything was mounted, anywhere; None if nobody can tell."""
        return None if self._mounts is None else self._mounts.stirs

    @property
    def is_blind(self) -> bool:
        return self._source is None

    @property
    def sees_root(self) -> bool:
        """Whether the workspace itself is watched. A scan that could not open it has left nothing
        that could be told of."""
        return b"" in self._watches

    @property
    def is_without_root(self) -> bool:
        """Whether there is no workspace, and there was none when it began."""
        return self.identity == _NOWHERE == _identity(self._root)

    @property
    def is_of_another(self) -> bool:
        """Whether the workspace is another directory than it was, or is there again."""
        return self.identity != _identity(self._root)

    def _take_doubt(self, why: str) -> None:
        if not self.doubt:
            self.doubt = why
            self._warn(why)

    def _give_up(self, why: str) -> None:
        self._take_doubt(why)
        self.close()

    # What a scan tells

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
        """What is gone, or may not be read, is looked at again until it is one or the other."""
        if error.errno in _NOT_THERE:
            self.pending.tree(path, self.moment)
        else:
            self._give_up(event_meaning.refusal(error))

    def looked(self, path: bytes, ignored: Sequence[bytes]) -> None:
        with self._lock:
            if ignored:
                self._ignored[path] = frozenset(ignored)
            else:
                self._ignored.pop(path, None)

    def forget(self, path: bytes) -> None:
        with self._lock:
            self._drop(path)
            # If this scan is given up, the next one has to hear of it, too.
            self.pending.tree(path, self.moment - 1)

    def _drop(self, path: bytes) -> None:
        for dropped, number in self._watches.drop(path).items():
            self._ignored.pop(dropped, None)
            if self._source is not None:
                self._source.remove(number)

    # What the kernel tells

    def hear_all_until_now(self, answer_seconds: float) -> None:
        """After this, there is a doubt, or everything was heard that had happened before."""
        if self._source is None or self.doubt:
            return
        if _identity(self._root) != self.identity:
            self._take_doubt("the workspace was replaced, moved or removed")
        elif self.look_at_mounts():
            pass
        elif self._source.is_prompt:
            self._hear_all(answer_seconds)
        else:
            self._hear_up_to_a_cookie(self._source, answer_seconds)

    def look_at_mounts(self) -> bool:
        """Whether there are others in the workspace: then nothing is known of what they cover."""
        if self._mounts is None or not self._mounts.have_changed():
            return False
        self._take_doubt("something in the workspace was mounted or unmounted")
        return True

    def _hear_all(self, answer_seconds: float) -> None:
        end = time.monotonic() + answer_seconds
        while self.hear() and not self.doubt:
            if time.monotonic() > end:
                self._take_doubt("more happens at once than can be heard")

    def _hear_up_to_a_cookie(self, source: Source, answer_seconds: float) -> None:
        """Events come in order: what happened before the cookie is told before it."""
        cookie = b"%b%d-%d" % (_COOKIE, os.getpid(), next(_cookie_numbers))
        path = joined(self._cookies, cookie)
        end = time.monotonic() + answer_seconds
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            _remove(path)
        except OSError as error:
            self._take_doubt(f"no cookie can be left for the watcher: {error.strerror}")
        while cookie not in self._cookies_heard and not self.doubt:
            left = end - time.monotonic()
            if not self.hear() and not _is_readable(source.fd, left) and left <= 0:
                self._take_doubt(f"no event came within {answer_seconds:g} seconds")
        self._cookies_heard.clear()

    def hear(self) -> bool:
        """What is in the queue. True if there was anything."""
        events = [] if self._source is None else self._source.read()
        for event in events:
            self._hear_one(event)
        return bool(events)

    def _hear_one(self, event: Event) -> None:
        what = event_meaning.meaning(event.mask, event.name)
        path = self._watches.path(event.watch)
        if what is Meaning.OVERFLOW:
            self._take_doubt("more happened at once than the watcher can tell")
        elif what is Meaning.UNMOUNTED:
            self._take_doubt("a file system was unmounted")
        elif event.watch == self._cookie_watch:
            self._hear_of_cookie(event.name, what)
        elif path == b"" and what is Meaning.ENDED:
            self._take_doubt("the workspace was replaced, moved or removed")
        elif path is not None:
            self._hear_of(path, event.name, what)

    def _hear_of_cookie(self, name: bytes, what: Meaning) -> None:
        if what is Meaning.ENDED:
            self._take_doubt("the directory for cookies was moved or removed")
        else:
            self._cookies_heard.add(name)

    def _hear_of(self, path: bytes, name: bytes, what: Meaning) -> None:
        if what is Meaning.TREE:
            self._drop(joined(path, name))
        elif what is Meaning.ENDED:
            self._drop(path)
        event_meaning.tell(self.pending, path, name, what, self.moment)
        if what is not Meaning.CONTENT or name not in self._ignored.get(path, ()):
            self.has_news = True


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
        return None  # no list of mounts: then only a full look finds what was mounted


def _is_readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * 1000))


def _remove(path: bytes) -> None:
    with suppress(FileNotFoundError):  # another watch cleans up, too
        os.unlink(path)
