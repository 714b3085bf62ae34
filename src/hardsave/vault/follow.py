"""Following what happens, from any process: saves and log entries, in the order of commits.

The store is asked again and again, cheaply. Nothing is skipped and nothing comes twice, because
commit numbers are given out inside the transaction, one writer at a time: whoever sees a number
has every lower one before its eyes too. Saves and log entries are two reads, though, and commits
may come between them: see `_read`.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from hardsave.errors import Misuse
from hardsave.objects.records import CheckpointRecord, LogRecord
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context

C = TypeVar("C")

PAGE = 200

Record = CheckpointRecord | LogRecord


class Event(NamedTuple, Generic[C]):
    """Something that happened. A save has a checkpoint, everything else has data."""

    number: int  # of the commit; pass it as `after=` to go on behind it
    kind: str  # checkpoint_saved, or the kind of the log entry
    timeline: str | None
    created_at: datetime
    checkpoint: C | None
    data: Mapping[str, Any] | None


class Following(Iterator[Event[Checkpoint]]):
    """One user's events, one by one. Waits for the next; ends with the vault, or if told to."""

    def __init__(
        self,
        context: Context,
        closing: threading.Event,
        after: int | None,
        poll_seconds: float,
        stop: Callable[[], bool] | None,
    ) -> None:
        _check(poll_seconds, stop)
        self._context = context
        self._closing = closing
        self._after = _latest(context) if after is None else _checked(after)
        self._poll_seconds = poll_seconds
        self._stop = stop
        self._waiting: deque[Event[Checkpoint]] = deque()  # read, and not given out yet

    def __next__(self) -> Event[Checkpoint]:
        while not self._waiting:
            if self.is_over:
                raise StopIteration
            self._waiting.extend(self.read())
            if not self._waiting:
                self._closing.wait(self._poll_seconds)
        if self.is_over:
            raise StopIteration
        return self._waiting.popleft()

    @property
    def is_over(self) -> bool:
        return self._closing.is_set() or (self._stop is not None and self._stop())

    def read(self) -> list[Event[Checkpoint]]:
        """What has happened since the last time; not always all of it, but never with a gap."""
        try:
            records = self._read()
        except Misuse:
            if not self._closing.is_set():
                raise
            return []  # the vault was closed while we were asking
        if records:
            self._after = records[-1].number
        return [self._event(record) for record in records]

    def _read(self) -> list[Record]:
        store, user = self._context.store, self._context.user
        entries = store.log(user, self._after, PAGE)
        saves = store.saved(user, self._after, PAGE)
        if not saves:
            return list(entries)  # a save with a lower number would have been there
        # Entries may have come before the last of these saves, and after the first look.
        entries = store.log(user, self._after, PAGE)
        return merged(saves, entries, PAGE)

    def _event(self, record: Record) -> Event[Checkpoint]:
        moment = datetime.fromtimestamp(record.created_at / 1_000_000, UTC)
        if isinstance(record, CheckpointRecord):
            checkpoint = self._context.checkpoint(record)
            return Event(
                record.number, "checkpoint_saved", record.timeline, moment, checkpoint, None
            )
        data = self._context.objects.codec.decode(record.data)
        return Event(record.number, record.kind, record.timeline, moment, None, data)


def merged(saves: list[CheckpointRecord], entries: list[LogRecord], page: int) -> list[Record]:
    """Both in order, as far as neither can lack anything: `entries` were read last."""
    horizon = saves[-1].number
    if len(entries) == page:
        horizon = min(horizon, entries[-1].number)
    together: list[Record] = [*saves, *entries]
    return sorted((r for r in together if r.number <= horizon), key=lambda r: r.number)


def _latest(context: Context) -> int:
    """The number of the user's last commit.

    There is no question of its own for that, because nothing else needs it: bisecting finds it
    in a few dozen reads of one row.
    """
    newest = context.store.log_before(context.user, None, 1)
    low = newest[0].number if newest else 0
    high = low + 1
    while found := context.store.saved(context.user, high, 1):
        low, high = found[0].number, found[0].number * 2
    while high - low > 1:
        middle = (low + high) // 2
        found = context.store.saved(context.user, middle, 1)
        if found:
            low = found[0].number
        else:
            high = middle
    later = context.store.saved(context.user, low, 1)
    return later[0].number if later else low


def _check(poll_seconds: Any, stop: Any) -> None:
    if not isinstance(poll_seconds, int | float) or not 0 < poll_seconds <= 3600:
        raise Misuse(f"poll_seconds is a number above 0, up to 3600, not {poll_seconds!r}")
    if stop is not None and not callable(stop):
        raise Misuse(f"stop is a function that says whether to end, not {stop!r}")


def _checked(after: Any) -> int:
    if not isinstance(after, int) or not 0 <= after < 1 << 62:
        raise Misuse(f"after is the number of an event, or 0 for the beginning, not {after!r}")
    return int(after)
