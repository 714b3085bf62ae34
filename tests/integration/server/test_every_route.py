"""Walks the table of routes: no route lets a caller in that is not known, or writes for one."""

import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2
import pytest

from hardsave.server.route import Route
from hardsave.server.table import ROUTES
from hardsave.server.tokens import FILE, TokenFile, canonical
from tests.integration.server.conftest import LIMIT, Server, environment, starting
from tests.integration.server.malformed import bodies
from tests.unit.cli.jobs_project import make_jobs

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

# A route that is added without a scope is open to every page and program of this machine. Each
# stands here, and tells nothing of the store.
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/assets/{name}"),
}


class Site(NamedTuple):
    """A server over jobs in several states, and tokens of every kind."""

    server: Server
    client: httpx2.Client
    other_user: str
    revoked: str
    expired: str

    def send(self, method: str, path: str, **headers: str) -> httpx2.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if method in ("POST", "PUT", "PATCH"):
            given["content-type"] = "application/json"
            return self.client.request(method, path, headers=given, content=b"{}")
        return self.client.request(method, path, headers=given)

    def written(self) -> list[tuple[str, list[object]]]:
        """Every row of the store."""
        path = self.server.store.removeprefix("sqlite:///")
        with sqlite3.connect(path) as connection:
            tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            return [
                (name, list(connection.execute(f'SELECT * FROM "{name}"')))  # noqa: S608 # its own
                for (name,) in tables.fetchall()
            ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    tmp_path = tmp_path_factory.mktemp("site")

    tokens = TokenFile(Path(environment(tmp_path)["XDG_DATA_HOME"], "hardsave", FILE))

    def token(name: str, *, user: str | None = None, ends: datetime | None = None) -> str:
        store, now = canonical(server.store), datetime(2026, 1, 1, tzinfo=UTC)
        return tokens.add(name, store=store, user=user, scope="admin", now=now, expires_at=ends)[1]

    with starting(tmp_path) as start, pytest.MonkeyPatch.context() as patch:
        server = start("--allow-agent", "default", "--allow-workspace", ".")
        patch.setenv("HARDSAVE_STORE", server.store)
        patch.chdir(server.folder)
        make_jobs(server.folder)
        other, revoked = token("bob", user="bob"), token("gone")
        expired = token("old", ends=datetime(2026, 1, 2, tzinfo=UTC))
        tokens.revoke("gone", store=canonical(server.store))
        with httpx2.Client(base_url=server.url, timeout=LIMIT) as client:
            yield Site(server, client, other, revoked, expired)


def filled(route: Route, id: str = "fix") -> str:
    """Its path, about a job that could be resumed."""
    return route.path.replace("{id}", id) + (f"?id={id}" if route.page else "")


PATHS = [*sorted({filled(route) for route in ROUTES}), "/nosuch", "/checkpoints/fix/nosuch"]
OPEN_PATHS = {path for _, path in OPEN}


def is_open(method: str, path: str) -> bool:
    asked = "GET" if method in ("HEAD", "OPTIONS") else method
    return (asked, path.partition("?")[0]) in OPEN or (
        method == "OPTIONS" and path.partition("?")[0] in OPEN_PATHS
    )


def test_only_these_routes_are_open() -> None:
    assert {(route.method, route.path) for route in ROUTES if route.scope is None} == OPEN


def test_no_route_lets_a_caller_in_that_is_not_known(site: Site) -> None:
    before = site.written()
    own = f"Bearer {site.server.token}"
    strangers = {
        "no token": {},
        "wrong": {"authorization": "Bearer hs_wrong"},
        "no bearer": {"authorization": f"Basic {site.server.token}"},
        "revoked": {"authorization": f"Bearer {site.revoked}"},
        "expired": {"authorization": f"Bearer {site.expired}"},
        "wrong cookie": {"cookie": f"hardsave-{urlsplit(site.server.url).port}=hs_wrong"},
    }
    foreign = {
        "bad Host": {"authorization": own, "host": "evil.example"},
        "foreign Origin": {"authorization": own, "origin": "http://evil.example"},
        "null Origin": {"authorization": own, "origin": "null"},
        "another port": {"authorization": own, "origin": "http://127.0.0.1:1"},
        "another site": {"authorization": own, "sec_fetch_site": "cross-site"},
        "another server of this machine": {"authorization": own, "sec_fetch_site": "same-site"},
    }
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


def test_a_job_of_another_user_is_answered_like_one_that_is_not_there(site: Site) -> None:
    before = site.written()
    bearer = {"authorization": f"Bearer {site.other_user}"}
    for route in ROUTES:
        if route.scope is None:
            continue
        theirs = site.send(route.method, filled(route), **bearer)
        none = site.send(route.method, filled(route, "zzz"), **bearer)
        assert theirs.status_code == none.status_code, route
        assert nameless(theirs) == nameless(none), route
        if route.method != "GET":
            assert theirs.status_code in (400, 403, 404, 415), route
    assert site.written() == before


def nameless(answer: httpx2.Response) -> str:
    return answer.text.replace("fix", "ID").replace("zzz", "ID")


def test_callers_that_are_let_in_are_told_what_is_not_there(site: Site) -> None:
    own = {"authorization": f"Bearer {site.server.token}"}
    assert site.send("GET", "/nosuch", **own).status_code == 404
    wrong_method = site.send("PATCH", "/checkpoints", **own)
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    options = site.send("OPTIONS", "/checkpoints", **own)
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    head, get = (site.send(method, "/checkpoints", **own) for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (200, b"")
    assert get.json()["total"] > 0


def test_every_answer_keeps_browsers_out_of_it(site: Site) -> None:
    own = {"authorization": f"Bearer {site.server.token}"}
    for path in ("/", "/checkpoints", "/nosuch", "/login", "/healthz"):
        headers = site.send("GET", path, **own).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert not [name for name in headers if name.startswith("access-control-")]


def test_malformed_bodies_are_refused_and_write_nothing(site: Site) -> None:
    before = site.written()
    own = {"authorization": f"Bearer {site.server.token}"}
    paths = [
        (route.method, filled(route))
        for route in ROUTES
        if route.method != "GET" and route.scope is not None
    ]
    wrong = []
    for number, (headers, body) in enumerate(bodies(random.Random(7), 2_000)):
        method, path = paths[number % len(paths)]
        answer = site.client.request(method, path, headers={**own, **headers}, content=body)
        if not 400 <= answer.status_code < 500:
            wrong.append((method, path, headers, answer.status_code, body[:80]))
    assert wrong == []
    assert site.written() == before


@pytest.mark.parametrize("cookie", ["", "x=1", "hardsave=1; hardsave=2", "\xff=;;=", "a" * 5_000])
def test_a_strange_cookie_is_none(site: Site, cookie: str) -> None:
    headers = {b"cookie": cookie.encode("latin-1")}
    assert site.client.get("/", headers=headers).status_code == 401
