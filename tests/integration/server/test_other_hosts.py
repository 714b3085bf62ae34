"""Files of a workspace that another machine has: they are shown, and what would touch them is
refused with the machine's name and what to type there."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.stores.registry import open_store
from tests.integration.server.site import Site
from tests.unit.server.api_client import ApiClient

HOST = "build-7"
LINE = "elsewhere"


@pytest.fixture(scope="module")
def ids(site: Site) -> list[str]:
    """Checkpoints with files that were saved on another machine, which has rewound once."""
    store = open_store(site.server.store)
    place = site.server.folder / "there"
    place.mkdir()
    with hardsave.Vault(store, host=lambda: HOST) as vault:
        line, saved = vault.timeline(LINE), []
        for number in range(3):
            (place / "a.txt").write_text(f"{number}")
            saved.append(line.save({"messages": [number]}, workspace=place).id)
        line.rewind(":2")
        line.rewind(":3")
    return saved


@pytest.fixture(scope="module")
def program(site: Site) -> Iterator[ApiClient]:
    with site.api() as client:
        yield client


def test_what_was_saved_elsewhere_is_shown_with_its_host(
    site: Site, program: ApiClient, ids: list[str]
) -> None:
    one = program.get(f"/api/v1/checkpoint?ref={ids[0]}")
    assert (one["host"], one["workspace"]) == (HOST, str(site.server.folder / "there"))
    assert [each["path"] for each in program.get(f"/api/v1/files?ref={ids[0]}")["items"]] == [
        "a.txt"
    ]
    assert program.send("GET", f"/api/v1/file?ref={ids[0]}&path=a.txt").content == b"0"
    diff = program.get(f"/api/v1/diff?from={ids[0]}&to={ids[1]}")
    assert diff["files"]["changed"] == ["a.txt"]


REFUSED: dict[str, tuple[str, str, Any, list[str]]] = {
    "diff": ("GET", "diff?from={0}&to=now", None, ["diff", "{0}", "now"]),
    "diff of a file": (
        *("GET", "diff/file?from={0}&to=now&path=a.txt", None),
        ["diff", "{0}", "now"],
    ),
    "preview": (
        *("POST", "rewind/preview", {"timeline": LINE, "ref": "{0}"}),
        ["rewind", "{0}", "--timeline", LINE],
    ),
    "rewind": (
        *("POST", "rewind", {"timeline": LINE, "ref": "@~1", "what": "all"}),
        ["rewind", "{1}", "--timeline", LINE],
    ),
    "rewind of files": (
        *("POST", "rewind", {"timeline": LINE, "ref": ":1", "what": "files"}),
        ["rewind", "{0}", "--timeline", LINE],
    ),
    "fork": (
        *("POST", "fork", {"ref": "{0}", "name": "new", "directory": "new dir"}),
        ["fork", "{0}", "new dir"],
    ),
    "undo": ("POST", "undo", {"timeline": LINE}, ["undo", "--timeline", LINE]),
}


@pytest.mark.parametrize("act", REFUSED)
def test_what_would_touch_files_of_another_host_names_it_and_the_command(
    site: Site, program: ApiClient, ids: list[str], act: str
) -> None:
    method, path, body, command = REFUSED[act]
    asked = json.loads(filled(json.dumps(body), ids)) if body is not None else None
    before, lying = site.told(), (site.server.folder / "there" / "a.txt").read_text()
    got = program.send(method, f"/api/v1/{filled(path, ids)}", asked, {"If-Match": "*"})
    assert (got.status, got.data["code"]) == (409, "other_host"), got.data
    typed = shlex.join(["hardsave", *(filled(each, ids) for each in command)])
    assert f"host {HOST}" in got.data["detail"]
    assert got.data["detail"].endswith(f"type there: {typed}"), got.data["detail"]
    assert site.told() == before
    assert (site.server.folder / "there" / "a.txt").read_text() == lying


def filled(text: str, ids: list[str]) -> str:
    for number, id in enumerate(ids):
        text = text.replace(f"{{{number}}}", id)
    return text


def test_the_state_alone_goes_back_wherever_the_files_are(
    site: Site, program: ApiClient, ids: list[str]
) -> None:
    body = {"timeline": LINE, "ref": ids[0], "what": "state"}
    done = program.send("POST", "/api/v1/rewind", body, {"If-Match": "*"})
    assert (done.status, done.data["moved"], done.data["files"]) == (200, True, None)
    assert program.send("POST", "/api/v1/undo", {"timeline": LINE}).status == 200


def test_a_directory_of_the_same_path_here_is_not_that_of_the_other_host(
    site: Site, program: ApiClient, ids: list[str], tmp_path: Path
) -> None:
    body = {"timeline": LINE, "workspace": str(site.server.folder / "there")}
    got = program.send("POST", "/api/v1/checkpoints", body)
    assert (got.status, got.data["code"]) == (403, "not_allowed")
