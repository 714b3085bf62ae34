"""How far a long call has come, and until when it may take.

    with hardsave.on_progress(lambda done: print(done.items, done.total_items)):
        vault.store.verify()

    with hardsave.deadline(2.5):
        vault.diff(old, new)

The code of a long call asks for a `Meter` for each of its parts, and adds what it has done: that
reports to the callback, if the caller has one, and raises when the caller's deadline has passed, or
the caller went away (`stop_when`). Code that has nothing to count calls `check_deadline` once a
page, and waits for a lock no longer than `within_deadline` says. Callback and deadline are kept in
context variables: no function on the way hands them on, and a coroutine's call finds them in the
thread that it runs in.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import Any

from hardsave.errors import DeadlineExceeded, Misuse, Stopped
from hardsave.logs import log
from hardsave.record import Record
from hardsave.tuples import NamedTuple

_LONGEST = 1 << 62  # seconds of a deadline: what a float cannot hold is no time to wait
EVERY_SECONDS = 0.1  # between two reports of one part


class CallProgress(Record):
    """How far one part of a call has come."""

    doing: str
    """What it does: `looking`, `reading`, `writing`, …"""
    unit: str
    """What `items` are: `files`, `objects`, …; empty if only bytes are counted."""
    items: int
    bytes: int
    total_items: int | None
    """None: not known, or not known yet."""
    total_bytes: int | None


Callback = Callable[[CallProgress], object]

_callback: ContextVar[Callback | None] = ContextVar("hardsave_progress", default=None)


@contextmanager
def on_progress(callback: Callback) -> Iterator[None]:
    """Report long calls of this block: about ten times a second, in the thread that does the work.

    A callback that raises is logged and not called again; the call goes on.
    """
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


class _Deadline(NamedTuple):
    """When the calls of a block have to end."""

    at: float = inf  # as `monotonic` counts
    seconds: float = inf  # that the caller gave
    is_stopped: Callable[[], bool] | None = None  # or when this is true, if that comes first


_deadline: ContextVar[_Deadline | None] = ContextVar("hardsave_deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Let the calls of this block take so many seconds together, then raise `DeadlineExceeded`.

    Looked at between the parts of a long call, so it may end a little later. What was not committed
    by then is not written; a restore whose files are being put in place is carried to its end. Of
    nested blocks the earliest deadline holds.
    """
    _check_seconds(seconds)
    at, outer = monotonic() + seconds, _deadline.get() or _Deadline()
    with _within(outer._replace(at=at, seconds=seconds) if at < outer.at else outer):
        yield


@contextmanager
def stop_when(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Let the calls of this block raise `Stopped` once that is true, wherever a deadline is looked
    at: for a server whose client may go away. A wait for a lock is not cut short. Called in the
    threads that do the work; of nested blocks each one's holds.
    """
    outer = _deadline.get() or _Deadline()
    before = outer.is_stopped

    def is_any_stopped() -> bool:
        return is_stopped() or (before is not None and before())

    with _within(outer._replace(is_stopped=is_any_stopped)):
        yield


def _check_seconds(seconds: Any) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise Misuse(f"a deadline is a number of seconds above 0, not {seconds!r}")
    if isinstance(seconds, int) and seconds > _LONGEST:
        raise Misuse("a deadline is a number of seconds, and no astronomical one")


@contextmanager
def to_the_end() -> Iterator[None]:
    """No deadline holds in this block: what it does must not be left half done."""
    with _within(None):
        yield


@contextmanager
def _within(limit: _Deadline | None) -> Iterator[None]:
    token = _deadline.set(limit)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_deadline() -> None:
    """`DeadlineExceeded` if the caller's deadline has passed, `Stopped` if the caller went away."""
    found = _deadline.get()
    if found is not None:
        _check(found)


def within_deadline(seconds: float) -> float:
    """So long, or as long as the caller's deadline leaves. The caller of this calls
    `check_deadline` when that has passed in vain."""
    found = _deadline.get()
    return seconds if found is None else max(0.0, min(seconds, found.at - monotonic()))


def _check(found: _Deadline) -> None:
    if found.is_stopped is not None and found.is_stopped():
        raise Stopped("the caller went away; nothing was written that was not committed by then")
    if monotonic() >= found.at:
        raise DeadlineExceeded(
            f"the call took longer than its deadline of {found.seconds:g} s; give it more time, or "
            "ask for less at once"
        )


class Meter:
    """Counts nothing: no caller wants to know."""

    __slots__ = ()

    def add(self, items: int = 0, bytes: int = 0) -> None:
        """So much more is done."""


class _Reporting(Meter):
    """Counts what is done and reports it. One thread at a time adds to it: each part of a call has
    its own, and does its work in one."""

    __slots__ = ("_begun", "_bytes", "_callback", "_due", "_items")

    def __init__(self, callback: Callback, begun: CallProgress) -> None:
        self._callback: Callback | None = callback
        self._begun = begun
        self._items = self._bytes = 0
        self._due = 0.0
        self.add()

    def add(self, items: int = 0, bytes: int = 0) -> None:
        self._items += items
        self._bytes += bytes
        now = monotonic()
        if now >= self._due:
            self._due = now + EVERY_SECONDS
            self._report()

    def _report(self) -> None:
        callback = self._callback
        if callback is None:
            return
        try:
            callback(self._begun.replace(items=self._items, bytes=self._bytes))
        except Exception:  # noqa: BLE001 # anything at all: the call is not about its progress
            self._callback = None
            log(__name__).exception("a callback of on_progress failed: %r", callback)


class _Bounded(Meter):
    """Counts as another one does, until the deadline."""

    __slots__ = ("_deadline", "_inner")

    def __init__(self, inner: Meter, deadline: _Deadline) -> None:
        self._inner = inner
        self._deadline = deadline
        _check(deadline)

    def add(self, items: int = 0, bytes: int = 0) -> None:
        self._inner.add(items, bytes)
        _check(self._deadline)


_SILENT = Meter()


class Total(NamedTuple):
    """How much there is to do; None: not known."""

    items: int | None = None
    bytes: int | None = None


def meter(doing: str, unit: str = "", total: Callable[[], Total] = Total) -> Meter:
    """For one part of a call. How much there is to do is looked up only if the caller wants to
    know how far it has come. `DeadlineExceeded` or `Stopped` as `check_deadline` raises them."""
    callback, deadline = _callback.get(), _deadline.get()
    found = _SILENT
    if callback is not None:
        items, bytes = total()
        found = _Reporting(callback, CallProgress(doing, unit, 0, 0, items, bytes))
    return found if deadline is None else _Bounded(found, deadline)
