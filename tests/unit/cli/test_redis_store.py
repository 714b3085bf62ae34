"""Commands on a store on Redis: those it claims work, the others are refused by name."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.cli.errors import Exit
from tests.redis_server import Valkey, beside, prefix_of, url_of
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_every_command import ANSWERING, agreed

REFUSED = {
    "search": "search is not for this store",
    "store compact": "compact is not for this store",
    "store repair": "redis-check-aof",
}
# They ask no store, or the same of any.
APART = {"init", "demo", "completion", "trust", "jobs watch"}
ASKING = sorted(
    {*ANSWERING} - APART - {name for name in ANSWERING if name[:5] in ("token", "webho")}
)


@pytest.fixture
def session(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    monkeypatch.setenv("HARDSAVE_STORE", url_of(tmp_path))
    request.getfixturevalue("session_1")
    return project


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Valkey]:
    """A server with snapshots alone."""
    with Valkey(tmp_path / "own", appendonly="no") as server:
        yield server


@pytest.mark.parametrize("name", ASKING)
def test_a_command_works_on_redis_or_is_refused_by_name(session: Path, run: Run, name: str) -> None:
    ran = run(*agreed(name, run, "--json"))
    if name in REFUSED:
        assert ran.code == Exit.USAGE
        assert REFUSED[name] in ran.out
    else:
        assert ran.code == Exit.DONE, (ran.out, ran.err)


def test_a_save_writes_nothing_but_caches_on_the_disk(
    project: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", url_of(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert run("save").code == Exit.DONE
    assert run("log").code == Exit.DONE
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.relative_to(tmp_path).parts[:2] for path in new} == {("cache", "hardsave")}


def test_a_workspace_that_is_too_large_is_refused_before_anything_is_stored(
    project: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", url_of(tmp_path, max_workspace_bytes="3"))
    ran = run("save")
    assert ran.code == Exit.USAGE
    assert "a workspace of 4 bytes is not for this store" in ran.err
    assert not [*beside(tmp_path).scan_iter(f"{prefix_of(tmp_path)}:*:log")]


def test_doctor_says_what_is_lost_when(
    project: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", url_of(tmp_path))
    said = " ".join(run("doctor").out.split())
    assert "a save survives a power loss; a failover loses the commits" in said


def test_a_server_that_may_lose_saves_is_refused_and_no_password_shown(
    project: Path, run: Run, own: Valkey
) -> None:
    own.client().config_set("requirepass", "s3cret")
    url = f"redis+socket://:s3cret@{own.socket}?db=0"
    ran = run("save", "--store", url)
    assert ran.code == Exit.USAGE
    assert "appendonly is no" in ran.err
    assert "durability=process" in ran.err
    url += "&durability=process"
    shown = [
        ran,
        *(run(*words, "--store", url) for words in (["save"], ["doctor"], ["search", "x"])),
    ]
    assert [each.code for each in shown] == [Exit.USAGE, Exit.DONE, Exit.DONE, Exit.USAGE]
    assert "s3cret" not in "".join(each.out + each.err for each in shown)


def test_tasks_of_two_processes_run_once_each(
    project: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", url_of(tmp_path))
    for at in range(6):
        assert run("tasks", "add", f"t{at}", f"Do {at}").code == Exit.DONE
    log = tmp_path / "log"
    words = ["tasks", "run", "--until-idle", "--", "sh", "-c", f"echo $HARDSAVE_TASK >> {log}"]
    command = [sys.executable, "-m", "hardsave", *words]
    processes = [subprocess.Popen(command, env={**os.environ}) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    assert sorted(log.read_text().split()) == [f"t{at}" for at in range(6)]
    assert run("tasks").out.count("completed") == 6
