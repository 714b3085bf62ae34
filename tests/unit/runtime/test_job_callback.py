"""Callbacks: whom they may reach, how long they may take, what is said."""

import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import hardsave
from hardsave.defaults import CALLBACK_SECONDS, CALLBACK_TRIES
from hardsave.runtime.jobs import callback, notices
from hardsave.runtime.jobs.callback import CallbackFailed, is_public, send
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.ledger import TaskQuery
from hardsave.vault.jobs.ledger import Jobs
from tests.unit.runtime.listener import Listener, listening

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as server:
        yield server


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
    assert time.monotonic() - begun < 60
    assert len(listener.got) <= 1  # and none where it takes that long to get there


def test_a_connection_that_gives_up_by_itself_is_told_in_the_same_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(callback, "_to", silent)
    with pytest.raises(CallbackFailed, match="has not answered within 60 s"):
        send("http://127.0.0.1/", {}, allow_private=True, timeout_seconds=60)


def test_a_name_server_that_is_silent_is_given_up() -> None:
    release = threading.Event()

    def silent(host: str, port: int) -> list[str]:
        release.wait(60)
        return []

    with pytest.raises(CallbackFailed, match="has not answered within"):
        send("http://name.example/", {}, resolve=silent, timeout_seconds=0.1)
    release.set()


def test_a_server_that_is_down_is_told_as_such() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # so that nobody else has it
        port = taken.getsockname()[1]
        with pytest.raises(CallbackFailed, match="was not told"):
            send(f"http://127.0.0.1:{port}/", {}, allow_private=True)


def test_what_is_no_tls_server_is_told_as_such(listener: Listener) -> None:
    url = f"https://localhost:{listener.server_port}/"
    with pytest.raises(CallbackFailed, match="was not told"):
        send(url, {}, allow_private=True, timeout_seconds=60)


# What is said


@pytest.fixture
def vault() -> Iterator[hardsave.Vault]:
    with hardsave.open("memory://") as opened:
        yield opened


def work(vault: hardsave.Vault, agent: Agent[None, Any], *, private: bool = True) -> None:
    worker = Worker(vault, {"default": agent}, allow_private_callbacks=private)
    worker.run(until_idle=True, retry=AT_ONCE)


def test_success_is_told_once(vault: hardsave.Vault, listener: Listener) -> None:
    vault.jobs.add("fix", "Fix", callback=listener.url)
    seen: list[str] = []
    listener.got = _Noting(lambda: seen.append(vault.jobs.get("fix").state))
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


PULL = "https://example.com/pull/7"


@pytest.mark.parametrize(
    ("output", "about", "message", "pull_request"),
    [
        ({"message": "fixed", "pullRequestUrl": PULL}, {}, "fixed", PULL),
        ({"message": "fixed"}, {"pullRequestUrl": PULL}, "fixed", PULL),
        ({"pullRequestUrl": 7, "message": 8}, {}, "job fix has succeeded", None),
    ],
)
def test_an_output_of_fields_is_told_in_its_own_words_with_its_pull_request(
    vault: hardsave.Vault,
    listener: Listener,
    output: dict[str, Any],
    about: dict[str, Any],
    message: str,
    pull_request: str | None,
) -> None:
    agent: Agent[None, Any] = Agent(
        TestModel(custom_output_args=output), output_type=ToolOutput(dict[str, Any])
    )
    vault.jobs.add("fix", "Fix", callback=listener.url, about=about)
    work(vault, agent)
    [(_, _, told)] = listener.got
    assert (told["message"], told.get("pullRequestUrl")) == (message, pull_request)


def test_failure_is_told_once_and_only_when_it_is_final(
    vault: hardsave.Vault, listener: Listener
) -> None:
    vault.jobs.add("fix", "Fix", callback=listener.url, retries=2)
    work(vault, broken())
    [(_, _, told)] = listener.got
    assert told["error"] == told["message"] == "OSError: it is broken"
    assert (told["status"], told["success"]) == ("failed", False)
    assert vault.tasks.get("fix").attempts == 3


def test_a_worker_that_finds_another_dead_while_it_runs_tells_of_its_jobs(
    vault: hardsave.Vault, listener: Listener
) -> None:
    def wait(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        vault.jobs.add("fix", "Fix", callback=listener.url)
        vault.tasks.claim("fix")
        store = vault._context.store
        owner = store.tasks(None, TaskQuery(9, state="in_progress"))[-1].owner
        assert owner is not None
        store.let_go(None, owner)  # as whoever held it would be gone
        deadline = time.monotonic() + 60
        while not listener.got:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return ModelResponse(parts=[TextPart("waited")])

    vault.jobs.add("long", "Wait")
    work(vault, Agent(FunctionModel(wait)))
    [(_, _, told)] = listener.got
    assert (told["jobId"], told["status"]) == ("fix", "failed")
    assert "its process died" in told["error"]


def test_a_resumption_may_tell_somebody_else(vault: hardsave.Vault, listener: Listener) -> None:
    jobs = vault.jobs
    jobs.add("fix", "Fix", callback="http://nobody.invalid/")
    work(vault, broken())
    jobs.resume("fix", callback=listener.url)
    work(vault, broken())
    assert [told["jobId"] for _, _, told in listener.got] == ["fix~2"]


@pytest.mark.parametrize(
    ("status", "said"), [(503, "it is tried again"), (302, "it is not tried again")]
)
def test_a_callback_that_fails_does_not_fail_the_job(
    vault: hardsave.Vault,
    listener: Listener,
    status: int,
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener.status = status
    vault.jobs.add("fix", "Fix", callback=listener.url)
    with caplog.at_level(logging.WARNING):
        work(vault, Agent(TestModel(custom_output_text="done")))
    assert vault.jobs.get("fix").state == "succeeded"
    assert len(listener.got) == 1
    assert said in caplog.text


# Whoever ends it


def abandoned(vault: hardsave.Vault, id: str) -> None:
    """As if the worker of a job had died."""
    vault.tasks.claim(id)
    store = vault._context.store
    owner = store.tasks(None, TaskQuery(9, state="in_progress"))[-1].owner
    assert owner is not None
    store.let_go(None, owner)


def idle(vault: hardsave.Vault, **how: Any) -> None:
    """A worker that finds nothing to run."""
    Worker(vault, {}, allow_private_callbacks=True, **how).run(until_idle=True)


def test_a_job_whose_dead_worker_somebody_else_has_buried_is_told(
    vault: hardsave.Vault, listener: Listener
) -> None:
    vault.jobs.add("fix", "Fix", callback=listener.url)
    abandoned(vault, "fix")
    assert [task.id for task in vault.tasks.recover().interrupted] == ["fix"]
    idle(vault)
    assert [told["jobId"] for _, _, told in listener.got] == ["fix"]
    idle(vault)
    assert len(listener.got) == 1


def test_a_job_that_was_cancelled_is_told(vault: hardsave.Vault, listener: Listener) -> None:
    vault.jobs.add("fix", "Fix", callback=listener.url)
    vault.tasks.cancel("fix")
    idle(vault)
    [(_, _, told)] = listener.got
    assert (told["status"], told["error"]) == ("failed", "cancelled")


def test_what_nobody_answered_is_told_again_under_the_same_key(
    vault: hardsave.Vault, listener: Listener
) -> None:
    listener.status = 503
    vault.jobs.add("fix", "Fix", callback=listener.url)
    vault.tasks.cancel("fix")
    idle(vault, callback_retry=AT_ONCE)
    assert len(listener.got) == CALLBACK_TRIES
    (notice,) = vault.tasks.find(state="failed", limit=9)[1:]
    assert notice.error is not None
    assert "503" in notice.error
    assert set(listener.keys) == {notice.id}
    listener.status = 200
    vault.tasks.retry(notice.id)
    idle(vault)
    assert vault.tasks.get(notice.id).result == {"status": 200}


def test_a_job_that_ends_twice_is_told_twice(vault: hardsave.Vault, listener: Listener) -> None:
    vault.jobs.add("fix", "Fix", callback=listener.url)
    work(vault, broken())
    vault.tasks.retry("fix")
    work(vault, Agent(TestModel(custom_output_text="done")))
    assert [told["status"] for _, _, told in listener.got] == ["failed", "completed"]
    assert len(set(listener.keys)) == 2


def test_a_notice_is_no_job_and_no_other_runners(vault: hardsave.Vault, listener: Listener) -> None:
    listener.status = 503
    vault.jobs.add("fix", "Fix", callback=listener.url)
    vault.tasks.cancel("fix")
    idle(vault)
    (notice,) = vault.tasks.find(state="pending")
    assert Jobs.owns(notice)
    assert [job.id for job in vault.jobs.find()] == ["fix"]
    with pytest.raises(hardsave.NotFound):
        vault.jobs.get(notice.id)


def test_what_was_read_once_is_not_read_by_the_next_worker(vault: hardsave.Vault) -> None:
    """Else every start would cost what ever happened."""
    for number in range(3):
        vault.jobs.add(f"fix-{number}", "Fix", callback="http://nobody.invalid/")
        vault.tasks.cancel(f"fix-{number}")
    notices.Notices(vault, allow_private=False).write()
    through = vault.tasks.bookmark("callbacks")
    since = {each.kind for each in vault.tasks.happened(through)}
    assert since == {"added", "bookmark callbacks"}
    written = vault.tasks.find(state="pending")
    vault.tasks.forget(keep_completed=0)
    notices.Notices(vault, allow_private=False).write()
    assert vault.tasks.find(state="pending") == written
    assert len(written) == 3


def test_a_ledger_that_cannot_be_read_stops_no_messenger(
    vault: hardsave.Vault,
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    vault.jobs.add("fix", "Fix", callback=listener.url)
    vault.tasks.cancel("fix")
    happened, calls = type(vault.tasks).happened, []

    def away_at_first(self: Any, *args: Any, **how: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise hardsave.Unavailable("away")
        return happened(self, *args, **how)

    monkeypatch.setattr(type(vault.tasks), "happened", away_at_first)

    def wait(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        deadline = time.monotonic() + 60
        while not listener.got:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return ModelResponse(parts=[TextPart("waited")])

    vault.jobs.add("long", "Wait")
    work(vault, Agent(FunctionModel(wait)))
    assert "cannot be told for now" in caplog.text


WORKER = """
import sys, hardsave
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from hardsave.runtime.jobs.worker import Worker

agent = Agent(TestModel(custom_output_text="done"))
with hardsave.open(sys.argv[1]) as vault:
    Worker(vault, {"default": agent}, allow_private_callbacks=True).run()
"""


def test_a_worker_that_is_killed_while_it_tells_leaves_it_to_the_next(
    listener: Listener, tmp_path: Path
) -> None:
    listener.drip_seconds = 0.05
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as vault:
        vault.jobs.add("fix", "Fix", callback=listener.url)
        with subprocess.Popen([sys.executable, "-c", WORKER, url]) as worker:
            while not listener.got:
                time.sleep(0.01)
            worker.kill()
        listener.drip_seconds = 0
        idle(vault)
        assert vault.jobs.get("fix").state == "succeeded"
        assert [told["status"] for _, _, told in listener.got] == ["completed", "completed"]
        assert len(set(listener.keys)) == 1
        idle(vault)
        assert len(listener.got) == 2


def test_a_receiver_that_is_slow_does_not_keep_a_worker_from_ending(
    vault: hardsave.Vault, listener: Listener
) -> None:
    listener.drip_seconds = 0.05
    vault.jobs.add("fix", "Fix", callback=listener.url)
    vault.tasks.cancel("fix")
    begun = time.monotonic()
    worker = Worker(vault, {}, allow_private_callbacks=True)
    worker.run(until_idle=True, grace_seconds=0.5)
    assert time.monotonic() - begun < CALLBACK_SECONDS
    (notice,) = vault.tasks.find(state="pending")
    assert notice.attempts == 0  # handed back: the next worker begins again


def test_a_worker_calls_no_private_address_unless_it_is_allowed_to(
    vault: hardsave.Vault, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    vault.jobs.add("fix", "Fix", callback=listener.url)
    with caplog.at_level(logging.WARNING):
        work(vault, Agent(TestModel(custom_output_text="done")), private=False)
    assert vault.jobs.get("fix").state == "succeeded"
    assert listener.got == []
    assert "not a public address" in caplog.text


def test_what_is_said_of_a_failure_keeps_the_secrets_of_its_address() -> None:
    url = "http://me:pass-1@[::1]:9/hooks/T0ken-2?key=T0ken-3"
    with pytest.raises(CallbackFailed) as told:
        send(url, {})
    assert str(told.value).startswith("http://[::1]:9 was not told: ::1 leads to ::1")
    assert "pass-1" not in str(told.value)
    assert "T0ken" not in str(told.value)
