"""Commands that ask a server say what they say of a store."""

import itertools
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.cli.commands import jobs_watch
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.client import RemoteVault
from hardsave.runtime.jobs.worker import Worker
from hardsave.server.route import Allowed
from hardsave.vault.workspaces import projects
from tests.unit.cli.conftest import Run
from tests.unit.cli.jobs_project import agent, make_jobs
from tests.unit.server.job_server import OWN_TOKEN, serving


@pytest.fixture
def server(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The server of a project that has jobs in every state; commands run in another directory."""
    make_jobs(project)
    url = projects.store_url(os.environ, project)
    monkeypatch.setenv("HARDSAVE_TOKEN", OWN_TOKEN)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    allowed = Allowed(("default",), (elsewhere.resolve(),))
    with serving(url, tmp_path, allowed=allowed) as client:
        yield f"http://127.0.0.1:{client.port}"


def without_ages(shown: str) -> str:
    """The same, a second later: how old something is, and how wide that column."""
    return re.sub(r"\b(now|\d+ seconds? ago)\b| +", " ", shown)


@pytest.mark.parametrize(
    "typed",
    [
        ["jobs"],
        ["jobs", "list", "--all"],
        ["jobs", "list", "--health"],
        ["jobs", "show", "fix"],
        ["jobs", "show", "fix", "--verbose"],
        ["jobs", "show", "asks"],
        ["jobs", "show", "nosuch"],
        ["jobs", "watch", "done"],
        ["jobs", "watch", "fix"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["for people", "as JSON"])
def test_a_look_at_jobs_is_the_same_at_a_server(
    typed: list[str], form: list[str], run: Run, server: str
) -> None:
    here = run(*typed, *form)
    there = run(*typed, "--server", server, *form)
    assert there.code == here.code
    for one, other in ((there.out, here.out), (there.err, here.err)):
        led = other.replace("hardsave jobs", f"hardsave --server {server} jobs")
        assert without_ages(one) == without_ages(led)


def test_jobs_of_a_server_are_queued_answered_resumed_and_deleted(
    run: Run, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_server(*typed: str) -> dict[str, object]:
        ran = run(*typed, "--server", server, "--json")
        assert ran.code == Exit.DONE, ran
        found: dict[str, object] = ran.data
        return found

    here = Path.cwd()
    monkeypatch.chdir(tmp_path / "elsewhere")
    queued = at_server("jobs", "submit", "more", "--prompt", "Do more")
    assert (queued["state"], queued["workspace"]) == ("queued", str(tmp_path / "elsewhere"))
    assert at_server("jobs", "approve", "asks")["answer"] == "approved"
    assert at_server("jobs", "resume", "fix", "--max-turns", "20")["id"] == "fix~2"
    deleted = at_server("jobs", "delete", "new")["deleted"]
    assert isinstance(deleted, dict)
    assert deleted["id"] == "new"
    assert not (tmp_path / "data" / "hardsave" / "projects").joinpath("elsewhere").exists()
    monkeypatch.chdir(here)
    with hardsave.open() as vault:
        assert vault.jobs.get("more").state == "queued"
        assert vault.jobs.get("asks").question is None
        assert vault.jobs.get("fix").max_turns == 20


def test_a_call_is_denied_with_a_reason(run: Run, server: str) -> None:
    ran = run("--server", server, "jobs", "deny", "asks", "--because", "too dear")
    assert ran.code == Exit.DONE, ran
    assert ran.out.startswith("denied: ")


def test_commands_to_type_next_lead_to_the_server_or_to_its_machine(run: Run, server: str) -> None:
    assert (
        f"hardsave --server {server} jobs resume"
        in run("jobs", "watch", "fix", "--server", server).err
    )
    deleted = run("jobs", "delete", "fix", "--server", server)
    assert "on the machine of the server, take it back with: hardsave undo" in deleted.err


def test_looking_at_a_server_opens_no_store(
    run: Run, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(Session, "vault", property(lambda _: pytest.fail("a store was opened")))
    for typed in (["jobs"], ["jobs", "show", "fix"], ["jobs", "watch", "done"]):
        ran = run(*typed, "--server", server)
        assert ran.code == Exit.DONE, ran


def test_what_is_wrong_with_a_server_is_told_in_one_sentence(
    run: Run, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = run("jobs", "--server", server, "--store", "x.db")
    assert (beside.code, "--store means nothing beside --server" in beside.err) == (2, True)
    alone = run("log", "--server", server)
    assert (alone.code, "--follow" in alone.err) == (2, True)
    odd = run("jobs", "--server", "localhost")
    assert (odd.code, "http://HOST:PORT" in odd.err) == (2, True)
    monkeypatch.setenv("HARDSAVE_TOKEN", "hs_wrong")
    wrong = run("jobs", "--server", server)
    assert (wrong.code, "hardsave token list" in wrong.err) == (2, True)


def test_no_server_is_exit_6_with_the_command_that_starts_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardsave.client.calls.CLIENT_TRIES", 1)
    ran = run("jobs", "--server", "http://127.0.0.1:1")
    assert ran.code == Exit.UNAVAILABLE
    assert "hardsave serve" in ran.err


# As it happens


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that follows is told of what happens right then, and of no more."""
    follow = RemoteVault.follow

    def few(vault: RemoteVault, **options: Any) -> Iterator[Any]:
        following = follow(vault, **options)
        with hardsave.open() as local:
            for name in ("one", "two"):
                local.timeline("other").save({"a": 1})
                local.timeline("main").save({"a": 1}, name=name)
            local.timeline("main").rewind("main:1")
        count = 2 if options.get("timeline") else 5
        return itertools.islice(following, count)

    monkeypatch.setattr(RemoteVault, "follow", few)


@pytest.mark.usefixtures("few")
def test_what_happens_at_a_server_is_shown_as_it_does(run: Run, server: str) -> None:
    ran = run("log", "--follow", "--server", server)
    assert ran.code == Exit.DONE, ran
    assert [line.split()[2] for line in ran.out.splitlines()] == [
        "other:1",
        "main:1",
        "other:2",
        "main:2",
        "rewind",
    ]
    ran = run("log", "--follow", "--server", server, "--timeline", "mai", "--json")
    first, second = map(json.loads, ran.out.splitlines())
    assert (first["kind"], first["timeline"]) == ("checkpoint_saved", "main")
    assert first["checkpoint"]["name"] == "one"
    assert first["id"]
    assert second["checkpoint"]["name"] == "two"
    unknown = run("log", "--follow", "--server", server, "--timeline", "nosuch")
    assert (unknown.code, "there is no timeline 'nosuch'" in unknown.err) == (Exit.NOT_FOUND, True)


def test_a_job_of_a_server_is_watched_until_it_is_over(
    run: Run, server: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_watch, "LOOK_THERE_SECONDS", 0.05)

    def work() -> None:
        with hardsave.open() as vault:
            Worker(vault, {"default": agent()}).run(until_idle=True)

    timer = threading.Timer(0.5, work)
    timer.start()
    ran = run("jobs", "watch", "new", "--server", server, "--json")
    timer.join()
    states = [json.loads(line)["state"] for line in ran.out.splitlines()]
    assert ran.code == Exit.DONE, ran
    assert (states[0], states[-1]) == ("queued", "succeeded")
    assert json.loads(ran.out.splitlines()[-1])["last_message"] == "all done"
