"""What errors of the library mean to a caller."""

import pytest

from hardsave.errors import Conflict, Corrupt, DeadlineExceeded, HardsaveError, Misuse, Unavailable
from hardsave.server.errors import refusal


@pytest.mark.parametrize(
    ("error", "status", "code", "headers"),
    [
        (Misuse("no"), 400, "misuse", ()),
        (Conflict("no"), 409, "conflict", ()),
        (Corrupt("no"), 500, "damaged", ()),
        (Unavailable("no"), 503, "unavailable", (("Retry-After", "1"),)),
        (DeadlineExceeded("no"), 503, "deadline", ()),  # it would take as long again
        (HardsaveError("no"), 500, "fault", ()),
    ],
)
def test_an_error_has_a_status_a_code_and_says_when_to_come_again(
    error: HardsaveError, status: int, code: str, headers: tuple[tuple[str, str], ...]
) -> None:
    found = refusal(error)
    assert (found.status, found.code, found.headers) == (status, code, headers)
