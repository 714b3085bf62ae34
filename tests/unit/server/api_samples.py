"""Well-formed requests for every route of `/api/v1`, about what `api_store` puts into a store.

Each is answered with the status that its route declares, the first time it is sent.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from hardsave.server.api.table import ROUTES
from hardsave.server.route import Route
from tests.unit.server.api_store import BYTES_NAME, Things


class Sample(NamedTuple):
    """A request: its route, its query, its body, and headers that it needs."""

    route: Route
    query: dict[str, str]
    body: dict[str, Any] | None
    headers: dict[str, str]

    @property
    def path(self) -> str:
        # A name that is no UTF-8 is sent as its bytes, as curl and browsers do.
        pairs = (f"{name}={_quoted(value)}" for name, value in self.query.items())
        return f"{self.route.path}?{'&'.join(pairs)}" if self.query else self.route.path


def _quoted(value: str) -> str:
    return quote(value.encode("utf-8", "surrogateescape"), safe="")


STREAM = "/api/v1/events"  # never ends by itself

ROUTE = {(route.method, route.path.removeprefix("/api/v1")): route for route in ROUTES}


def samples(things: Things) -> list[Sample]:
    """For each route one or more, in an order in which all of them can be sent."""
    return [*_reads(things), *_acts(things), *_traces(things), *_upkeep(things)]


def _get(path: str, /, **query: str) -> Sample:
    return Sample(ROUTE["GET", path], {name.rstrip("_"): v for name, v in query.items()}, None, {})


def _post(path: str, headers: dict[str, str] | None = None, /, **body: Any) -> Sample:
    return Sample(ROUTE["POST", path], {}, body, headers or {})


def _reads(things: Things) -> Iterator[Sample]:
    main, ids = things("main"), things.ids
    two = {"from_": ids["first"], "to": ids["second"]}
    yield _get("")
    yield _get("/openapi.json")
    yield _get("/projects")
    yield _get("/timelines", prefix=things.word, deleted="true", limit="1000")
    yield _get("/timelines", limit="1")
    yield _get("/timelines", text=main, status="waiting", workspace=things.folder)
    yield _get("/timeline", timeline=main)
    yield _get("/checkpoints", timeline=main, limit="1")
    yield _get("/checkpoints", labels=json.dumps({"issue": things("7")}))
    yield _get(
        "/checkpoints", timeline=main, name=things("first"), kind="manual", since="2026-01-01"
    )
    yield _get("/checkpoint", ref=ids["first"])
    yield _get("/checkpoint", ref="@", timeline=main)
    yield _get("/checkpoint", ref=ids["rewind"])
    yield _get("/timeline", timeline=things("forked"))
    yield _get("/timeline/files", timeline=main)
    yield _get("/graph", timeline=main)
    yield _get("/graph", timeline=things("undo"), limit="2", brief="true")
    yield _get("/messages", ref=ids["second"], start="-2", limit="1")
    yield _get("/messages", ref="@", timeline=main, full="true")
    yield _get("/state", ref=ids["first"], path='["messages", -1, "content"]')
    yield _get("/state", ref="@", timeline=main, path='["messages"]', limit="1")
    yield _get("/files", ref=ids["second"], path="src")
    yield _get("/files", ref="@", timeline=main, limit="2")
    yield _get("/file", ref=ids["second"], path="src/app.py")
    yield _get("/file", ref=ids["second"], path="more/b.txt")._replace(
        headers={"range": "bytes=3-9"}
    )
    yield _get("/diff", **two)
    yield _get("/diff", from_=ids["first"], to="now")
    yield _get("/diff/state", **two)
    yield _get("/diff/state", from_="@", to=":1", timeline=main, limit="1")
    yield _get("/diff/file", **two, path="src/app.py")
    yield _get("/diff/file", from_="@", timeline=main, to="now", path="new.txt")
    yield _get("/file/history", ref=ids["second"], path="src/app.py", limit="1")
    yield _get("/file/history", ref="@", timeline=main, path="src/app.py")
    yield _get("/operations")
    yield _get("/operations", limit="1")
    yield _get("/operations", timeline=things("undo"))
    yield _get("/search", text=things("result"), wait="true")
    yield _get("/search", text=things.word, limit="1")
    yield _get("/search", text="app", timeline=main, wait="true")
    yield _get("/tasks", limit="1000")
    yield _get("/tasks", state="failed", limit="1")
    yield _get("/task", id=things("done"))
    yield _get("/task", id=things("failed"))
    yield _get("/task", id=things("asks"))
    yield _get("/task", id=things("waits"))
    yield _get("/task", id=things("later"))
    yield _get("/jobs", limit="1000")
    yield _get("/jobs", state="waiting", limit="1")
    yield _get("/job", id=things("fix"))
    yield _get("/approvals")
    yield _get("/health")
    yield _get("/happened", limit="1")
    yield _get("/events", timeline=main, kinds="checkpoint_saved,rewind")
    yield _get("/retention", max_per_timeline="1")
    for git in (False, True):
        yield _post("/rewind/preview", timeline=main, ref=ids["first"], git=git)
    yield _post("/verify")
    yield _post("/verify", ref="@", timeline=main)


def _acts(things: Things) -> Iterator[Sample]:
    ids = things.ids
    yield _post(
        "/checkpoints",
        {"if-match": f'"{ids["save"]}"'},
        timeline=things("save"),
        state={"messages": [things("saved")], "raw": {"$bytes": "AP8="}},
        name=things("name"),
        kind="manual",
        status="completed",
        description=things("description"),
        title=things("title"),
        metadata={"x": {"$int": "1180591620717411303424"}},
        labels={"a": "b"},
        notes={"n": {"$tuple": [1]}},
        workspace=things.folder,
    )
    yield _post("/fork", ref="@", timeline=things("fork"), name=things("fork-2"))
    yield _post("/fork", ref=ids["second"], name=things("fork-3"), directory=things("fork-3"))
    for name in ("rewind", "rewind-files"):
        what = "files" if name == "rewind-files" else "all"
        asked: dict[str, Any] = {"timeline": things(name), "ref": ids[f"{name}-first"]}
        yield _post("/rewind/preview", **asked, what=what, tasks=True, git=False)
        yield _post("/rewind", {"if-match": f'"{ids[name]}"'}, **asked, what=what, tasks=True)
    yield _post("/undo", timeline=things("undo"))
    yield _post("/redo", timeline=things("redo"))
    yield Sample(
        ROUTE["DELETE", "/checkpoint"], {"ref": ":2", "timeline": things("delete-one")}, None, {}
    )
    yield Sample(ROUTE["DELETE", "/checkpoint"], {"ref": ids["delete-one"]}, None, {})
    yield Sample(ROUTE["DELETE", "/timeline"], {"timeline": things("delete")}, None, {})
    yield _post("/timeline/clear", timeline=things("clear"))
    yield _post("/tasks/cancel", id=things("cancel"))
    yield _post("/tasks/retry", id=things("retry"), unknown="skip")
    yield _post(
        "/tasks/answer",
        id=things("answer"),
        answer={"$tuple": [1]},
        question=things.questions["answer"],
    )
    yield _post(
        "/jobs",
        id=things("job"),
        prompt=things("prompt"),
        agent="default",
        workspace=things.folder,
        max_turns=7,
        retries=1,
        callback="https://receiver.example/done",
    )
    yield _post("/jobs/resume", id=things("resume"), max_turns=20, keep_files=False)
    yield _post("/jobs/approve", id=things("approve"), question=things.questions["approve"])
    yield _post("/jobs/deny", id=things("deny"), reason=things("reason"))
    yield Sample(ROUTE["DELETE", "/job"], {"id": things("delete-job")}, None, {})


def _traces(things: Things) -> Iterator[Sample]:
    """What acts have left behind."""
    yield _get("/operations", limit="5")
    yield _get("/task", id=things("cancel"))
    yield _get("/checkpoint", ref="@", timeline=things("save"))


def _upkeep(things: Things) -> Iterator[Sample]:
    yield _post("/retain", {"if-match": "*"}, max_per_timeline=1)
    yield _post("/gc")
    yield _post("/purge", ref=things.ids["old"])
    yield _post("/purge", timeline=things("purge"))
    yield _post("/purge", text=things("b"))


def name_of_bytes(things: Things) -> Sample:
    """A file whose name is no UTF-8."""
    return _get("/file", ref=things.ids["second"], path=f"src/{BYTES_NAME}")
