"""What no program should send is refused by every route: never a fault, and nothing is written."""

import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from hardsave.server.api.table import ROUTES as API
from hardsave.server.fields import Field, objection
from hardsave.server.table import ROUTES
from tests.integration.server.malformed import WRONG, bodies
from tests.integration.server.site import Site
from tests.integration.server.test_every_route import filled
from tests.unit.server.api_client import ApiClient
from tests.unit.server.api_samples import Sample, samples

# Texts that may be names, and are not.
STRANGE = (
    "a\0b",
    "\n\x1b[31m",
    " ",
    "../../etc/passwd",
    "/",
    "@~99999999999999999999",
    "@~-1",
    "@",
    ":0",
    ":99999999999999999999999",
    "chk_zz",
    "chk_" + "0" * 24,
    "%00",
    "'; DROP TABLE checkpoints; --",
    "\ufeff\U0010ffff",
    "x" * 4_096,
    "9999-12-31T23:59:59.999999-23:59",
    "0001-01-01T00:00:00+23:59",
    "2026-01-01T00:00:00+99:99",
    "[" * 500,
    '[{"a": 1}]',
    '[{"$tuple": [[]]}]',
    '[null, true, 1.5, -1, 99999999999, "messages", 99999999999999999999]',
    "{}",
)
QUERIES = (
    "nosuch=1",
    "timeline=a&timeline=b",
    "%zz=1",
    "timeline=%ff%fe",
    "timeline=%ed%a0%80",  # half of a character
    "=",
    "limit",
    "&" * 200,
    "&".join(f"x{number}=1" for number in range(101)),
    "limit=0",
    "limit=%D9%A3",
    "limit=1&limit=1",
)


@pytest.fixture(scope="module")
def program(site: Site) -> Iterator[ApiClient]:
    with site.api() as client:
        yield client


def test_malformed_bodies_are_refused_and_write_nothing(site: Site, program: ApiClient) -> None:
    before = site.written()
    paths = [
        (route.method, filled(route))
        for route in ROUTES
        if route.method != "GET" and route.scope is not None
    ]
    wrong = []
    for number, (headers, body) in enumerate(bodies(random.Random(7), 2_000)):
        method, path = paths[number % len(paths)]
        answer = program.send(method, path, body, headers)
        if not 400 <= answer.status < 500:
            wrong.append((method, path, headers, answer.status, body[:80]))
    assert wrong == []
    assert site.written() == before


def first_samples(site: Site) -> dict[tuple[str, str], Sample]:
    """One for each route."""
    found = {(each.route.method, each.route.path): each for each in reversed(samples(site.things))}
    assert len(found) == len(API)
    return found


def misfitting(field: Field) -> Iterator[Any]:
    for value in (*WRONG, -1, 1 << 62, -(1 << 62), "x" * 600_000):
        if objection(field.schema, value):
            yield value


def test_a_field_of_another_kind_is_refused_by_every_act(site: Site, program: ApiClient) -> None:
    before = site.written()
    wrong, tried = [], 0
    for (method, path), sample in first_samples(site).items():
        assert sample.route.spec is not None
        for field in sample.route.spec.body or ():
            for value in misfitting(field):
                body = {**(sample.body or {}), field.name: value}
                got = program.send(method, path, body, sample.headers)
                tried += 1
                if got.status not in (400, 413) or got.data["code"] not in ("misuse", "too_large"):
                    wrong.append((method, path, field.name, value, got))
    assert wrong == []
    assert tried > 500
    assert site.written() == before


def test_what_is_needed_and_is_missing_is_named_by_every_route(
    site: Site, program: ApiClient
) -> None:
    before = site.written()
    for sample in first_samples(site).values():
        assert sample.route.spec is not None
        for field in (*sample.route.spec.query, *(sample.route.spec.body or ())):
            if field.needed:
                query = {k: v for k, v in sample.query.items() if k != field.name}
                body = sample.body and {k: v for k, v in sample.body.items() if k != field.name}
                got = program.try_sample(sample._replace(query=query, body=body))
                assert got.status == 400, sample
                assert got.data["detail"].startswith(f"{field.name} is missing: "), got
    assert site.written() == before


def test_a_query_of_any_wrong_kind_is_refused_by_every_route(
    site: Site, program: ApiClient
) -> None:
    before = site.written()
    wrong = []
    for (method, path), sample in first_samples(site).items():
        own = sample.path.partition("?")[2]
        for query in QUERIES:
            body = sample.body
            got = program.send(method, f"{path}?{own}&{query}", body, sample.headers)
            if got.status != 400:
                wrong.append((method, path, query, got.status))
    assert wrong == []
    assert site.written() == before


def test_no_text_of_a_query_is_a_fault(site: Site, program: ApiClient) -> None:
    before = site.written()
    wrong = []
    for sample in first_samples(site).values():
        assert sample.route.spec is not None
        if sample.route.method != "GET":
            continue
        for name in ("project", *(field.name for field in sample.route.spec.query)):
            for value in STRANGE:
                got = program.try_sample(sample._replace(query={**sample.query, name: value}))
                if got.status not in (200, 206, 400, 404):
                    wrong.append((sample.route.path, name, value[:40], got))
    assert wrong == []
    assert site.written() == before


def test_no_text_of_an_act_is_a_fault(site: Site, program: ApiClient) -> None:
    """What is done by these, if anything is, is done to things of no other test."""
    wrong = []
    for sample in first_samples(site).values():
        spec = sample.route.spec
        assert spec is not None
        if sample.route.method == "GET" or sample.route.scope == "admin":
            continue
        for field in (*spec.query, *(spec.body or ())):
            for value in STRANGE:
                body = sample.body and {**sample.body, field.name: value}
                query = sample.query and {**sample.query, field.name: value}
                got = program.try_sample(sample._replace(query=query, body=body))
                if got.status >= 500 or got.status in (401, 405):
                    wrong.append((sample.route.path, field.name, value[:40], got))
    assert wrong == []


@pytest.mark.parametrize("header", ["If-Match", "Idempotency-Key", "Range", "If-None-Match"])
def test_no_header_is_a_fault(site: Site, program: ApiClient, header: str) -> None:
    values = ["", " ", '"', '""', "*", "**", "x" * 5_000, '"x"', 'W/"x"', "bytes=0-0", "\xff", "é"]
    tried = 0
    for sample in first_samples(site).values():
        if sample.route.spec is not None and header in sample.route.spec.headers:
            for value in values:
                got = program.try_sample(sample, {header: value})
                assert got.status < 500, (sample.route.path, value, got)
                tried += 1
    assert tried >= len(values)


def test_a_path_that_is_almost_one_of_the_api_is_none(site: Site, program: ApiClient) -> None:
    for path in ("/api/v1/", "/api/v1//timelines", "/api/v1/Timelines", "/api/v2", "/api", "/api/"):
        assert program.send("GET", path).status == 404
    for path in ("/api/v1/timelines/", "/api/v1/timelines%2f", "/api/v1/./timelines"):
        assert program.send("GET", path).status == 404
    assert program.send("GET", f"/api/v1?{quote('é')}=1").status == 400


def test_answers_to_malformed_requests_are_problems(program: ApiClient) -> None:
    got = program.send("POST", "/api/v1/undo", b"{", {"Content-Type": "application/json"})
    assert got.headers["content-type"] == "application/problem+json"
    told = json.loads(got.content)
    assert set(told) == {"type", "title", "status", "detail", "code", "request_id"}
    assert (told["status"], told["code"]) == (400, "malformed")
    assert told["request_id"] == got.headers["x-request-id"]


def test_a_directory_that_no_file_can_have_is_refused(program: ApiClient) -> None:
    body = {"prompt": "x", "agent": "default", "workspace": "/a\0b"}
    refused = program.send("POST", "/api/v1/jobs", body)
    assert (refused.status, refused.data["code"]) == (403, "not_allowed"), refused
