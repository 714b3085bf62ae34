import pytest

from hardsave.server import door
from hardsave.server.caller import Caller
from hardsave.server.door import Seen, headers_of
from hardsave.server.errors import Refused
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.server.table import Found, find

SECRET = "secret"  # noqa: S105 # of a test
OWN = "http://localhost:8765"


def nothing(call: Call) -> Answer:
    return Answer()


ROUTES = (
    Route("GET", "/jobs", nothing, scope="read"),
    Route("POST", "/jobs", nothing, scope="act"),
    Route("GET", "/jobs/{id}", nothing, scope="read"),
    Route("POST", "/form", nothing, scope="act", page=True),
    Route("GET", "/login", nothing, scope=None, page=True),
    Route("POST", "/login", nothing, scope=None, page=True),
    Route("GET", "/page", nothing, scope="read", page=True),
    Route("GET", "/act", nothing, scope="read", spec=Spec("Look", {})),
    Route("POST", "/act", nothing, scope="act", spec=Spec("Act", {}, body=())),
)
ADMIN = Caller("a", None, "admin")


def seen(method: str = "GET", path: str = "/jobs", **headers: str) -> Seen:
    given = {"host": "localhost:8765", **{k.replace("_", "-"): v for k, v in headers.items()}}
    pairs = [(name.encode(), value.encode()) for name, value in given.items()]
    return Seen(method, path, headers_of(pairs), "127.0.0.1", "127.0.0.1")


def at(request: Seen) -> Found:
    return find(request.method, request.raw_path, ROUTES)


def refused(check: object, *given: object) -> Refused:
    with pytest.raises(Refused) as caught:
        check(*given)  # type: ignore[operator]  # one of the checks of the door
    return caught.value


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8765", "127.0.0.1:1", "[::1]:8765", "LOCALHOST:8765"]
)
def test_the_names_of_this_machine_are_answered(host: str) -> None:
    door.check_address(seen(host=host), door.LOOPBACK_NAMES)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "localhost:8765@evil.example",
        "",
        "127.0.0.1.nip.io",
    ],
)
def test_any_other_name_is_refused(host: str) -> None:
    assert refused(door.check_address, seen(host=host), door.LOOPBACK_NAMES).status == 403


def test_a_request_without_a_host_is_refused() -> None:
    bare = seen()._replace(headers={})
    assert refused(door.check_address, bare, door.LOOPBACK_NAMES).status == 403


def test_the_address_that_a_connection_came_to_is_a_name_of_the_server() -> None:
    there = seen(host="192.0.2.7:8765")._replace(local="192.0.2.7")
    door.check_address(there, door.LOOPBACK_NAMES)
    other = there._replace(local="192.0.2.8")
    assert refused(door.check_address, other, door.LOOPBACK_NAMES).code == "host"


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-type"])
def test_a_header_that_came_twice_is_refused(name: str) -> None:
    request = seen()
    twice = request._replace(headers={**request.headers, name: ("localhost", "localhost")})
    assert refused(door.check_address, twice, door.LOOPBACK_NAMES).status == 400


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "https://localhost:8765",
        "http://localhost:9999",
        "http://localhost",
        "",
    ],
)
def test_another_origin_is_refused(origin: str) -> None:
    request = seen(origin=origin)
    assert refused(door.check_site, request, at(request)).status == 403


def test_programs_and_own_pages_may_send_requests() -> None:
    for request in (
        seen(),
        seen(origin=OWN),
        seen(sec_fetch_site="same-origin"),
        seen(sec_fetch_site="none"),
    ):
        door.check_site(request, at(request))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "strange"])
def test_a_page_of_another_site_leads_to_the_login_alone(site: str) -> None:
    def linked(path: str, method: str = "GET", mode: str = "navigate") -> Seen:
        return seen(method, path, sec_fetch_site=site, sec_fetch_mode=mode)

    way_in = linked("/login")
    door.check_site(way_in, at(way_in))
    for request in (
        linked("/page"),
        linked("/jobs"),
        linked("/login", mode="no-cors"),
        linked("/login", "POST"),
        linked("/nosuch"),
    ):
        assert refused(door.check_site, request, at(request)).status == 403


def test_a_stranger_does_not_learn_which_paths_there_are() -> None:
    for request in (seen(path="/jobs"), seen(path="/nosuch"), seen("PATCH")):
        assert refused(door.check_caller, request, at(request), None).status == 401


def test_a_caller_that_is_let_in_is_told_what_is_not_there() -> None:
    gone, wrong = seen(path="/nosuch"), seen("PATCH")
    assert refused(door.check_caller, gone, at(gone), ADMIN).status == 404
    answer = refused(door.check_caller, wrong, at(wrong), ADMIN)
    assert (answer.status, answer.headers) == (405, (("Allow", "GET, HEAD, OPTIONS, POST"),))


@pytest.mark.parametrize(
    ("scope", "method", "status"),
    [("read", "GET", 0), ("read", "POST", 403), ("act", "POST", 0), ("admin", "POST", 0)],
)
def test_a_scope_allows_what_stands_before_it(scope: str, method: str, status: int) -> None:
    request = seen(method)
    caller = ADMIN._replace(scope=scope)  # type: ignore[arg-type]  # one of them
    if not status:
        door.check_caller(request, at(request), caller)
    else:
        assert refused(door.check_caller, request, at(request), caller).status == status


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 0),
        ("POST", {"content-length": "0"}, 0),
        ("POST", {"content-length": "2", "content-type": "application/json"}, 0),
        ("POST", {"content-length": "2", "content-type": "Application/JSON; charset=UTF-8"}, 0),
        ("POST", {"transfer-encoding": "chunked", "content-type": "application/json"}, 0),
        ("POST", {"content-length": "2"}, 415),
        ("POST", {"transfer-encoding": "chunked"}, 415),
        ("POST", {"content-length": "2", "content-type": "text/plain"}, 415),
        ("POST", {"content-length": "2", "content-type": "application/json; charset=utf-7"}, 415),
        ("POST", {"content-length": "2", "content-type": door.FORM}, 415),
        (
            "POST",
            {"content-length": "2", "content-type": "application/json", "content-encoding": "gzip"},
            415,
        ),
        ("POST", {"content-length": "1048577", "content-type": "application/json"}, 413),
        ("POST", {"content-length": "9" * 5_000, "content-type": "application/json"}, 413),
        ("GET", {"content-length": "2", "content-type": "application/json"}, 400),
        ("DELETE", {"content-length": "2", "content-type": "application/json"}, 400),
    ],
)
def test_a_body_is_json_and_not_too_large(
    method: str, headers: dict[str, str], status: int
) -> None:
    request = seen(method)
    request = request._replace(
        headers={**request.headers, **{name: (value,) for name, value in headers.items()}}
    )
    if not status:
        door.check_body(request, at(request))
    else:
        assert refused(door.check_body, request, at(request)).status == status


def test_a_form_needs_its_origin_and_its_session() -> None:
    caller = ADMIN._replace(form_token=SECRET)
    own = seen("POST", "/form", origin=OWN)
    right = f"{door.FORM_TOKEN}={SECRET}".encode()
    door.check_form(own, at(own), caller, right)
    same_site = seen("POST", "/form", sec_fetch_site="same-origin")
    door.check_form(same_site, at(same_site), caller, right)
    for request, who, body in (
        (seen("POST", "/form"), caller, right),
        (own, caller, f"{door.FORM_TOKEN}=other".encode()),
        (own, caller, b""),
        (own, ADMIN, f"{door.FORM_TOKEN}=".encode()),  # a token of a program is no session
    ):
        assert refused(door.check_form, request, at(request), who, body).status == 403


def test_a_script_of_a_page_sends_the_token_of_its_session_as_a_header() -> None:
    caller = ADMIN._replace(form_token=SECRET)
    sent = seen("POST", "/act", origin=OWN, x_hardsave_form=SECRET)
    door.check_form(sent, at(sent), caller, b"{}")
    program = seen("POST", "/act")
    door.check_form(program, at(program), ADMIN, b"{}")  # known by its token, which no browser has
    look = seen("GET", "/act")
    door.check_form(look, at(look), caller, b"")
    for request in (
        seen("POST", "/act", x_hardsave_form=SECRET),
        seen("POST", "/act", origin=OWN),
        seen("POST", "/act", origin=OWN, x_hardsave_form="other"),
    ):
        assert refused(door.check_form, request, at(request), caller, b"{}").status == 403


@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("/jobs/fix~2", "fix~2"),
        ("/jobs/%2E%2E", ".."),
        ("/jobs/a%2Fb%3Fc%23d", "a/b?c#d"),
        ("/jobs/%C3%A9", "é"),
        ("/jobs/a%252Fb", "a%2Fb"),
    ],
)
def test_an_id_is_one_segment_however_it_is_spelt(path: str, id: str) -> None:
    assert find("GET", path, ROUTES).path == {"id": id}


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/a/b",
        "/jobs/",
        "/jobs//",
        "//jobs",
        "/jobs/%FF",
        "/JOBS",
        "/%6Aobs",
        "/jobs/a/",
    ],
)
def test_a_path_that_is_spelt_otherwise_is_another_one(path: str) -> None:
    assert find("GET", path, ROUTES).route is None


def test_two_ways_to_tell_where_a_body_ends_are_refused_and_the_connection_is_closed() -> None:
    both = seen("POST", content_length="5", transfer_encoding="chunked")
    found = refused(door.check_address, both, door.LOOPBACK_NAMES)
    assert (found.status, found.headers) == (400, (("Connection", "close"),))


@pytest.mark.parametrize(
    ("headers", "is_page"),
    [
        ({"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}, True),
        ({"accept": "text/html", "authorization": "Bearer x"}, False),
        ({"accept": "application/json, text/html"}, False),
        ({"accept": "*/*"}, False),
        ({}, False),
    ],
)
def test_a_browser_is_answered_in_html(headers: dict[str, str], is_page: bool) -> None:
    assert door.prefers_html(seen(**headers)) is is_page
