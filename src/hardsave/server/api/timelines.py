"""Timelines and their checkpoints: lists, one of them, the graph."""

from datetime import datetime
from functools import partial
from typing import Any

from hardsave.errors import Misuse
from hardsave.server.api import data, refs, shapes
from hardsave.server.api.shapes import FILE_COUNTS, named, or_null, page_of, shape
from hardsave.server.fields import PAGED, Field, choice, flag, mapping, path, text
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.timeline.names import KINDS

_BRIEF = flag(
    "brief",
    "Without metadata; what was said only where no call tells more, and paths where nothing does.",
)
_GRAPH = Field(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": 5_000, "default": 1_000},
    "How many at most.",
    default=1_000,
)
_MOMENT = "a moment, such as 2026-01-31T14:00:00Z"


def list_timelines(call: Call) -> Answer:
    asked = call.asked
    found = call.vault.sessions(
        workspace=asked["workspace"],
        text=asked["text"] or "",
        prefix=asked["prefix"] or "",
        status=asked["status"],
        deleted=asked["deleted"],
        limit=asked["limit"],
        after=asked["cursor"],
    )
    return Answer(body=data.page(found, data.session))


def show_timeline(call: Call) -> Answer:
    one = call.vault.session(call.asked["timeline"])
    summary = call.vault.timeline(one.timeline).summary()
    told = {
        "checkpoints": summary.checkpoints,
        "names": dict(summary.names),
        "kinds": dict(summary.kinds),
        "first": summary.first,
        "last": summary.last,
        "first_at": None if summary.first_at is None else summary.first_at.isoformat(),
        "last_at": None if summary.last_at is None else summary.last_at.isoformat(),
    }
    return Answer(body={**data.session(one), "summary": told})


def count_files(call: Call) -> Answer:
    name = call.vault.session(call.asked["timeline"]).timeline
    found = call.vault.timeline(name).files_changed()
    return Answer(body={"files": None if found is None else found.as_dict()})


def list_checkpoints(call: Call) -> Answer:
    asked = call.asked
    page = {"limit": asked["limit"], "after": asked["cursor"]}
    filters = ("name", "kind", "status", "since", "until")
    if asked["timeline"] is None:
        if asked["labels"] is None or any(asked[each] is not None for each in filters):
            raise Misuse("name a timeline; without one, checkpoints are found by labels alone")
        found = call.vault.checkpoints(labels=asked["labels"], **page)
        return Answer(body=data.page(found, data.checkpoint))
    line = call.vault.timeline(asked["timeline"])
    found = line.checkpoints(
        name=asked["name"],
        kind=asked["kind"],
        status=asked["status"],
        since=_moment(asked["since"]),
        until=_moment(asked["until"]),
        labels=asked["labels"],
        **page,
    )
    return Answer(body=data.page(found, data.checkpoint))


def _moment(given: Any) -> datetime | None:
    try:
        return None if given is None else datetime.fromisoformat(given)
    except ValueError as error:
        raise Misuse(f"{given!r} is not {_MOMENT}") from error


def show_checkpoint(call: Call) -> Answer:
    return Answer(body=data.whole_checkpoint(refs.checkpoint(call)))


def show_graph(call: Call) -> Answer:
    asked = call.asked
    line = call.vault.timeline(asked["timeline"])
    found = line.graph(limit=asked["limit"], after=asked["cursor"])
    node = partial(data.node, is_brief=bool(asked["brief"]))
    return Answer(body=data.page(found, node))


_LISTED = (
    text("text", "A part of a name or a title."),
    text("prefix", "How names begin."),
    text("status", "Of the newest checkpoint."),
    path("workspace", "A directory that the newest files are of."),
    flag("deleted", "Deleted ones, too."),
    *PAGED,
)
_FOUND = (
    refs.TIMELINE,
    text("name", "Only of this name."),
    choice("kind", "Only of this kind.", *KINDS),
    text("status", "Only of this status."),
    text("since", f"Not before {_MOMENT}."),
    text("until", f"Not after {_MOMENT}."),
    mapping("labels", "A JSON object: only with these labels.", of_texts=True),
    *PAGED,
)

ROUTES = (
    Route(
        "GET",
        "/api/v1/timelines",
        list_timelines,
        "read",
        spec=Spec("Timelines, the last updated first", page_of(named("Session")), _LISTED),
    ),
    Route(
        "GET",
        "/api/v1/timeline",
        show_timeline,
        "read",
        spec=Spec("One timeline", named("Timeline"), (refs.NEEDED_TIMELINE,)),
    ),
    Route(
        "GET",
        "/api/v1/timeline/files",
        count_files,
        "read",
        lane="slow",
        spec=Spec(
            "How many files a timeline has changed since it began",
            shape(files=or_null(FILE_COUNTS)),
            (refs.NEEDED_TIMELINE,),
        ),
    ),
    Route(
        "GET",
        "/api/v1/checkpoints",
        list_checkpoints,
        "read",
        spec=Spec("Checkpoints, newest first", page_of(named("Checkpoint")), _FOUND),
    ),
    Route(
        "GET",
        "/api/v1/checkpoint",
        show_checkpoint,
        "read",
        spec=Spec("One checkpoint", named("WholeCheckpoint"), refs.AT),
    ),
    Route(
        "GET",
        "/api/v1/graph",
        show_graph,
        "read",
        spec=Spec(
            "Checkpoints with their branches, newest first",
            page_of(shapes.named("GraphNode")),
            (refs.NEEDED_TIMELINE, _GRAPH, PAGED[1], _BRIEF),
        ),
    ),
)
