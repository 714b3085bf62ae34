"""Requests as they are sent, sent again, and given up."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hardsave.client import RemoteVault, connect
from hardsave.client.address import parse
from hardsave.client.calls import Calls
from hardsave.client.reading import Unreadable
from hardsave.defaults import CLIENT_TRIES
from hardsave.errors import Conflict, Corrupt, HardsaveError, Misuse, NotFound, Unavailable
from tests.unit.client.scripted import (
    ABOUT,
    BUSY,
    LOST,
    TOKEN,
    Answer,
    Scripted,
    free_port,
    problem,
)

SAVED = {"id": "chk_1", "timeline": "main", "seq": 1}
PAGE: dict[str, Any] = {"items": [], "next": None}


@contextmanager
def calling(url: str, seconds: float = 30, **options: Any) -> Iterator[Calls]:
    """With waits that take no time, unless the test says otherwise."""
    found = Calls(parse(url), TOKEN, None, seconds, **{"sleep": lambda _: None, **options})
    yield found
    found.close()


# What is sent


def test_a_read_has_the_token_the_project_and_no_empty_parameters(server: Scripted) -> None:
    server.says("/timelines", PAGE)
    with connect(server.url, token=TOKEN, project="p1") as vault:
        vault.sessions(prefix="a/b ü&", limit=7)
    (seen,) = server.asked("/timelines")
    assert seen.query == {"project": "p1", "prefix": "a/b ü&", "limit": "7"}
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"
    assert "idempotency-key" not in seen.headers


def test_the_token_may_stand_in_the_environment(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_TOKEN", "hs_set")
    connect(server.url).close()
    connect(server.url, token=TOKEN).close()
    sent = [each.headers["authorization"] for each in server.seen]
    assert sent == ["Bearer hs_set", f"Bearer {TOKEN}"]


@pytest.mark.parametrize("token", ["hs_a\r\nX: y", "hs_ü", "two words", 7])
def test_a_token_that_no_header_can_hold_is_refused_and_not_told(
    server: Scripted, token: Any
) -> None:
    with pytest.raises(Misuse, match="hardsave token add") as refused:
        connect(server.url, token=token)
    assert str(token) not in str(refused.value)
    assert server.seen == []


def test_a_path_of_a_proxy_stands_before_every_path(server: Scripted) -> None:
    server.says("/timelines", PAGE)
    with pytest.raises(NotFound):  # as this server has it
        connect(f"{server.url}/tools/hardsave/")
    assert server.seen[-1].path == "/tools/hardsave/api/v1"


def test_an_act_has_a_new_key_each_time_unless_it_is_given(
    server: Scripted, vault: RemoteVault
) -> None:
    server.says("/checkpoints", Answer(201, SAVED))
    line = vault.timeline("main")
    for key in (None, None, "mine"):
        line.save({"a": 1}, key=key)
    keys = [each.headers["idempotency-key"] for each in server.asked("/checkpoints")]
    assert len({*keys}) == 3
    assert keys[2] == "mine"


@pytest.mark.parametrize("key", ["", "x" * 201, "ü", "a\nb", 'a"b'])
def test_a_key_that_no_header_can_hold_is_refused(vault: RemoteVault, key: str) -> None:
    with pytest.raises(Misuse, match="200 printable"):
        vault.undo(key=key)


def test_what_is_closed_says_so(server: Scripted, vault: RemoteVault) -> None:
    vault.close()
    vault.close()
    with pytest.raises(Misuse, match="closed"):
        vault.sessions()


# What comes back


def test_a_compressed_answer_is_read(server: Scripted, vault: RemoteVault) -> None:
    told = {"items": [{**SAVED, "name": "n" * 5_000}], "next": "c"}
    server.says("/checkpoints", Answer(200, told, {"Content-Encoding": "gzip"}))
    found = vault.checkpoints(labels={"a": "b"})
    assert found[0].name == "n" * 5_000
    assert found.next == "c"
    assert server.asked("/checkpoints")[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("body", [b"<html>", b"{", b"[" * 300, b"\xff\xfe"])
def test_an_answer_that_is_no_json_is_an_error_of_ours(
    server: Scripted, vault: RemoteVault, body: bytes
) -> None:
    server.says("/timelines", Answer(200, body))
    with pytest.raises(Unreadable, match=server.url):
        vault.sessions()


def test_a_server_of_another_version_of_the_api_is_refused(server: Scripted) -> None:
    server.says("", {**ABOUT, "api": 2})
    with pytest.raises(Misuse, match="version 2"):
        connect(server.url)


def test_errors_of_the_server_are_those_of_the_library(
    server: Scripted, vault: RemoteVault
) -> None:
    server.says(
        "/checkpoint",
        problem(404, "not_found", "there is no checkpoint 'x'; see 'hardsave log'"),
        problem(500, "damaged", "an object is damaged"),
    )
    with pytest.raises(NotFound, match="see 'hardsave log'"):
        vault.get("x")
    with pytest.raises(Corrupt, match="request r1"):
        vault.get("x")
    server.says("/undo", problem(409, "conflict", "it was undone already"))
    with pytest.raises(Conflict, match="already"):
        vault.undo()


# What is sent again


def test_an_act_whose_answer_was_lost_is_sent_again_with_its_key(
    server: Scripted, vault: RemoteVault
) -> None:
    server.says("/checkpoints", LOST, LOST, Answer(201, SAVED))
    assert vault.timeline("main").save({"a": 1}).id == "chk_1"
    first, second, third = server.asked("/checkpoints")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert (first.body, first.query) == (second.body, second.query)
    assert third.body == first.body


def test_a_server_that_is_busy_is_asked_again_when_it_says(server: Scripted) -> None:
    waits: list[float] = []
    server.says(
        "/x", problem(503, "busy", "busy", Retry_After="3"), BUSY, problem(502, "x", ""), {"a": 1}
    )
    with calling(server.url, sleep=waits.append) as calls:
        assert calls.read("/x") == {"a": 1}
    assert waits == [3, 0.2, 0.4]


def test_a_server_that_stays_busy_is_given_up_after_so_many_tries(server: Scripted) -> None:
    server.says("/x", BUSY)
    with calling(server.url) as calls, pytest.raises(Unavailable, match="too many requests"):
        calls.act("/x", {})
    assert len(server.asked("/x")) == CLIENT_TRIES
    assert len({each.headers["idempotency-key"] for each in server.asked("/x")}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 428, 429, 500])
def test_a_refusal_is_not_asked_for_again(server: Scripted, status: int) -> None:
    server.says("/x", problem(status, "no", "no", Retry_After="0"))
    with calling(server.url) as calls, pytest.raises(HardsaveError, match="no"):
        calls.act("/x", {})
    assert len(server.asked("/x")) == 1


def test_tries_end_when_the_time_of_a_call_is_up(server: Scripted) -> None:
    moments = iter([0.0, 1.0, 29.8])
    server.says("/x", BUSY)
    with (
        calling(server.url, clock=lambda: next(moments)) as calls,
        pytest.raises(Unavailable, match="too many"),
    ):
        calls.read("/x")
    assert len(server.asked("/x")) == 2


def test_a_wait_that_would_take_too_long_is_not_begun(server: Scripted) -> None:
    waits: list[float] = []
    server.says("/x", problem(503, "busy", "busy", Retry_After="3600"))
    with (
        calling(server.url, sleep=waits.append) as calls,
        pytest.raises(Unavailable, match="busy"),
    ):
        calls.read("/x")
    assert waits == []


def test_where_no_server_listens_the_next_step_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with calling(url) as calls, pytest.raises(Unavailable, match="hardsave serve") as refused:
        calls.read("")
    assert url in str(refused.value)


def test_a_server_that_says_nothing_is_given_up_in_time(server: Scripted) -> None:
    def silent(_: Any) -> str:
        server.over.wait()
        return LOST

    server.says("/x", silent)
    with (
        calling(server.url, seconds=0.2) as calls,
        pytest.raises(Unavailable, match="no answer in time"),
    ):
        calls.read("/x")


def test_a_further_try_has_the_time_that_is_left(server: Scripted) -> None:
    def silent(_: Any) -> str:
        server.over.wait()
        return LOST

    moments = iter([0.0, 29.6])  # the first try took so long; 0.1 s are waited for the second
    server.says("/x", LOST, silent)
    began = time.monotonic()
    with (
        calling(server.url, clock=lambda: next(moments, 30.0)) as calls,
        pytest.raises(Unavailable, match="no answer in time"),
    ):
        calls.read("/x")
    assert len(server.asked("/x")) == 2
    assert time.monotonic() - began < 15  # and not another 30


# Connections


def test_one_connection_carries_many_requests(server: Scripted, vault: RemoteVault) -> None:
    server.says("/timelines", PAGE)
    for _ in range(5):
        vault.sessions()
    assert len({each.connection for each in server.seen}) == 1


def test_connections_that_a_server_has_closed_cost_one_try(
    server: Scripted, vault: RemoteVault
) -> None:
    """As after a restart of the server: each of several threads has left one."""
    together = threading.Barrier(6)

    def at_once(_: Any) -> dict[str, Any]:
        together.wait(30)
        return PAGE

    server.says("/timelines", at_once)
    threads = [threading.Thread(target=vault.sessions) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    kept = {each.connection for each in server.seen}
    assert len(kept) > CLIENT_TRIES
    server.says("/timelines", lambda seen: LOST if seen.connection in kept else PAGE)
    assert [*vault.sessions()] == []
    assert len(server.asked("/timelines")) == 8


def test_there_is_no_wait_after_a_connection_that_was_closed_while_it_was_free(
    server: Scripted,
) -> None:
    waits: list[float] = []
    server.says("/x", {"a": 1}, LOST, LOST, {"a": 2})
    with calling(server.url, sleep=waits.append) as calls:
        calls.read("/x")
        assert calls.read("/x") == {"a": 2}
    assert waits == [0, 0.2]


def test_threads_share_a_vault(server: Scripted, vault: RemoteVault) -> None:
    def told(seen: Any) -> dict[str, Any]:
        return {"items": [{**SAVED, "id": seen.query["labels"]}], "next": None}

    server.says("/checkpoints", told)
    wrong: list[str] = []

    def ask(number: int) -> None:
        for _ in range(20):
            (found,) = vault.checkpoints(labels={"n": str(number)})
            if found.id != f'{{"n": "{number}"}}':
                wrong.append(found.id)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert len(server.asked("/checkpoints")) == 160


def test_a_forked_process_does_not_use_the_connections_of_its_parent(
    server: Scripted, vault: RemoteVault
) -> None:
    server.says("/timelines", PAGE)
    vault.sessions()
    process = os.fork()
    if process == 0:
        try:
            vault.sessions()
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    vault.sessions()
    first, child, again = (each.connection for each in server.asked("/timelines"))
    assert first == again != child
