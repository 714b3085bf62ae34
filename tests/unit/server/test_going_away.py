"""A client that goes away frees its place, if its call is slow; an act is done to its end."""

import http.client
import json
import select
import socket
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import HardsaveError
from hardsave.progress import check_deadline
from hardsave.server import app
from hardsave.server.route import Answer, Call, Lane, Route, Spec
from hardsave.server.table import ROUTES
from hardsave.server.tokens import TokenFile, canonical
from tests.unit.server.api_client import ApiClient
from tests.unit.server.job_server import OWN_TOKEN, serving

LIMIT = 60
THREADS = {"slow": 2, "search": 2, "upkeep": 1, "write": 4}


class Work:
    """What handlers of these tests are at, and how it has ended."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.ended: list[str] = []

    def long(self, call: Call) -> Answer:
        """As long calls of the library do: looks at its deadline from time to time."""
        self.begun.release()
        try:
            while not self.may_end.is_set():
                check_deadline()
                time.sleep(0.01)
        except HardsaveError as error:
            self.ended.append(type(error).__name__)
            raise
        self.ended.append("done")
        return Answer(body={})

    def short(self, call: Call) -> Answer:
        return Answer(body={"ended": list(self.ended)})

    def routes(self, lane: Lane) -> tuple[Route, ...]:
        spec = Spec("", {}, body=())
        return (
            Route("POST", "/long", self.long, "act", lane=lane, spec=spec),
            Route("POST", "/short", self.short, "act", lane=lane, spec=spec),
        )


def asking(port: int, what: str = "POST /long") -> socket.socket:
    """A connection on which a long call was sent."""
    made = socket.create_connection(("127.0.0.1", port))
    head = f"{what} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OWN_TOKEN}"
    made.sendall(f"{head}\r\nContent-Length: 0\r\n\r\n".encode())
    return made


@pytest.mark.parametrize("lane", ["slow", "search", "upkeep"])
def test_a_call_that_no_client_waits_for_any_more_ends(tmp_path: Path, lane: Lane) -> None:
    work, count = Work(), THREADS[lane]
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with (
        serving(url, tmp_path, routes=work.routes(lane)) as server,
        ApiClient(server.port, OWN_TOKEN) as other,
    ):
        clients = [asking(server.port) for _ in range(count)]
        for _ in clients:
            assert work.begun.acquire(timeout=LIMIT)
        for each in clients:
            each.close()
        # All places were taken: this one waits until one is free, and nothing ends by itself.
        assert other.send("POST", "/short").data["ended"][:1] == ["Stopped"]
        end = time.monotonic() + LIMIT
        while other.send("POST", "/short").data["ended"] != ["Stopped"] * count:
            assert time.monotonic() < end


def test_no_other_read_waits_for_searches(tmp_path: Path) -> None:
    work = Work()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    routes = tuple(
        each._replace(handler=work.long) if each.path == "/api/v1/search" else each
        for each in ROUTES
    )
    with hardsave.open(url) as vault:
        vault.timeline("main").save({"a": 1})
    with (
        serving(url, tmp_path, routes=routes) as server,
        ApiClient(server.port, OWN_TOKEN) as other,
    ):
        clients = [asking(server.port, "GET /api/v1/search?text=x") for _ in range(4)]
        for _ in range(THREADS["search"]):
            assert work.begun.acquire(timeout=LIMIT)
        assert other.get("/api/v1/state?ref=main:1")["value"] == {"a": 1}
        assert other.get("/api/v1/diff?from=main:1&to=main:1")["files"]["changed"] == []
        assert work.ended == []
        work.may_end.set()
        for each in clients:
            each.close()


def test_an_act_whose_client_goes_away_is_done_to_its_end(tmp_path: Path) -> None:
    work = Work()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with (
        serving(url, tmp_path, routes=work.routes("write")) as server,
        ApiClient(server.port, OWN_TOKEN) as other,
    ):
        client = asking(server.port)
        assert work.begun.acquire(timeout=LIMIT)
        client.close()
        time.sleep(0.1)  # the server has seen that
        assert other.send("POST", "/short").data == {"ended": []}
        work.may_end.set()
        end = time.monotonic() + LIMIT
        while other.send("POST", "/short").data != {"ended": ["done"]}:
            assert time.monotonic() < end


def test_a_full_lane_refuses_and_says_when_to_come_again(tmp_path: Path) -> None:
    work, most = Work(), 1 + 8  # so many threads, and so many that wait
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with serving(url, tmp_path, routes=work.routes("upkeep")) as server:
        clients = [asking(server.port) for _ in range(most + 1)]
        told, _, _ = select.select(clients, [], [], LIMIT)
        assert len(told) == 1
        with http.client.HTTPResponse(told[0]) as answer:  # its body may come after its head
            answer.begin()
            code = json.loads(answer.read())["code"]
        work.may_end.set()
        for each in clients:
            each.close()
    assert (answer.status, answer.headers["Retry-After"], code) == (503, "1", "busy")


def test_a_stream_ends_when_tokens_cannot_be_read_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app, "_LOOK_SECONDS", 0.02)
    url, tokens = f"sqlite:///{tmp_path / 'store.db'}", TokenFile(tmp_path / "tokens.json")
    _, token = tokens.add(
        "ci", store=canonical(url), user=None, scope="read", now=datetime.now(UTC), expires_at=None
    )
    with serving(url, tmp_path) as server:
        made = socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT)
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}"
        made.sendall(f"{head}\r\n\r\n".encode())
        with made, made.makefile("rb") as told:
            assert b"event: hello\n" in iter(told.readline, b"")
            tokens.path.write_text("{")
            assert b"event: bye\n" not in told.read()
    assert "Traceback" not in caplog.text
