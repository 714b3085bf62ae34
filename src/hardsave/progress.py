"""How far a long call has come, told to a caller that wants to know.

    with hardsave.on_progress(lambda done: print(done.items, done.total_items)):
        vault.store.verify()

The code of a long call asks for a `Meter` for each of its parts, and adds what it has done. Without
a callback it gets one that counts nothing. The callback is kept in a context variable: no function
on the way hands it on, and a coroutine's call finds it in the thread that it runs in.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from hardsave.logs import log
from hardsave.record import Record
from hardsave.tuples import NamedTuple

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


_SILENT = Meter()


class Total(NamedTuple):
    """How much there is to do; None: not known."""

    items: int | None = None
    bytes: int | None = None


def meter(doing: str, unit: str = "", total: Callable[[], Total] = Total) -> Meter:
    """For one part of a call. How much there is to do is looked up only if the caller wants to
    know how far it has come."""
    callback = _callback.get()
    if callback is None:
        return _SILENT
    items, bytes = total()
    return _Reporting(callback, CallProgress(doing, unit, 0, 0, items, bytes))
