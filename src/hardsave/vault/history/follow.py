"""Following what happens, from any process: saves, operations and tasks, in the order of commits.

The store is asked again and again, cheaply: for its latest number alone while there is nothing new.
Nothing is skipped and nothing comes twice, because nothing up to that number is still to come
(`stores.base`). Saves, log and ledger are three reads, and commits may come between them: what lies
above that number is left for the next time.

A store whose server was replaced by a replica that lacked commits gives their numbers again. Then a
follower gets an event of kind `reload`, and goes on behind the latest number that there is now.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar, cast

from hardsave.actor import signature
from hardsave.defaults import POLL_SECONDS
from hardsave.errors import Misuse
from hardsave.objects.records import CheckpointRecord, EntryRecord, LogRecord
from hardsave.progress import check_deadline
from hardsave.record import Record
from hardsave.stores.news import TellsNews
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context


class _Saved(Protocol):
    """A checkpoint, for programs that block or for coroutines."""

    @property
    def by(self) -> str | None: ...


C = TypeVar("C", bound=_Saved)

PAGE = 200
_LOOK_SECONDS = 0.25  # between two looks whether to end, while it waits for a hint
RELOAD = "reload"
"""The kind of an event that says: what was told so far may be gone, read it again."""

Row = CheckpointRecord | LogRecord | EntryRecord


class Event(Record, Generic[C]):
    """Something that happened. A save has a checkpoint, everything else has data."""

    number: int
    """Of its commit; `follow(after=number)` goes on behind it."""
    kind: str
    """`checkpoint_saved`, `task_…`, the kind of the entry in log or ledger, or `reload`: the store
    was put back to how it was before, so what was told may be gone."""
    timeline: str | None
    created_at: datetime
    checkpoint: C | None
    data: Mapping[str, Any] | None
    task: str | None = None
    """The id of the task that it happened to."""

    @property
    def by(self) -> str | None:
        """Who did it: see `hardsave.acting_as`. None if that was not said."""
        return signature(self.data) if self.checkpoint is None else self.checkpoint.by


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
        self._after = (
            context.store.latest_number(context.user) if after is None else _checked(after)
        )
        is_closed = closing.is_set()  # then there are no events, and its store is not to be asked
        self._generation = b"" if is_closed else context.store.generation()
        self._poll_seconds = poll_seconds
        self._stop = stop
        has_news = not is_closed and isinstance(context.store, TellsNews)
        self._news = cast(TellsNews, context.store) if has_news else None
        self._hint: threading.Event | None = None
        self._waiting: deque[Event[Checkpoint]] = deque()  # read, and not given out yet

    def __next__(self) -> Event[Checkpoint]:
        while not self._waiting:
            if self.is_over:
                raise StopIteration
            self._waiting.extend(self.read())
            if not self._waiting:
                self._pause()
        if self.is_over:
            raise StopIteration
        return self._waiting.popleft()

    def _pause(self) -> None:
        """Until it is time to look again, or a hint says that there is something."""
        if self._news is None or self._poll_seconds <= POLL_SECONDS:  # a hint comes no earlier
            self._closing.wait(self._poll_seconds)
            return
        if self._hint is None:
            self._hint = threading.Event()
            try:
                self._news.listen(self._hint)
            except Misuse:
                if not self._closing.is_set():
                    raise
        until = time.monotonic() + self._poll_seconds
        while not self.is_over and (left := until - time.monotonic()) > 0:
            if self._hint.wait(min(left, _LOOK_SECONDS)):
                self._hint.clear()
                return

    @property
    def is_over(self) -> bool:
        return self._closing.is_set() or (self._stop is not None and self._stop())

    @property
    def after(self) -> int:
        """All up to this number was read; `follow(after=number)` goes on behind it."""
        return self._after

    def read(self) -> list[Event[Checkpoint]]:
        """What has happened since the last time; not always all of it, but never with a gap, and
        nothing only if there is nothing."""
        check_deadline()
        try:
            return self._read()
        except Misuse:
            if not self._closing.is_set():
                raise
            return []  # the vault was closed while we were asking

    def _read(self) -> list[Event[Checkpoint]]:
        store, user = self._context.store, self._context.user
        latest = store.latest_number(user)
        if latest < self._after or store.generation() != self._generation:
            return [self._reload(latest)]
        if latest == self._after:
            return []
        pages: list[Sequence[Row]] = [
            read(user, self._after, PAGE) for read in (store.log, store.saved, store.happened)
        ]
        upto = complete_upto(pages, latest, PAGE)
        events = [self._event(record) for record in merged(pages, upto)]
        # Last: what could not be read is asked for again. And also where nothing of this user was
        # found, or each look would pass by all that other users have committed since.
        self._after = upto
        return events

    def _reload(self, latest: int) -> Event[Checkpoint]:
        self._after, self._generation = latest, self._context.store.generation()
        now = datetime.fromtimestamp(self._context.clock() / 1_000_000, UTC)
        return Event(latest, RELOAD, None, now, None, {})

    def _event(self, record: Row) -> Event[Checkpoint]:
        moment = datetime.fromtimestamp(record.created_at / 1_000_000, UTC)
        if isinstance(record, CheckpointRecord):
            checkpoint = self._context.checkpoint(record)
            return Event(
                record.number, "checkpoint_saved", record.timeline, moment, checkpoint, None
            )
        data = self._context.objects.codec.decode(record.data)
        if isinstance(record, LogRecord):
            return Event(record.number, record.kind, record.timeline, moment, None, data)
        kind = record.kind if record.task is None else f"task_{record.kind}"
        return Event(record.number, kind, None, moment, None, data, record.task)


def complete_upto(pages: Iterable[Sequence[Row]], latest: int, page: int) -> int:
    """The number up to which none of the reads can lack anything: that of the latest commit before
    them, or the end of a page that is full."""
    return min([latest, *(rows[-1].number for rows in pages if len(rows) == page)])


def merged(pages: Iterable[Sequence[Row]], upto: int) -> list[Row]:
    """All up to a number, in order."""
    together = [record for rows in pages for record in rows if record.number <= upto]
    return sorted(together, key=lambda record: record.number)


def _check(poll_seconds: Any, stop: Any) -> None:
    if not isinstance(poll_seconds, int | float) or not 0 < poll_seconds <= 3600:
        raise Misuse(f"poll_seconds is a number above 0, up to 3600, not {poll_seconds!r}")
    if stop is not None and not callable(stop):
        raise Misuse(f"stop is a function that says whether to end, not {stop!r}")


def _checked(after: Any) -> int:
    if not isinstance(after, int) or not 0 <= after < 1 << 62:
        raise Misuse(f"after is the number of an event, or 0 for the beginning, not {after!r}")
    return int(after)
