"""Walks the table of routes: no route lets a caller in that is not known, or writes for one."""

from datetime import UTC, datetime

import pytest

from hardsave.server.route import Route
from hardsave.server.table import ROUTES
from tests.integration.server.site import Site
from tests.unit.server.api_samples import samples

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

# A route that is added without a scope is open to every page and program of this machine. Each
# stands here, and tells nothing of the store.
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/assets/{name}"),
    ("GET", "/assets/{version}/{name}"),
}


@pytest.fixture(scope="module")
def strangers(site: Site) -> dict[str, dict[str, str]]:
    """Headers of callers that are not known."""
    revoked = site.token("gone")
    expired = site.token("old", ends=datetime(2026, 1, 2, tzinfo=UTC))
    site.revoke("gone")
    return {
        "no token": {},
        "wrong": {"authorization": "Bearer hs_wrong"},
        "no bearer": {"authorization": f"Basic {site.server.token}"},
        "revoked": {"authorization": f"Bearer {revoked}"},
        "expired": {"authorization": f"Bearer {expired}"},
        "wrong cookie": {"cookie": f"hardsave-{site.port}=hs_wrong"},
    }


@pytest.fixture(scope="module")
def foreign(site: Site) -> dict[str, dict[str, str]]:
    """Headers of requests that come from pages of other sites, with a token that counts."""
    return {
        "bad Host": {**site.own, "host": "evil.example"},
        "foreign Origin": {**site.own, "origin": "http://evil.example"},
        "null Origin": {**site.own, "origin": "null"},
        "another port": {**site.own, "origin": "http://127.0.0.1:1"},
        "another site": {**site.own, "sec_fetch_site": "cross-site"},
        "another server of this machine": {**site.own, "sec_fetch_site": "same-site"},
    }


def filled(route: Route, id: str = "alices-fix") -> str:
    """Its path, about a job that could be resumed."""
    return route.path.replace("{id}", id) + (f"?id={id}" if route.page else "")


PATHS = [*sorted({filled(route) for route in ROUTES}), "/nosuch", "/checkpoints/alices-fix/nosuch"]
OPEN_PATHS = {path for _, path in OPEN}


def is_open(method: str, path: str) -> bool:
    asked = "GET" if method in ("HEAD", "OPTIONS") else method
    return (asked, path.partition("?")[0]) in OPEN or (
        method == "OPTIONS" and path.partition("?")[0] in OPEN_PATHS
    )


def test_only_these_routes_are_open() -> None:
    assert {(route.method, route.path) for route in ROUTES if route.scope is None} == OPEN


Doors = dict[str, dict[str, str]]


def test_no_route_lets_a_caller_in_that_is_not_known(
    site: Site, strangers: Doors, foreign: Doors
) -> None:
    before = site.written()
    wrong = []
    for path in PATHS:
        for method in METHODS:
            for who, headers in strangers.items():
                status = site.send(method, path, **headers).status_code
                if status not in (401, 429) and not is_open(method, path):
                    wrong.append((who, method, path, status))
            for who, headers in foreign.items():
                status = site.send(method, path, **headers).status_code
                if status != 403:
                    wrong.append((who, method, path, status))
    assert wrong == []
    assert site.written() == before


def test_no_request_that_would_be_done_is_done_for_a_caller_that_is_not_known(
    site: Site, strangers: Doors, foreign: Doors
) -> None:
    before = site.written()
    wrong = []
    for sample in samples(site.things):
        for who, headers in {**strangers, **foreign}.items():
            answer = site.send_sample(sample, **headers)
            is_refused = answer.status_code in ((403,) if who in foreign else (401, 429))
            if not is_refused or site.things.word in answer.text:
                wrong.append((who, sample.route.method, sample.path, answer.status_code))
    assert wrong == []
    assert site.written() == before


def test_callers_that_are_let_in_are_told_what_is_not_there(site: Site) -> None:
    assert site.send("GET", "/nosuch", **site.own).status_code == 404
    wrong_method = site.send("PATCH", "/checkpoints", **site.own)
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    options = site.send("OPTIONS", "/checkpoints", **site.own)
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    head, get = (site.send(method, "/checkpoints", **site.own) for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (200, b"")
    assert get.json()["total"] > 0


def test_every_answer_keeps_browsers_out_of_it(site: Site) -> None:
    for path in ("/", "/checkpoints", "/nosuch", "/login", "/healthz"):
        headers = site.send("GET", path, **site.own).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize("cookie", ["", "x=1", "hardsave=1; hardsave=2", "\xff=;;=", "a" * 5_000])
def test_a_strange_cookie_is_none(site: Site, cookie: str) -> None:
    headers = {b"cookie": cookie.encode("latin-1")}
    assert site.client.get("/", headers=headers).status_code == 401
