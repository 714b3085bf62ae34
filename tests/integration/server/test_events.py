"""Live events over HTTP: who is told what, and how a server with many clients stops."""

import http.client
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from hardsave.defaults import STOP_SECONDS
from tests.integration.server.conftest import LIMIT, Server, Start
from tests.integration.server.site import Site
from tests.unit.server.api_client import ApiClient
from tests.unit.server.live.sse_client import Message, parsed

MANY = 200


class Stream:
    """A client of `/api/v1/events`."""

    def __init__(self, port: int, token: str, *, last: str = "", **query: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        headers = {"Authorization": f"Bearer {token}", **({"Last-Event-ID": last} if last else {})}
        self._connection.request("GET", f"/api/v1/events?{urlencode(query)}", headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self._messages = parsed(self._answer)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._connection.close()

    def next(self) -> Message | None:
        """The next message that is no heartbeat; None at the end."""
        return next((each for each in self._messages if each.event), None)

    def next_of_any_kind(self) -> Message | None:
        """The same, or a heartbeat: what comes when there is nothing to tell."""
        return next(self._messages, None)

    def events(self, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            message = self.next()
            assert message is not None
            assert message.event == "events", message
            found += message.data["items"]
        return found


@pytest.fixture
def bobs(site: Site) -> Iterator[str]:
    yield site.token("bob", "act", user="bob")
    site.revoke("bob")


def save(program: ApiClient, timeline: str) -> str:
    body = {"timeline": timeline, "state": {"messages": [timeline]}}
    got = program.send("POST", "/api/v1/checkpoints", body)
    assert got.status == 201, got
    return str(got.data["id"])


def test_each_user_is_told_what_is_ones_own(site: Site, bobs: str) -> None:
    with (
        site.api() as alice,
        site.api(bobs) as bob,
        Stream(site.port, site.server.token) as hers,
        Stream(site.port, bobs) as his,
    ):
        for stream in (hers, his):
            hello = stream.next()
            assert hello is not None
            assert hello.event == "hello"
        one = save(alice, "hers")
        two = save(bob, "his")
        assert [each["checkpoint"]["id"] for each in hers.events(1)] == [one]
        assert [each["checkpoint"]["id"] for each in his.events(1)] == [two]


def test_a_stream_goes_on_where_it_was_and_tells_what_a_poll_tells(site: Site) -> None:
    with site.api() as alice:
        since = alice.get("/api/v1/happened")["next"]
        assert alice.get("/api/v1/happened?cursor=") == {"items": [], "next": since}
        ids = [save(alice, f"line-{number}") for number in range(5)]
        alice.send("POST", "/api/v1/undo", {"timeline": "line-0"})
        polled = alice.get(f"/api/v1/happened?cursor={since}")
        assert [each["checkpoint"]["id"] for each in polled["items"]] == ids
        for query in ({"last": since}, {"cursor": since}):
            with Stream(site.port, site.server.token, **query) as stream:
                assert stream.next() is not None
                assert stream.events(5) == polled["items"]
        with Stream(site.port, site.server.token, cursor=since, timeline="line-3") as stream:
            assert stream.next() is not None
            assert stream.events(1) == [polled["items"][3]]
        pages: list[Any] = []
        for _ in range(5):
            page = alice.get(f"/api/v1/happened?cursor={since}&limit=1")
            pages, since = [*pages, *page["items"]], page["next"]
        assert pages == polled["items"]


def test_an_id_of_another_user_leads_nowhere(site: Site, bobs: str) -> None:
    with site.api() as alice, site.api(bobs) as bob:
        hers = alice.get("/api/v1/happened")["next"]
        refused = bob.send("GET", f"/api/v1/happened?cursor={hers}")
        assert (refused.status, refused.data["code"]) == (400, "misuse")
        with Stream(site.port, bobs, last=hers) as stream:
            told = [message and message.event for message in (stream.next(), stream.next())]
            assert set(told) == {"hello", "reload"}


def test_the_stream_of_a_token_that_is_revoked_or_has_expired_ends(site: Site) -> None:
    ends = datetime.fromtimestamp(time.time() + 1, UTC)
    tokens = [site.token("gone", "read"), site.token("over", "read", ends=ends)]
    with ExitStack() as stack:
        streams = [stack.enter_context(Stream(site.port, each)) for each in tokens]
        assert [each.next() is not None for each in streams] == [True, True]
        site.revoke("gone")
        assert [each.next_of_any_kind() for each in streams] == [None, None]


def test_the_head_of_a_stream_ends(site: Site) -> None:
    with site.api() as alice:
        got = alice.send("HEAD", "/api/v1/events")
        assert (got.status, got.headers["content-type"]) == (200, "text/event-stream")
        assert alice.get("/api/v1")["api"] == 1  # over the same connection


def test_a_server_with_many_live_clients_says_goodbye_and_stops(start: Start) -> None:
    server = start()
    port = urlsplit(server.url).port
    assert port is not None
    with ExitStack() as stack:
        streams = [stack.enter_context(Stream(port, server.token)) for _ in range(MANY)]
        for each in streams:
            assert each.next() is not None
        silent = stack.enter_context(never_reading(server))
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(LIMIT) == 0
        assert time.monotonic() - began < STOP_SECONDS + 1
        last = [each.next() for each in streams]
        assert [each and each.event for each in last] == ["bye"] * MANY
        assert [each.next() for each in streams] == [None] * MANY
        silent.close()
    assert "Traceback" not in server.log()


def never_reading(server: Server) -> socket.socket:
    """A client that has asked for a stream, and reads nothing of it."""
    where = urlsplit(server.url)
    made = socket.create_connection((where.hostname, where.port), timeout=LIMIT)
    head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}"
    made.sendall(f"{head}\r\n\r\n".encode())
    return made
