"""What a token may do, and what a browser needs beside its cookie, for every route of the API."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hardsave.server.caller import SCOPES
from tests.integration.server.site import Site
from tests.unit.server.api_client import ApiClient
from tests.unit.server.api_samples import Sample, samples


@pytest.fixture(scope="module")
def programs(site: Site) -> Iterator[dict[str, ApiClient]]:
    """One with a token of each scope."""
    with ExitStack() as stack:
        yield {
            scope: stack.enter_context(site.api(site.token(f"of-{scope}", scope)))
            for scope in SCOPES
        }


def is_act(sample: Sample) -> bool:
    return sample.route.method != "GET"


def test_no_route_lets_a_token_in_whose_scope_is_too_small(
    site: Site, programs: dict[str, ApiClient]
) -> None:
    before = site.written()
    wrong = []
    for sample in samples(site.things):
        assert sample.route.scope is not None
        for scope in SCOPES[: SCOPES.index(sample.route.scope)]:
            got = programs[scope].try_sample(sample)
            if got.status != 403 or got.data["code"] != "scope":
                wrong.append((scope, sample.route.method, sample.path, got.status))
    assert wrong == []
    assert site.written() == before


def test_a_browser_changes_nothing_without_the_form_token_of_its_session(site: Site) -> None:
    before = site.written()
    session, other = site.session(), site.session()
    cookie, own = {"cookie": session["cookie"]}, {"origin": site.server.url}
    right = {"x_hardsave_form": session["form_token"]}
    wrong_ways: dict[str, dict[str, str]] = {
        "no form token": own,
        "an empty one": {**own, "x_hardsave_form": ""},
        "a wrong one": {**own, "x_hardsave_form": "hs_wrong"},
        "that of another session": {**own, "x_hardsave_form": other["form_token"]},
        "no origin": right,
        "another origin": {**right, "origin": "http://evil.example"},
        "another port": {**right, "origin": "http://127.0.0.1:1"},
        "another site": {**right, **own, "sec_fetch_site": "cross-site"},
        "a server of this machine": {**right, "sec_fetch_site": "same-site"},
    }
    wrong = []
    for sample in filter(is_act, samples(site.things)):
        for way, headers in wrong_ways.items():
            answer = site.send_sample(sample, **cookie, **headers)
            if answer.status_code != 403 or answer.json()["code"] not in ("form", "origin"):
                wrong.append((way, sample.route.method, sample.path, answer.status_code))
    assert wrong == []
    assert site.written() == before


def test_a_browser_reads_with_its_cookie_alone(site: Site) -> None:
    cookie = {"cookie": site.session()["cookie"]}
    for sample in samples(site.things):
        if not is_act(sample):
            answer = site.send_sample(sample, **cookie)
            assert answer.status_code in (200, 206), (sample.path, answer.text)


def test_every_route_lets_tokens_of_its_scope_and_above_in_and_browsers(
    site: Site, programs: dict[str, ApiClient]
) -> None:
    session = site.session()
    browser = {
        "cookie": session["cookie"],
        "origin": site.server.url,
        "x_hardsave_form": session["form_token"],
    }
    wrong = []
    for sample in samples(site.things):
        assert sample.route.scope is not None
        assert sample.route.spec is not None
        first, *others = SCOPES[SCOPES.index(sample.route.scope) :]
        seen = [programs[first].try_sample(sample).status]
        seen += [programs[scope].try_sample(sample).status for scope in others]
        seen.append(site.send_sample(sample, **browser).status_code)
        if seen[0] not in (sample.route.spec.status, 206) or not all(map(is_let_in, seen)):
            wrong.append((sample.route.method, sample.path, seen))
    assert wrong == []


def is_let_in(status: int) -> bool:
    """Also if there is nothing to be done a second time."""
    return status not in (401, 403, 429) and status < 500
