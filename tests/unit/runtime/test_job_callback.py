"""Callbacks: whom they may reach, how long they may take, what is said."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import hardsave
from hardsave.runtime.jobs import Jobs, callback
from hardsave.runtime.jobs.callback import CallbackFailed, is_public, send
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.ledger import TaskQuery

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


class Listener(ThreadingHTTPServer):
    """Notes what it is sent, and answers as it was told."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, str, Any]] = []
        self.status = 200
        self.location: str | None = None
        self.drip_seconds = 0.0
        self.closing = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may leave."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/done?x=1"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Host"], json.loads(body)))
        while self.server.drip_seconds and not self.server.closing.wait(self.server.drip_seconds):
            self.wfile.write(b"H")  # an answer that never gets anywhere
            self.wfile.flush()
        self.send_response(self.server.status)
        if self.server.location is not None:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.closing.set()
    server.shutdown()
    server.server_close()


# Whom they may reach


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 # an address to refuse
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::10.0.0.1",
        "fec0::1",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "2002:7f00:1::",
        "2001:db8::1",
        "198.18.0.1",
    ],
)
def test_addresses_that_are_nobody_elses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_addresses_of_the_internet_are(address: str) -> None:
    assert is_public(address)


def test_a_private_address_is_not_called(listener: Listener) -> None:
    with pytest.raises(CallbackFailed, match="not a public address"):
        send(listener.url, {})
    assert listener.got == []


def test_a_name_with_one_private_address_among_others_is_not_called(listener: Listener) -> None:
    url = f"http://trap.example:{listener.server_port}/"
    with pytest.raises(CallbackFailed, match=r"trap\.example leads to 127\.0\.0\.1"):
        send(url, {}, resolve=lambda host, port: ["8.8.8.8", "127.0.0.1"])
    assert listener.got == []


def test_a_name_is_resolved_once_and_that_address_is_connected_to(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a name server that answers otherwise the second time changes nothing."""
    asked: list[str] = []
    connected: list[Any] = []
    connect = socket.create_connection

    def once(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    def noted(address: tuple[str, int], *args: Any) -> socket.socket:
        connected.append(address[0])
        return connect(address, *args)

    monkeypatch.setattr(socket, "create_connection", noted)
    monkeypatch.setattr(callback, "is_public", lambda address: True)
    url = f"http://name.example:{listener.server_port}/x"
    assert send(url, {"a": 1}, resolve=once) == 200
    assert (asked, connected) == (["name.example"], ["127.0.0.1"])
    assert listener.got == [("/x", f"name.example:{listener.server_port}", {"a": 1})]


def test_a_redirect_is_not_followed(listener: Listener) -> None:
    listener.status, listener.location = 307, "http://169.254.169.254/secrets"
    with pytest.raises(CallbackFailed, match="answered 307; redirects are not followed"):
        send(listener.url, {}, allow_private=True)
    assert len(listener.got) == 1


# How long they may take


def test_an_answer_that_drips_is_given_up(listener: Listener) -> None:
    listener.drip_seconds = 0.02
    begun = time.monotonic()
    with pytest.raises(CallbackFailed, match="has not answered within"):
        send(listener.url, {}, allow_private=True, timeout_seconds=0.3)
    assert time.monotonic() - begun < 10
    assert len(listener.got) == 1


def test_a_name_server_that_is_silent_is_given_up() -> None:
    release = threading.Event()

    def silent(host: str, port: int) -> list[str]:
        release.wait(30)
        return []

    with pytest.raises(CallbackFailed, match="has not answered within"):
        send("http://name.example/", {}, resolve=silent, timeout_seconds=0.1)
    release.set()


def test_a_server_that_is_down_is_told_as_such() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(CallbackFailed, match="was not told"):
        send(f"http://127.0.0.1:{port}/", {}, allow_private=True)


def test_what_is_no_tls_server_is_told_as_such(listener: Listener) -> None:
    url = f"https://localhost:{listener.server_port}/"
    with pytest.raises(CallbackFailed, match="was not told"):
        send(url, {}, allow_private=True, timeout_seconds=5)


# What is said


@pytest.fixture
def vault() -> Iterator[hardsave.Vault]:
    with hardsave.open("memory://") as opened:
        yield opened


def work(vault: hardsave.Vault, agent: Agent[None, Any], *, private: bool = True) -> None:
    worker = Worker(Jobs(vault), {"default": agent}, allow_private_callbacks=private)
    worker.run(until_idle=True, retry=AT_ONCE)


def test_success_is_told_once(vault: hardsave.Vault, listener: Listener) -> None:
    Jobs(vault).add("fix", "Fix", callback=listener.url)
    seen: list[str] = []
    listener.got = _Noting(lambda: seen.append(Jobs(vault).get("fix").state))
    agent: Agent[None, Any] = Agent(TestModel(custom_output_text="done"))
    work(vault, agent)
    [(path, _, told)] = listener.got
    assert path == "/done?x=1"
    assert told.pop("completedAt").endswith("+00:00")
    assert told == {"jobId": "fix", "status": "completed", "success": True, "message": "done"}
    assert seen == ["succeeded"]  # whoever is told and looks finds it so
    work(vault, agent)
    assert len(listener.got) == 1


class _Noting(list[Any]):
    def __init__(self, note: Any) -> None:
        super().__init__()
        self._note = note

    def append(self, item: Any) -> None:
        self._note()
        super().append(item)


def broken() -> Agent[None, Any]:
    def fall(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise OSError("it is broken")

    return Agent(FunctionModel(fall))


def test_failure_is_told_once_and_only_when_it_is_final(
    vault: hardsave.Vault, listener: Listener
) -> None:
    Jobs(vault).add("fix", "Fix", callback=listener.url, retries=2)
    work(vault, broken())
    [(_, _, told)] = listener.got
    assert told["error"] == told["message"] == "OSError: it is broken"
    assert (told["status"], told["success"]) == ("failed", False)
    assert vault.tasks.get("fix").attempts == 3


def test_a_worker_that_finds_another_dead_while_it_runs_tells_of_its_jobs(
    vault: hardsave.Vault, listener: Listener
) -> None:
    def wait(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        Jobs(vault).add("fix", "Fix", callback=listener.url)
        vault.tasks.claim("fix")
        store = vault._context.store
        owner = store.tasks(None, TaskQuery(9, state="in_progress"))[-1].owner
        assert owner is not None
        store.let_go(None, owner)  # as whoever held it would be gone
        deadline = time.monotonic() + 30
        while not listener.got:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return ModelResponse(parts=[TextPart("waited")])

    Jobs(vault).add("long", "Wait")
    work(vault, Agent(FunctionModel(wait)))
    [(_, _, told)] = listener.got
    assert (told["jobId"], told["status"]) == ("fix", "failed")
    assert "its process died" in told["error"]


def test_a_resumption_may_tell_somebody_else(vault: hardsave.Vault, listener: Listener) -> None:
    jobs = Jobs(vault)
    jobs.add("fix", "Fix", callback="http://nobody.invalid/")
    work(vault, broken())
    jobs.resume("fix", callback=listener.url)
    work(vault, broken())
    assert [told["jobId"] for _, _, told in listener.got] == ["fix~2"]


@pytest.mark.parametrize("status", [500, 302])
def test_a_callback_that_fails_does_not_fail_the_job(
    vault: hardsave.Vault, listener: Listener, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    listener.status = status
    Jobs(vault).add("fix", "Fix", callback=listener.url)
    with caplog.at_level(logging.WARNING):
        work(vault, Agent(TestModel(custom_output_text="done")))
    assert Jobs(vault).get("fix").state == "succeeded"
    assert len(listener.got) == 1
    assert "it is not tried again" in caplog.text


def test_a_worker_calls_no_private_address_unless_it_is_allowed_to(
    vault: hardsave.Vault, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    Jobs(vault).add("fix", "Fix", callback=listener.url)
    with caplog.at_level(logging.WARNING):
        work(vault, Agent(TestModel(custom_output_text="done")), private=False)
    assert Jobs(vault).get("fix").state == "succeeded"
    assert listener.got == []
    assert "not a public address" in caplog.text
