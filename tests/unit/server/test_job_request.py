"""What may be asked for in a body, and what the server's own list makes of it."""

from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import Misuse
from hardsave.server.errors import Refused
from hardsave.server.job_request import permitted, resume_callback, submission
from hardsave.server.route import Allowed

URL = "https://example.com/done"
ASKED = {"task": "Fix it", "agent": "coder", "workspace": "/srv/shop"}
KNOWN = Allowed(("coder", "tester"), (Path("/srv/shop"), Path("/srv/blog")))


@pytest.mark.parametrize("body", [None, {}])
def test_a_resume_needs_no_body(body: Any) -> None:
    assert resume_callback(body) is None


def test_a_resume_may_name_who_is_told() -> None:
    assert resume_callback({"callback": {"url": URL}}) == URL


BAD_CALLBACKS: list[Any] = [
    *(URL, None, 7, [], {}, {"url": None}, {"url": 7}, {"url": URL, "secret": "x"}, {"uri": URL}),
    *({"url": text} for text in ("", "ftp://example.com/", "http://", "file:///etc/passwd")),
    *({"url": text} for text in ("javascript:alert(1)", "//example.com/", "http://a b/")),
    *({"url": text} for text in ("http://a/\r\nX: 1", "http://a:b/", "http://[::1/")),
]


@pytest.mark.parametrize("callback", BAD_CALLBACKS)
def test_a_callback_that_is_none_is_refused_in_both_routes(callback: Any) -> None:
    with pytest.raises(Misuse, match="callback is"):
        resume_callback({"callback": callback})
    with pytest.raises(Misuse, match="callback is"):
        submission({**ASKED, "callback": callback})


@pytest.mark.parametrize("name", ["max_turns", "model", "from_ref", "url", ""])
def test_names_that_are_not_known_are_refused(name: str) -> None:
    with pytest.raises(Misuse, match="not known here"):
        resume_callback({name: 1})
    with pytest.raises(Misuse, match="not known here"):
        submission({**ASKED, name: 1})


@pytest.mark.parametrize("name", ["task", "agent", "workspace"])
@pytest.mark.parametrize("value", [..., None, "", "  ", 7, True, ["x"], {"a": 1}])
def test_what_a_submission_lacks_is_named(name: str, value: Any) -> None:
    body = {key: given for key, given in {**ASKED, name: value}.items() if given is not ...}
    with pytest.raises(Misuse, match=f"{name} is a text"):
        submission(body)


def test_what_is_allowed_is_stored_in_the_servers_own_spelling() -> None:
    asked = submission({**ASKED, "workspace": "/srv/blog/../shop", "callback": {"url": URL}})
    wanted = permitted(asked, "/srv/shop", KNOWN, tell=True)
    assert wanted == ("Fix it", "coder", "/srv/shop", URL)


@pytest.mark.parametrize("place", ["/srv", "/srv/shop/src", "/srv/shopping", "", "/", None])
def test_no_other_place_is_allowed(place: str | None) -> None:
    with pytest.raises(Refused) as refused:
        permitted(submission(ASKED), place, KNOWN, tell=True)
    assert refused.value.status == 403


@pytest.mark.parametrize("change", [{"agent": "other"}, {"agent": "Coder"}])
def test_what_is_allowed_is_named_only_to_a_caller_that_is_known(change: dict[str, str]) -> None:
    asked = submission({**ASKED, **change})
    with pytest.raises(Refused, match="allows: coder, tester"):
        permitted(asked, "/srv/shop", KNOWN, tell=True)
    with pytest.raises(Refused, match=r"allows$"):
        permitted(asked, "/srv/shop", KNOWN, tell=False)


def test_a_server_that_allows_none_says_how_to() -> None:
    with pytest.raises(Refused, match="hardsave serve --allow-agent"):
        permitted(submission(ASKED), "/srv/shop", Allowed(), tell=True)
