"""`GET /api/v1`: which server this is, as whom it sees the caller, and which projects it has."""

from typing import Any

import hardsave
from hardsave.errors import Misuse
from hardsave.page import cursor_of, place_of
from hardsave.server.api.shapes import FLAG, TEXT, WHOLE, named, or_null, page_of, shape
from hardsave.server.fields import PAGED
from hardsave.server.projects import Project, stamp, unnamed, updated_at
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.stores.host.identity import host_id


def show(call: Call) -> Answer:
    caller, default = call.caller, unnamed(call.catalogue, call.caller)
    return Answer(
        body={
            "version": hardsave.__version__,
            "api": 1,
            "host": host_id(),
            "user": caller.user,
            "caller": caller.name,
            "scope": caller.scope,
            "form_token": caller.form_token or None,
            "project": None if default is None else default.id,
            "all_projects": call.catalogue.is_all,
        }
    )


def list_projects(call: Call) -> Answer:
    """Those that the caller sees, the last written first."""
    seen = [each for each in call.catalogue.projects() if call.caller.sees(each.id)]
    order = sorted(((_written(each), each.id, each) for each in seen), reverse=True)
    place = _place(call.asked["cursor"])
    rest = order if place is None else [each for each in order if each[:2] < place]
    page = rest[: call.asked["limit"]]
    more = cursor_of(_LISTING, f"{page[-1][0]} {page[-1][1]}") if len(rest) > len(page) else None
    return Answer(body={"items": [_project(each) for _, _, each in page], "next": more})


_LISTING = "projects"


def _written(project: Project) -> int:
    found = stamp(project)
    return 0 if found is None else found.written_at


def _place(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    written, _, id = (place_of(_LISTING, cursor) or "").partition(" ")
    if not written.isdecimal():
        raise Misuse("cursor is the `next` of the page before")
    return int(written), id


def _project(one: Project) -> dict[str, Any]:
    written = updated_at(one)
    return {
        "id": one.id,
        "name": one.name,
        "directory": one.directory,
        "is_here": one.is_here,
        "updated_at": None if written is None else written.isoformat(),
    }


_ABOUT = shape(
    version=TEXT,
    api=WHOLE,
    host=TEXT,
    user=or_null(TEXT),
    caller=TEXT,
    scope=TEXT,
    form_token=or_null(TEXT),
    project=or_null(TEXT),
    all_projects=FLAG,
)

ROUTES = (
    Route(
        "GET",
        "/api/v1",
        show,
        "read",
        spec=Spec("This server, and who the caller is", _ABOUT),
        needs_project=False,
    ),
    Route(
        "GET",
        "/api/v1/projects",
        list_projects,
        "read",
        spec=Spec(
            "The projects of this server, the last written first", page_of(named("Project")), PAGED
        ),
        needs_project=False,
    ),
)
