import json
from typing import Any

import pytest

from hardsave.client.problems import error_of, wait_after, wait_after_silence
from hardsave.client.transport import Reply
from hardsave.errors import (
    Conflict,
    Corrupt,
    DeadlineExceeded,
    HardsaveError,
    Misuse,
    NotFound,
    Unavailable,
)

URL = "http://localhost:8765"


def reply(status: int, code: str = "x", detail: str = "so it is", **headers: str) -> Reply:
    body: dict[str, Any] = {"status": status, "code": code, "detail": detail, "request_id": "r7"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "misuse", Misuse),
        (401, "token", Misuse),
        (403, "scope", Misuse),
        (404, "not_found", NotFound),
        (405, "method", Misuse),
        (409, "conflict", Conflict),
        (412, "precondition", Conflict),
        (413, "too_large", Misuse),
        (428, "precondition_required", Misuse),
        (429, "rate", Unavailable),
        (500, "damaged", Corrupt),
        (500, "fault", Unavailable),
        (503, "busy", Unavailable),
        (503, "deadline", DeadlineExceeded),
    ],
)
def test_a_problem_is_the_error_that_the_library_would_raise(
    status: int, code: str, kind: type[HardsaveError]
) -> None:
    found = error_of(reply(status, code), URL)
    assert type(found) is kind
    assert "so it is" in str(found)


def test_the_request_of_a_fault_of_the_server_is_named() -> None:
    assert "request r7" in str(error_of(reply(500, "fault"), URL))
    assert "r7" not in str(error_of(reply(404, "not_found"), URL))


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b'{"error": "no"}', b"[" * 100_000])
def test_an_answer_of_another_program_is_told_as_such(body: bytes) -> None:
    found = error_of(Reply(404, {}, body), URL)
    assert type(found) is Misuse
    assert URL in str(found)
    assert "hardsave serve" in str(found)
    assert type(error_of(Reply(502, {}, body), URL)) is Unavailable


def test_a_redirect_is_not_followed_but_told() -> None:
    found = error_of(Reply(308, {"location": "https://example.org/"}, b""), URL)
    assert type(found) is Misuse
    assert "https://example.org/" in str(found)


def test_a_server_that_is_busy_is_asked_again_when_it_says() -> None:
    assert wait_after(reply(503, retry_after="2"), 1) == 2
    assert wait_after(reply(503, retry_after="0"), 3) == wait_after_silence(3)
    assert wait_after(reply(502), 2) == wait_after_silence(2)


@pytest.mark.parametrize("wrong", [{}, {"retry_after": "soon"}, {"retry_after": "-1"}])
def test_a_server_that_says_no_time_is_not_asked_again(wrong: dict[str, str]) -> None:
    assert wait_after(reply(503, **wrong), 1) is None


@pytest.mark.parametrize("status", [400, 404, 409, 412, 429, 500])
def test_what_would_be_answered_the_same_again_is_not_asked_again(status: int) -> None:
    assert wait_after(reply(status, retry_after="1"), 1) is None


def test_each_wait_is_longer_than_the_one_before() -> None:
    waits = [wait_after_silence(tried) for tried in range(1, 6)]
    assert waits == sorted(set(waits))
