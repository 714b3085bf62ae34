"""One connection of a client. One that only waits holds no place that another client needs."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0  # within which a request has come that was begun
MOST = 256  # that wait at once; past it, the one that has waited longest is closed


class Connection(H11Protocol):
    """Closed when the head of a request takes too long, or the rest of a body that was answered
    already, and when there are too many and it has waited longest for its client."""

    _late: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch()
        if len(self.connections) > MOST:
            _close_longest_waiting(self.connections)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    @property
    def waits(self) -> bool:
        """Whether the client has to send something before the server can go on."""
        return self._is_between_requests or self.cycle.more_body

    @property
    def _is_between_requests(self) -> bool:
        # uvicorn has None there before the first request, and does not say so.
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]

    def _watch(self) -> None:
        if not self._is_between_requests:
            self._unwatch()  # `App` bounds the time of a body
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _close_longest_waiting(connections: set[Any]) -> None:
    """Requests that the server works on are never closed, nor do they count: their lanes bound
    them, and the hub its streams, of which there may be more than that."""
    waiting = [each for each in connections if isinstance(each, Connection) and each.waits]
    if len(waiting) > MOST:
        longest = min(waiting, key=lambda each: each._since)
        connections.discard(longest)
        longest.transport.abort()
