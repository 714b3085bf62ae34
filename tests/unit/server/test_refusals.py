"""Errors of the library as answers."""

import pytest

from hardsave import errors as ours
from hardsave.server.errors import Refused, refusal
from hardsave.stores.requests import OtherRequest


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ours.NotFound("x"), 404, "not_found"),
        (ours.Conflict("x"), 409, "conflict"),
        (ours.LeaseLost("x"), 409, "conflict"),
        (OtherRequest("x"), 409, "conflict"),
        (ours.Corrupt("x"), 500, "damaged"),
        (ours.Unavailable("x"), 503, "unavailable"),
        (ours.DeadlineExceeded("x"), 503, "deadline"),
        (ours.Misuse("x"), 400, "misuse"),
        (ours.Unstorable("state.a", "x"), 400, "misuse"),
        (Refused(418, "tea", "x"), 418, "tea"),
    ],
)
def test_an_error_of_ours_has_a_status_and_a_code(error: Exception, status: int, code: str) -> None:
    found = refusal(error)
    assert (found.status, found.code) == (status, code)
    assert str(found) == str(error)
    # What took too long would take as long again.
    is_worth_repeating = status == 503 and code != "deadline"
    assert (("Retry-After", "1") in found.headers) is is_worth_repeating


def test_the_text_of_any_other_error_is_not_told() -> None:
    found = refusal(KeyError("a secret"))
    assert (found.status, found.code) == (500, "fault")
    assert "secret" not in str(found)


def test_the_documented_routes_know_no_conflict() -> None:
    assert refusal(ours.Conflict("x"), documented=True).status == 400
