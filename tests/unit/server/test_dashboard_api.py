"""What the dashboard asks for: health with its findings, the steps of tasks, choices."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import hardsave
from hardsave.daemon import spool
from tests.unit.server.job_server import LIMIT, OWN_TOKEN, Client, serving
from tests.unit.tasks import unknown_step


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return f"sqlite:///{tmp_path / 's.db'}"


@pytest.fixture
def call(store: str, tmp_path: Path) -> Iterator[Client]:
    with serving(store, tmp_path) as client:
        yield client


def findings(call: Client) -> dict[str, Any]:
    status, told = call("GET", "api", "v1", "health")
    assert status == 200
    return {each["what"]: each for each in told["findings"]}


def test_health_tells_of_backup_disk_missed_saves_and_hooks(
    call: Client, store: str, tmp_path: Path
) -> None:
    with hardsave.open(store) as vault:
        vault.timeline("main").save({})
    found = findings(call)
    assert found.keys() == {"backup", "disk", "missed saves", "Claude Code", "Codex"}
    assert found["missed saves"]["level"] == "ok"
    assert "free" in found["disk"]["message"]
    assert (
        found["backup"]["message"] == "has everything"
    )  # the vault that was closed has seen to it


def test_a_save_that_was_missed_in_the_project_is_told_with_its_reason(
    call: Client, tmp_path: Path
) -> None:
    place = spool.folder(os.environ, tmp_path)
    place.mkdir(parents=True)
    (place / "1.json").write_text('{"hook": "Stop", "why": "the disk is full"}')
    missed = findings(call)["missed saves"]
    assert (missed["level"], missed["message"]) == ("warning", "1 save missed: the disk is full")
    assert missed["remedy"] == "hardsave doctor"
    assert call("GET", "api", "v1", "health")[1]["saves_missed"] == 1


def test_a_hook_that_calls_what_is_gone_is_told_with_its_remedy(
    call: Client, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    hook = {"type": "command", "command": "/gone/python -m hardsave.daemon.hook claude-code"}
    settings = {"hooks": {"Stop": [{"hooks": [hook]}]}}
    (tmp_path / "home" / "settings.json").write_text(json.dumps(settings))
    found = findings(call)["Claude Code"]
    assert (found["level"], found["remedy"]) == ("warning", "hardsave init")


def test_a_task_tells_its_steps_and_an_unknown_one_its_choices(call: Client, store: str) -> None:
    unknown_step.leave(store, "deploy")
    with hardsave.open(store) as vault:
        unknown_step.ask(vault, "deploy")
        vault.tasks.add("mail")
        with vault.tasks.attempt("mail") as attempt:
            attempt.ask("Send it?")
    _, waiting = call("GET", "api", "v1", "approvals")
    choices = {each["id"]: each["choices"] for each in waiting["items"]}
    assert choices == {"deploy": ["retry", "skip", "fail"], "mail": None}
    asked = Request(f"http://127.0.0.1:{call.port}/api/v1/task?id=deploy")
    asked.add_header("Authorization", f"Bearer {OWN_TOKEN}")
    with urlopen(asked, timeout=LIMIT) as answer:  # noqa: S310 # our own server
        told = json.load(answer)
    assert [(each["path"], each["state"], each["value"]) for each in told["steps"]] == [
        ("build#1", "done", "shop-1.2.tar"),
        ("push#1", "unknown", ""),
    ]
