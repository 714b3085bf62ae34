"""A job that was purged: what it was asked, was allowed to do and has answered is told nowhere."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser

from hardsave.server.api.table import ROUTES
from hardsave.vault.jobs.spec import OnSuccess
from tests.integration.server.browser import NEEDS_CHROMIUM, visiting
from tests.integration.server.conftest import HARDSAVE, Server, Start, environment
from tests.integration.server.work_story import work

MARK = "sesame"
ASKED = {
    "id": "pay",
    "ref": "@",
    "timeline": "pay",
    "text": MARK,
    "path": "paid",
    "from": ":1",
    "to": ":2",
}
SCREENS: tuple[tuple[str, dict[str, str]], ...] = (
    ("home", {}),
    ("work", {}),
    ("work", {"what": "tasks"}),
    ("job", {"id": "pay"}),
    ("job", {"id": "pay", "task": "1"}),
    ("inbox", {}),
    ("session", {"timeline": "pay"}),
)
COMMANDS = (
    ["log"],
    ["log", "--timeline", "pay"],
    ["timelines", "list"],
    ["search", MARK],
    ["undo", "--list"],
    ["jobs", "list", "--all"],
    ["jobs", "show", "pay"],
    ["tasks", "list"],
    ["tasks", "show", "pay"],
    ["show", "@", "--timeline", "pay", "--full"],
)


def paid(server: Server, on_success: OnSuccess) -> None:
    """A job that has asked whether it may make a call, whose arguments a person has edited."""
    with server.vault() as vault:
        vault.jobs.add(
            "pay",
            f"Pay what {MARK}-prompt says",
            agent="asks",
            max_turns=10,
            workspace=server.folder,
            on_success=on_success,
        )
        work(vault)
    approved = server.call(
        "POST", "/api/v1/jobs/approve", json={"id": "pay", "arguments": {"text": f"{MARK}-edited"}}
    )
    assert approved.status_code == 200
    with server.vault() as vault:
        work(vault)
        assert vault.jobs.get("pay").state == "succeeded"


def answers(server: Server) -> Iterator[tuple[str, str]]:
    """What every route answers that reads."""
    for route in ROUTES:
        if route.method != "GET" or route.path == "/api/v1/events":
            continue
        known = [] if route.spec is None else [each.name for each in route.spec.query]
        query = {name: ASKED[name] for name in known if name in ASKED}
        for given in (query, {}):
            answer = server.call("GET", route.path, params=given)
            yield f"{route.path}?{urlencode(given)}", answer.text
    yield "/metrics", server.call("GET", "/metrics").text


def said(server: Server, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """What every command says that looks at work."""
    for command in COMMANDS:
        done = subprocess.run(
            [*HARDSAVE, *command, "--store", server.store],
            cwd=server.folder,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        yield " ".join(command), done.stdout + done.stderr


def seen(server: Server, chromium: Browser) -> Iterator[tuple[str, str]]:
    """What every screen shows that looks at work."""
    with visiting(chromium, server) as visitor:
        for name, params in SCREENS:
            visitor.go(name, **params)
            visitor.see("#main *:not(.loading)")
            visitor.page.wait_for_load_state("networkidle")
            yield f"{name} {params}", visitor.page.content()
        visitor.complaints.clear()  # what is gone is answered with 404


@NEEDS_CHROMIUM
@pytest.mark.parametrize(
    "way",
    [
        "on success",
        pytest.param("by hand", marks=pytest.mark.torture),
        pytest.param("not at all", marks=pytest.mark.torture),  # then it is told everywhere
    ],
)
def test_nothing_of_a_purged_job_is_told_by_the_api_the_page_or_a_command(
    chromium: Browser, start: Start, tmp_path: Path, way: str
) -> None:
    server = start()
    paid(server, "purge" if way == "on success" else "archive")
    told: dict[str, Any] = {}
    if way == "by hand":
        done = server.call("POST", "/api/v1/purge", json={"timeline": "pay"})
        assert done.json()["tasks"] == 1
    for where in (answers(server), said(server, tmp_path), seen(server, chromium)):
        told.update(where)
    # The command tells what was searched for.
    naming = {where for where, text in told.items() if MARK in text and where != f"search {MARK}"}
    if way == "not at all":
        assert naming >= {"/api/v1/job?id=pay", "/api/v1/task?id=pay", "/api/v1/jobs?"}
        assert naming >= {"jobs show pay", "tasks show pay", "work {}", "job {'id': 'pay'}"}
    else:
        assert naming == set()
