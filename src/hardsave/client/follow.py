"""Following what happens on a server, without a gap.

Events come over a stream that may break at any time. Each message has an id; a new stream begins
behind the last one that was taken. A server that cannot say what was missed says so (`reload`):
then it is read page by page, from that id on, before the stream goes on.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from hardsave.client import reading
from hardsave.client.calls import Calls
from hardsave.client.checkpoint import RemoteCheckpoint, maker
from hardsave.client.problems import unreachable
from hardsave.client.reading import Unreadable
from hardsave.client.records import RemoteEvent
from hardsave.client.server_sent import Message, Parser
from hardsave.client.transport import ConnectionLost, Stream
from hardsave.defaults import CLIENT_RECONNECT_SECONDS
from hardsave.errors import Conflict, HardsaveError, Misuse, Unavailable
from hardsave.values.spelling import from_json

_PAGE = 1_000
_SILENT_BEATS = 3  # heartbeats that may be missing before a stream is taken for broken
_FIRST_WAIT = 0.1  # seconds before the next stream; each further wait is twice as long,
_LONGEST_WAIT = 5.0  # up to this

Event = RemoteEvent[RemoteCheckpoint]


class RemoteFollowing(Iterator[Event]):
    """Events, one by one. Waits for the next; ends when it is closed, or its vault is. After an
    error it can be asked again, and goes on where it was."""

    def __init__(
        self,
        calls: Calls,
        after: str | None,
        timeline: str | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._timeline = timeline
        self._make = maker(calls)
        self._clock = clock
        self._closing = threading.Event()
        self._waiting: deque[Event] = deque()  # read, and not given out yet
        self._stream: Stream | None = None
        self._parser = Parser()
        self._is_behind = False
        self._failures = 0  # since something came last,
        self._failing_since = 0.0  # and when the first of them was
        self._last = self._now() if after is None else after

    def _now(self) -> str:
        """The id of what happened last: all that comes from here on is seen."""
        return str(self._calls.read("/happened", limit=1)["next"])

    def __next__(self) -> Event:
        while not self._waiting and not self._closing.is_set():
            self._wait()
        if self._closing.is_set():
            raise StopIteration
        return self._waiting.popleft()

    def __enter__(self) -> "RemoteFollowing":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # a loop may be left before its end

    def read(self) -> list[Event]:
        """What has happened since the last time, without waiting; not always all of it, but never
        with a gap."""
        self._drop()
        if not self._waiting:
            self._read_page()
        found = [*self._waiting]
        self._waiting.clear()
        return found

    def close(self) -> None:
        """End it; a thread that waits for the next event gets none. A second call does nothing."""
        self._closing.set()
        self._drop()

    def _wait(self) -> None:
        """Take what comes next, or begin a new stream."""
        try:
            if self._is_behind:
                self._is_behind = self._read_page()
                return
            for message in self._received():
                self._take(message)
        except (ConnectionLost, HardsaveError) as error:
            self._drop()
            if self._closing.is_set():
                return  # which is why it has failed
            if not isinstance(error, ConnectionLost | Unavailable) or isinstance(error, Unreadable):
                raise
            self._pause(error)

    def _received(self) -> Iterator[Message]:
        """The messages that have come; until a stream is dropped in the middle."""
        stream = self._stream
        if stream is None:
            asked = {"timeline": self._timeline}
            stream = self._calls.stream("/events", self._last, **asked)
            self._stream, self._parser = stream, Parser()
            if self._closing.is_set():  # since we looked: nothing else would end this stream
                self._drop()
        data = stream.read()
        if not data:
            raise ConnectionLost(EOFError("the stream has ended"), was_kept=False)
        self._failures = 0
        for message in self._parser.feed(data):
            if self._stream is stream:
                yield message

    def _take(self, message: Message) -> None:
        if message.event == "events" and message.id is not None:
            self._add(_parsed(message), message.id)
        elif message.event == "hello" and self._stream is not None:
            beat = _parsed(message).get("heartbeat_seconds", 15)
            self._stream.wait_for(_SILENT_BEATS * beat)
        elif message.event == "reload":
            self._reload(_parsed(message).get("reason"))
        elif message.event == "bye":
            self._drop()
            self._closing.wait(_FIRST_WAIT)
        elif not message.event and message.id is not None:
            self._last = message.id  # nothing of what is followed has happened up to here

    def _reload(self, reason: object) -> None:
        self._drop()
        if reason in ("unknown_id", "store_changed"):
            raise Conflict(
                f"{self._calls.url} does not know event id {self._last!r}: it is of another "
                "project or user, or the store was put back to how it was before; read what you "
                "need anew, and follow without after="
            )
        self._is_behind = True

    def _read_page(self) -> bool:
        """Take some of what has happened since the last event; whether there was any."""
        told = self._calls.read("/happened", cursor=self._last, limit=_PAGE)
        return self._add(told, str(told["next"]), is_ours=self._is_wanted)

    def _is_wanted(self, event: Event) -> bool:
        """As a stream has it: what names neither a timeline nor a task may be about any."""
        is_about_all = event.timeline is None and event.task is None
        return is_about_all or self._timeline in (None, event.timeline)

    def _add(
        self, told: Any, id: str, *, is_ours: Callable[[Event], bool] = lambda _: True
    ) -> bool:
        """Take events that came together, under one id; whether there were any."""
        every = reading.items(told)
        for number, each in enumerate(every, 1):
            event = self._event(each, id if number == len(every) else self._last)
            if is_ours(event):
                self._waiting.append(event)
        self._last = id
        return bool(every)

    def _event(self, told: Any, id: str) -> Event:
        if not isinstance(told, dict):
            raise Unreadable("an event that is no object")
        data = _logged(told.get("data"))
        return reading.record(RemoteEvent, told, self._make, id=id, data=data)

    def _pause(self, error: Exception) -> None:
        """Wait before the next stream. `Unavailable` if no server was heard for long."""
        if not self._failures:
            self._failing_since = self._clock()
        elif self._clock() - self._failing_since >= CLIENT_RECONNECT_SECONDS:
            self._failures = 0  # the next call has as long again
            raise unreachable(self._calls.url, str(error)) from error
        self._closing.wait(min(_FIRST_WAIT * 2**self._failures, _LONGEST_WAIT))
        self._failures += 1

    def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()


def _parsed(message: Message) -> Any:
    try:
        found = json.loads(message.data)
    except ValueError as error:
        raise Unreadable(f"an event that is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Unreadable("an event that is no object")
    return found


def _logged(data: Any) -> Any:
    """What a log says of something that happened. It is made for people: what looks like a spelling
    and is none stays as it is."""
    try:
        return from_json(data)
    except Misuse:
        return data
