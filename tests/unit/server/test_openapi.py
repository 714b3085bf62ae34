"""The document that describes `/api/v1`."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from hardsave.server.api.openapi import document
from hardsave.server.api.table import ROUTES
from hardsave.server.door import _ONCE as ONCE

DOCUMENT = document(ROUTES, "1.2.3")
OPERATIONS = {
    (method.upper(), path): each
    for path, methods in DOCUMENT["paths"].items()
    for method, each in methods.items()
}


def test_the_document_is_one_of_openapi() -> None:
    assert (DOCUMENT["openapi"], DOCUMENT["info"]["version"]) == ("3.1.0", "1.2.3")
    assert set(OPERATIONS) == {(route.method, route.path) for route in ROUTES}


def test_every_route_of_the_api_describes_itself() -> None:
    for route in ROUTES:
        assert route.spec is not None, route
        assert route.path.startswith("/api/v1")
        assert route.scope is not None
        assert not route.page
        assert not route.documented
        assert "{" not in route.path  # proxies rewrite `%2F` and `..` of a path


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [each["operationId"] for each in OPERATIONS.values()]
    assert len(set(names)) == len(names)


def test_every_operation_says_which_scope_it_needs() -> None:
    for route in ROUTES:
        told = OPERATIONS[route.method, route.path]
        assert f"scope {route.scope}." in told["description"]
    assert {route.path for route in ROUTES if route.scope == "admin"} == {
        "/api/v1/retain",
        "/api/v1/gc",
        "/api/v1/purge",
    }
    reads = {route.path for route in ROUTES if route.scope == "read" and route.method != "GET"}
    assert reads == {"/api/v1/verify"}


def test_a_body_has_no_further_fields_and_a_get_has_none() -> None:
    for (method, path), told in OPERATIONS.items():
        if method in ("GET", "DELETE"):
            assert "requestBody" not in told, path
        else:
            schema = told["requestBody"]["content"]["application/json"]["schema"]
            assert schema["additionalProperties"] is False


def test_every_operation_takes_a_project_and_every_parameter_says_what_it_is() -> None:
    for told in OPERATIONS.values():
        names = [each["name"] for each in told["parameters"]]
        assert "project" in names
        assert len(set(names)) == len(names)
        assert all(each["description"] for each in told["parameters"])


def test_acts_that_may_come_twice_take_a_key_and_those_that_move_a_head_an_expectation() -> None:
    for route in ROUTES:
        assert route.spec is not None
        is_act = route.method != "GET" and route.scope == "act" and "preview" not in route.path
        assert ("Idempotency-Key" in route.spec.headers) is is_act, route
    expecting = {route.path for route in ROUTES if route.spec and "If-Match" in route.spec.headers}
    assert expecting == {"/api/v1/checkpoints", "/api/v1/rewind", "/api/v1/retain"}


def test_headers_that_mean_something_to_an_act_come_once() -> None:
    taken = {name.lower() for route in ROUTES if route.spec for name in route.spec.headers}
    assert {name for name in taken if name in ("idempotency-key", "if-match")} <= set(ONCE)


def test_refusals_are_problems() -> None:
    for told in OPERATIONS.values():
        for status, each in told["responses"].items():
            if int(status) >= 400:
                assert list(each["content"]) == ["application/problem+json"]
        assert {"400", "401", "403", "404", "409", "503"} <= told["responses"].keys()


def every_schema(found: Any) -> Iterator[Any]:
    if isinstance(found, dict):
        if "schema" in found:
            yield found["schema"]
        for each in found.values():
            yield from every_schema(each)
    elif isinstance(found, list):
        for each in found:
            yield from every_schema(each)


def test_every_schema_is_one_and_every_name_leads_somewhere() -> None:
    found = [*every_schema(DOCUMENT["paths"]), *DOCUMENT["components"]["schemas"].values()]
    assert len(found) > 100
    for each in found:
        jsonschema_rs.meta.validate(each)
        schema = {**each, "components": DOCUMENT["components"]}
        jsonschema_rs.Draft202012Validator(schema)  # finds what each name leads to


def test_a_name_that_leads_nowhere_would_be_noticed() -> None:
    with pytest.raises(ValueError, match="nosuch"):
        jsonschema_rs.Draft202012Validator({"$ref": "#/components/schemas/nosuch"})
