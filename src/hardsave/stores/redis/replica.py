"""The rows of one user as this process has them: what the log on the server says so far.

A reader first reads what is new in the log, so it sees every commit that has returned. A writer
decides on these rows what a batch does, by the rules that the store in memory has, and adds it to
the log if that still stands where it was decided: if not, it reads on and decides again. So the
server runs no rule of ours, and a commit is one round trip as long as no other process writes for
the same user at the same moment.
"""

import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hardsave.errors import Conflict, Misuse
from hardsave.objects.hashing import Hash
from hardsave.stores.base import NESTED, ObjectsGone
from hardsave.stores.memory.tenant import Tenant
from hardsave.stores.redis import changes
from hardsave.stores.redis.changes import Change
from hardsave.stores.redis.server import Server
from hardsave.tuples import NamedTuple

NOWHERE = b"0-0"  # before the first change
REWRITTEN_FROM = 1 << 20  # bytes of changes that are worth it

Decide = Callable[[Tenant], Change | None]
"""What to write, after a look at the rows; None if nothing is left to do. `Conflict` if it must not
be: then it is asked again with the newest rows."""


class _Standing(NamedTuple):
    """How far the log was read, and the number of the last commit then."""

    at: bytes
    number: int


class Replica:
    """One user's. What is written with it expires so many seconds later, together with all else of
    this user."""

    def __init__(self, server: Server, keys: Collection[str], ttl_seconds: int) -> None:
        self._server = server
        self._keys = tuple(keys)
        self._ttl = ttl_seconds * 1000
        self._lock = threading.RLock()  # a signal handler may read, too
        self._is_busy = False
        self._standing = _Standing(NOWHERE, 0)
        self._whole = 0  # bytes of the rows that the log begins with
        self._more = 0  # bytes of the changes after them
        self.tenant = Tenant()

    @property
    def at(self) -> bytes:
        """How far the log was read."""
        return self._standing.at

    @contextmanager
    def reading(self) -> Iterator[Tenant]:
        """The newest rows. A signal handler that interrupts another call sees those before it."""
        with self._lock:
            if not self._is_busy:
                with self._busy():
                    self._read_on()
            yield self.tenant

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    @contextmanager
    def writing(self) -> Iterator[Tenant]:
        """For `write`, and a look at the rows right after it."""
        with self._lock:
            if self._is_busy:
                raise Misuse(NESTED)
            with self._busy():
                yield self.tenant

    def write(
        self,
        decide: Decide,
        objects: Mapping[Hash, bytes],
        requires: Collection[Hash] = (),
    ) -> None:
        """Add to the log what is decided, with new objects, if those it requires are stored."""
        is_newest = False
        while True:
            try:
                change = decide(self.tenant)
            except Conflict:
                if is_newest:
                    raise
                change = None
            if change is not None and self._append(change, objects, requires):
                return
            if change is None:
                if is_newest:
                    return
                self._read_on()
            is_newest = True

    def _append(
        self, change: Change, objects: Mapping[Hash, bytes], requires: Collection[Hash]
    ) -> bool:
        """Whether it is in the log now; if not, others were quicker, and that is read."""
        data, before = changes.written(change), self.at
        count = int(before.partition(b"-")[0])
        new = b"%d-%d" % (count + 1, secrets.randbits(62) + 1)
        packed: Iterator[bytes] = (each for pair in objects.items() for each in pair)
        words = (before, new, data, self._ttl, len(requires))
        answer, *more = self._server.script("append", self._keys, *words, *requires, *packed)
        if answer == b"gone":
            raise ObjectsGone(f"{more[0]} objects are no longer stored, {more[1].hex()} among them")
        if answer == b"appended":
            self._do(new, change, len(data))
            self._rewrite_if_long()
            return True
        return new in self._read_on(more[0])

    def _read_on(self, page: Any = None) -> set[bytes]:
        """Read the log to its end, from a page that is there already or the next; the ids of what
        was new."""
        page = page or self._server.script("read", self._keys, self.at)
        seen = self._absorb(page)
        while self.at != page[0]:
            page = self._server.script("read", self._keys, self.at)
            seen |= self._absorb(page)
        return seen

    def _absorb(self, page: Any) -> set[bytes]:
        """Do what a page of the log says; the ids of its changes."""
        _, first, rows, entries = page
        if first:
            self._begin_at(first, rows)
        for id, (_, data) in entries:
            self._do(id, changes.read(data), len(data))
        return {id for id, _ in entries}

    def _begin_at(self, at: bytes, rows: bytes | None) -> None:
        tenant = Tenant.of(changes.rows_read(rows)) if rows else Tenant()
        self.tenant, self._whole, self._more = tenant, len(rows or b""), 0
        self._standing = _Standing(at, tenant.number)

    def _do(self, id: bytes, change: Change, size: int) -> None:
        """Ctrl-C may end it anywhere: then the next call reads the same change, and does all of it
        again, which leads to the same."""
        number = changes.do(change, self.tenant, self._standing.number)
        self._standing = _Standing(id, number)
        self._more += size

    def _rewrite_if_long(self) -> None:
        if self._more > max(REWRITTEN_FROM, self._whole):
            self.rewrite()

    def rewrite(self) -> None:
        """Put the rows in the place of the log: what was dropped is in it no more."""
        data = changes.rows_written(self.tenant.rows())
        self._server.script("rewrite", self._keys, self.at, data)
        self._whole, self._more = len(data), 0
