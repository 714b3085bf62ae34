"""A client of streams: it reads messages as they come, over a real socket or from bytes."""

import http.client
import json
import socket
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from hardsave.tuples import NamedTuple

LIMIT = 60


class Message(NamedTuple):
    """One message; a heartbeat has no event."""

    event: str
    id: str
    data: Any

    @property
    def labels(self) -> list[Any]:
        """What `encode` of these tests has made of its events."""
        return [item["label"] for item in self.data["items"]]


def parsed(lines: Iterable[bytes]) -> Iterator[Message]:
    """Messages and heartbeats, as they come."""
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode("ascii").removesuffix("\n")
        if text:
            name, _, value = text.partition(": ")
            assert name in ("id", "event", "data", ""), text
            assert name not in fields, text
            fields[name] = value
        elif fields:
            data = fields.get("data")
            assert ("event" in fields) == (data is not None) == ("" not in fields)
            yield Message(
                fields.get("event", ""),
                fields.get("id", ""),
                None if data is None else json.loads(data),
            )
            fields = {}
    assert not fields, "a message without its end"


def message(data: bytes) -> Message:
    (one,) = parsed(data.splitlines(keepends=True))
    return one


class Listener:
    """A client that is connected. `receive_bytes` is how much it lets arrive before it reads."""

    def __init__(
        self, port: int, *, last: str = "", receive_bytes: int = 0, **query: str | None
    ) -> None:
        made = socket.socket()
        if receive_bytes:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        made.settimeout(LIMIT)
        made.connect(("127.0.0.1", port))
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._connection.sock = made
        asked = {name: value for name, value in query.items() if value is not None}
        headers = {"Last-Event-ID": last} if last else {}
        self._connection.request("GET", f"/?{urlencode(asked)}", headers=headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = self._answer.headers
        self.messages = parsed(self._answer)
        self.last = last  # the id to go on from

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._connection.close()

    def next(self, event: str) -> Message:
        """The next message of this kind, and what was skipped is no message."""
        for found in self.messages:
            self.last = found.id or self.last
            if found.event:
                assert found.event == event, found
                return found
        raise AssertionError(f"the stream ended without {event!r}")

    def labels(self, count: int) -> list[Any]:
        """What is told by the next events, so many of them at least."""
        found: list[Any] = []
        while len(found) < count:
            found += self.next("events").labels
        return found
