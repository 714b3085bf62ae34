"""What an error means to a caller of the server: a status, and a body in the form it expects. Pure.

Most routes answer `application/problem+json` (RFC 9457) with a stable `code` and the next step in
`detail`; documented routes `{error, message}`; pages HTML.
"""

from http import HTTPStatus

from hardsave.errors import (
    Conflict,
    Corrupt,
    DeadlineExceeded,
    HardsaveError,
    Misuse,
    NotFound,
    Unavailable,
)
from hardsave.server.page import render
from hardsave.server.route import HTML, JSON, Answer, Route
from hardsave.wording import in_our_words

PROBLEM = "application/problem+json"
_RETRY_SECONDS = 1
_LOGGED = "the server's log has more under this request_id"
_DEADLINE = "deadline"
_FAULT = f"a fault of hardsave itself; {_LOGGED}"

_STATUS: tuple[tuple[type[HardsaveError], int, str], ...] = (
    (NotFound, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (Corrupt, 500, "damaged"),
    (DeadlineExceeded, 503, _DEADLINE),  # before what it is one of
    (Unavailable, 503, "unavailable"),
    (Misuse, 400, "misuse"),
)
_DOCUMENTED = {409: 400}  # the documented routes know no other status for it


class Refused(HardsaveError):
    """A request is answered with this status. `code` is for programs, and never changes."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        title: str = "",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.title = title or HTTPStatus(status).phrase
        self.headers = headers


def refusal(error: Exception, *, documented: bool = False) -> Refused:
    """The error as a refusal. What is no error of ours is a fault, and its text is not told."""
    if isinstance(error, Refused):
        return error
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            status = _DOCUMENTED.get(status, status) if documented else status
            # A call that took too long would take as long again: it is not asked to come back.
            is_passing = status == 503 and code != _DEADLINE
            later = (("Retry-After", str(_RETRY_SECONDS)),) if is_passing else ()
            return Refused(status, code, in_our_words(str(error)), headers=later)
    detail = in_our_words(str(error)) if isinstance(error, HardsaveError) else _FAULT
    return Refused(500, "fault", detail)


def is_of_files(refused: Refused) -> bool:
    return refused.code in ("damaged", "unavailable")


def without_detail(refused: Refused) -> Refused:
    """For a caller that is not known: the text names paths, which are not for strangers."""
    return Refused(refused.status, refused.code, _LOGGED, headers=refused.headers)


def busy() -> Refused:
    return Refused(
        503,
        "busy",
        "the server has as many requests as it can take; repeat this one",
        headers=(("Retry-After", str(_RETRY_SECONDS)),),
    )


def stopping() -> Refused:
    return Refused(503, "stopping", "the server stops; look whether this was done, and repeat it")


def answer(
    refused: Refused, route: Route | None, request_id: str, *, as_page: bool, prefix: str = ""
) -> Answer:
    """The answer to a request that is refused, in the form of its route."""
    detail = str(refused)
    if as_page:
        page = render.refused(prefix, refused.title, refused.code, detail)
        return Answer(refused.status, page, HTML, refused.headers)
    if route is not None and route.documented:
        body = {"error": refused.title, "message": detail}
        return Answer(refused.status, body, JSON, refused.headers)
    problem = {
        "type": "about:blank",
        "title": refused.title,
        "status": refused.status,
        "detail": detail,
        "code": refused.code,
        "request_id": request_id,
    }
    return Answer(refused.status, problem, PROBLEM, refused.headers)
