"""What happens: as a stream, and page by page for a client that asks again and again."""

from hardsave.server.api import data, refs
from hardsave.server.api.shapes import TEXT, listed, named, shape
from hardsave.server.fields import LIMIT, Field, text
from hardsave.server.live import happened, sse
from hardsave.server.live.asked import Asked
from hardsave.server.live.backlog import Wanted
from hardsave.server.projects import Project, chosen
from hardsave.server.route import Answer, Call, Route, Spec


def stream(call: Call) -> Answer:
    project, asked = _project(call), call.asked
    seen = call.headers.get("last-event-id") or asked["cursor"] or ""
    kinds = frozenset(filter(None, (asked["kinds"] or "").split(",")))
    live = Asked(
        None if project is None else project.id,
        call.caller.user,
        call.caller.name,
        seen,
        Wanted(asked["timeline"], kinds),
    )
    return Answer(media_type=sse.MEDIA_TYPE, headers=sse.HEADERS, live=live)


def _project(call: Call) -> Project | None:
    """None: which projects change. A caller that sees some of them is told of its own alone."""
    if call.project is None and call.caller.projects is not None:
        return chosen(call.catalogue, call.caller, {})
    return call.project


def page(call: Call) -> Answer:
    assert call.project is not None
    found, following = happened.page(
        call.vault,
        call.project.id,
        call.caller.user,
        call.asked["cursor"] or "",
        call.asked["limit"],
    )
    return Answer(body={"items": [data.event(each) for each in found], "next": following})


_CURSOR = Field(
    "cursor",
    {"type": "string", "maxLength": 4_096},
    "The id of the last message, or `next`; empty, or without it: from now on.",
)
_KINDS = text("kinds", "Only events of these kinds, separated by commas.")

ROUTES = (
    Route(
        "GET",
        "/api/v1/events",
        stream,
        "read",
        lane="live",
        spec=Spec(
            "What happens, as it happens: server-sent events, with ids to go on from",
            TEXT,
            (refs.TIMELINE, _KINDS, _CURSOR),
            media_type=sse.MEDIA_TYPE,
            headers=("Last-Event-ID",),
        ),
        needs_project=False,
    ),
    Route(
        "GET",
        "/api/v1/happened",
        page,
        "read",
        spec=Spec(
            "What happened since an id of an event",
            shape(items=listed(named("Event")), next=TEXT),
            (_CURSOR, LIMIT),
        ),
    ),
)
