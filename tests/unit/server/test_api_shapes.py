"""What `/api/v1` answers is what its document says, field by field."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jsonschema_rs
import pytest

import hardsave
from hardsave.server.api.shapes import NAMED
from hardsave.server.api.table import ROUTES
from hardsave.server.route import JSON, Allowed, Route
from tests.unit.server.api_client import ApiClient, Got
from tests.unit.server.api_samples import ROUTE, Sample, samples
from tests.unit.server.api_store import populate
from tests.unit.server.job_server import OWN_TOKEN, serving

# What these shapes have, and no answer of a sound store with one host to its own token.
NEVER_TOLD = {
    "GET /api/v1 form_token",
    "GET /api/v1 user",
    "GET /api/v1/approvals next",
    "GET /api/v1/checkpoint git in_progress",
    "GET /api/v1/checkpoint host",
    "GET /api/v1/health trouble",
    "GET /api/v1/projects next",
    "GET /api/v1/search reaches",
    "GET /api/v1/timelines items head host",
    "POST /api/v1/fork going_on",  # of an agent CLI: see test_going_on
    "POST /api/v1/fork going_on agent",
    "POST /api/v1/fork going_on command",
    "POST /api/v1/fork going_on directory",
    "POST /api/v1/fork going_on prompt",
    "POST /api/v1/fork going_on why",
    "POST /api/v1/gc left",
    "POST /api/v1/purge left",
    "POST /api/v1/rewind going_on",
    "POST /api/v1/undo going_on",
    "POST /api/v1/verify faults",
}


class Told(NamedTuple):
    sample: Sample
    got: Got


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """One for each sample."""
    folder = tmp_path_factory.mktemp("shapes")
    url = f"sqlite:///{folder / 'store.db'}"
    logging.disable(logging.ERROR)  # jobs of the store have failed, and say so
    with hardsave.open(url) as vault:
        things = populate(vault, folder / "project")
    logging.disable(logging.NOTSET)
    allowed = Allowed(("default",), (folder / "project",))
    with (
        serving(url, folder, allowed=allowed) as server,
        ApiClient(server.port, OWN_TOKEN) as client,
    ):
        since = client.get("/api/v1/happened")["next"]
        told = [Told(each, client.try_sample(each)) for each in samples(things)]
        happened = Sample(ROUTE["GET", "/happened"], {"cursor": since}, None, {})
        return [*told, Told(happened, client.try_sample(happened))]


def test_every_route_has_a_sample_that_is_answered_as_declared(answers: list[Told]) -> None:
    assert {name(each.sample.route) for each in answers} == {name(each) for each in ROUTES}
    wrong = [each for each in answers if each.got.status not in expected(each.sample)]
    assert wrong == []


def expected(sample: Sample) -> tuple[int, ...]:
    spec = sample.route.spec
    assert spec is not None
    return (206,) if "range" in sample.headers else (spec.status,)


def name(route: Route) -> str:
    return f"{route.method} {route.path}"


def test_every_answer_has_the_fields_of_its_shape_and_no_others(answers: list[Told]) -> None:
    wrong = []
    for route, data in in_json(answers):
        assert route.spec is not None
        wrong += [f"{name(route)} {each}" for each in misfits(route.spec.answer, data)]
    assert wrong == []


def test_every_answer_has_values_of_the_kinds_that_its_shape_says(answers: list[Told]) -> None:
    for route, data in in_json(answers):
        assert route.spec is not None
        schema = {**route.spec.answer, "components": {"schemas": NAMED}}
        found = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        assert [str(each) for each in found.iter_errors(data)] == [], name(route)


def test_every_field_of_every_shape_is_told_by_some_answer(answers: list[Told]) -> None:
    """A field that no answer ever fills would not be compared with anything."""
    known: dict[Place, str] = {}
    shown: set[Place] = set()
    for route, data in in_json(answers):
        assert route.spec is not None
        for place, path in fields(route.spec.answer, name(route)):
            known.setdefault(place, path)
        shown.update(filled(route.spec.answer, data))
    assert {path for place, path in known.items() if place not in shown} == NEVER_TOLD


def in_json(answers: list[Told]) -> Iterator[tuple[Route, Any]]:
    for sample, got in answers:
        if sample.route.spec is not None and sample.route.spec.media_type == JSON:
            yield sample.route, got.data


# Walking a shape


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that is named, and one without `or null`."""
    if "$ref" in schema:
        return NAMED[schema["$ref"].rpartition("/")[2]]
    return resolved(schema["anyOf"][0]) if "anyOf" in schema else schema


def misfits(schema: Mapping[str, Any], data: Any, at: str = "") -> Iterator[str]:
    """Fields that one of the two has, and the other has not."""
    if data is None:
        return
    schema = resolved(schema)
    if isinstance(data, list) and "items" in schema:
        for item in data:
            yield from misfits(schema["items"], item, f"{at}[]")
    if isinstance(data, dict) and "properties" in schema:
        own = schema["properties"]
        yield from (f"{at}.{each} is missing" for each in set(schema["required"]) - data.keys())
        yield from (f"{at}.{each} is not known" for each in data.keys() - own.keys())
        for key in own.keys() & data.keys():
            yield from misfits(own[key], data[key], f"{at}.{key}")


Place = tuple[int, str]
"""A field of a shape, by the identity of that: shapes stand in several answers."""


def filled(schema: Mapping[str, Any], data: Any) -> Iterator[Place]:
    """Fields that have something."""
    schema = resolved(schema)
    if isinstance(data, list) and "items" in schema:
        for item in data:
            yield from filled(schema["items"], item)
    if isinstance(data, dict):
        own = schema.get("properties", {})
        for key in own.keys() & data.keys():
            if data[key] not in (None, [], {}):
                yield id(own), key
            yield from filled(own[key], data[key])


def fields(schema: Mapping[str, Any], at: str) -> Iterator[tuple[Place, str]]:
    """All that a shape can have, and how to read of it."""
    schema = resolved(schema)
    if "items" in schema:
        yield from fields(schema["items"], at)
    own = schema.get("properties", {})
    for key, each in own.items():
        yield (id(own), key), f"{at} {key}"
        yield from fields(each, f"{at} {key}")
