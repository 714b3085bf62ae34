"""The OpenAPI 3.1 document, made of the table of routes. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from hardsave.server.api.shapes import NAMED, named
from hardsave.server.fields import Field
from hardsave.server.route import Route, Spec

_PROBLEM = "application/problem+json"
_REFUSALS = {
    "400": "What was sent cannot be meant",
    "401": "No token, or a wrong one",
    "403": "The token does not allow this, or it may not be asked of this server",
    "404": "What was named is not there",
    "409": "It is not as the request needs it",
    "429": "Too many wrong tokens",
    "500": "The store is damaged, or a fault",
    "503": "Busy, stopping, or too long a call: repeat it after Retry-After",
}
_OF_BODIES = {
    "408": "The body took too long to arrive",
    "413": "Too large",
    "415": "Not application/json",
}
_HEADERS: Mapping[str, Mapping[str, Any]] = {
    "Idempotency-Key": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
        "description": "Names this request: repeated with the same key, it is not done again.",
    },
    "If-Match": {
        "schema": {"type": "string", "pattern": '^(\\*|"[!#-~]+")$'},
        "description": 'What it builds on: a head, "chk_…", the plan of a preview, or *.',
    },
    "If-None-Match": {
        "schema": {"type": "string"},
        "description": "An ETag, or several: 304 if one of them still holds.",
    },
    "Range": {
        "schema": {"type": "string", "pattern": "^bytes=[0-9]{1,9}-[0-9]{0,9}$"},
        "description": "A part of the file.",
    },
    "Last-Event-ID": {
        "schema": {"type": "string", "maxLength": 200, "pattern": "^[!-~]*$"},
        "description": "The id of the last message that was received.",
    },
}
_PROJECT = {
    "name": "project",
    "in": "query",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 300},
    "description": "Which project it is about, where the server has several.",
}


def document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.spec is not None:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, route.spec)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hardsave", "version": version},
        "paths": paths,
        "security": [{"bearer": []}],
        "components": {
            "schemas": dict(NAMED),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, spec: Spec) -> dict[str, Any]:
    told = {
        "summary": spec.summary,
        "description": f"Needs a token of scope {route.scope}.",
        "operationId": f"{route.method.lower()}{_camel(route.path)}",
        "parameters": [_PROJECT, *map(_parameter, spec.query), *map(_header, spec.headers)],
        "responses": _responses(spec),
    }
    return told if spec.body is None else {**told, "requestBody": _body(spec.body)}


def _camel(path: str) -> str:
    parts = path.removeprefix("/api/v1").replace(".", "/").split("/")
    return "".join(part.capitalize() for part in parts) or "About"


def _parameter(field: Field) -> dict[str, Any]:
    told = {"name": field.name, "in": "query", "required": field.needed, "description": field.about}
    if field.schema.get("type") in ("array", "object"):  # one JSON text, not one for each item
        return {**told, "content": {"application/json": {"schema": field.schema}}}
    return {**told, "schema": field.schema}


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, **_HEADERS[name]}


def _body(fields: tuple[Field, ...]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {each.name: {**each.schema, "description": each.about} for each in fields},
        "required": [each.name for each in fields if each.needed],
        "additionalProperties": False,
    }
    is_needed = any(each.needed for each in fields)
    return {"required": is_needed, "content": {"application/json": {"schema": schema}}}


def _responses(spec: Spec) -> dict[str, Any]:
    content = {spec.media_type: {"schema": spec.answer}}
    found: dict[str, Any] = {str(spec.status): {"description": "Done", "content": content}}
    if "If-None-Match" in spec.headers:
        found["304"] = {"description": "It is as the caller has it"}
    refusals = dict(_REFUSALS)
    if "Range" in spec.headers:
        found["206"] = {"description": "A part of it", "content": content}
        refusals |= {"413": "Too large for one answer", "416": "Not a part of the file"}
    if "If-Match" in spec.headers:
        refusals |= {"412": "It is not as If-Match says", "428": "It needs If-Match"}
    if spec.body is not None:
        refusals |= _OF_BODIES
    problem = {"content": {_PROBLEM: {"schema": named("Problem")}}}
    return {**found, **{code: {"description": why, **problem} for code, why in refusals.items()}}
