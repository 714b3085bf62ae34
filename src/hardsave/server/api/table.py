"""All routes of `/api/v1`, and the one that describes them."""

from functools import cache

import hardsave
from hardsave.server.api import (
    about,
    contents,
    differences,
    events,
    health,
    history,
    openapi,
    saves,
    timelines,
    upkeep,
    work,
)
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.values.text import dumps


def describe(call: Call) -> Answer:
    return Answer(body=_document())


@cache
def _document() -> bytes:
    return dumps(openapi.document(ROUTES, hardsave.__version__)).encode()


ROUTES: tuple[Route, ...] = (
    *about.ROUTES,
    *timelines.ROUTES,
    *contents.ROUTES,
    *differences.ROUTES,
    *history.ROUTES,
    *saves.ROUTES,
    *work.ROUTES,
    *events.ROUTES,
    *health.ROUTES,
    *upkeep.ROUTES,
    Route(
        "GET",
        "/api/v1/openapi.json",
        describe,
        "read",
        spec=Spec("This document", {"type": "object"}),
        needs_project=False,
    ),
)
