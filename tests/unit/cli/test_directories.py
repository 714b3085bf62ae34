"""Where a command finds its store: after a move, in a fork, below what was saved."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from hardsave.vault.workspaces import projects
from tests.unit.cli.conftest import Run
from tests.unit.workspace.repository import Repository


@pytest.fixture
def told_apart(tmp_path: Path) -> None:
    if projects._born(tmp_path, tmp_path.stat()) is None:
        pytest.skip("this file system does not tell directories apart that had one inode")


@pytest.mark.parametrize("command", ["log", "status", "save", "store stats", "rewind @"])
def test_a_moved_project_is_not_taken_for_a_new_one(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, told_apart: None, command: str
) -> None:
    assert run("save", "one").code == 0
    moved = project.rename(project.with_name("moved"))
    monkeypatch.chdir(moved)
    told = run(*command.split())
    assert told.code == 3
    assert "was " + str(project) in told.err
    (move,) = re.findall(r"hardsave (move [^;]+)", told.err)
    assert run(*shlex.split(move)).code == 0
    assert "one" in run("log").out


def test_after_a_move_files_come_back_where_the_project_is_now(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, told_apart: None
) -> None:
    run("save", "one", "--timeline", "session-7")
    (project / "a.txt").write_text("changed\n")
    moved = project.rename(project.with_name("moved"))
    monkeypatch.chdir(moved)
    assert run("move", str(project)).code == 0
    assert "one" in run("log").out, "its timelines are those of this project"
    assert "~ a.txt" in run("status").out
    assert run("rewind", "one", "--yes").code == 0
    assert (moved / "a.txt").read_text() == "one\n"
    assert not project.exists()


def test_a_fork_saves_into_the_store_that_it_came_from(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src").mkdir()
    (project / "src" / "m.py").write_text("one\n")
    run("save", "start")
    for name in ("try-1", "try-2"):
        assert run("fork", "start", f"../{name}").code == 0
        monkeypatch.chdir(project.with_name(name) / "src")
        Path("m.py").write_text(f"{name}\n")
        assert f"saved {name}:2" in run("save").out, "from a directory in it, too"
        monkeypatch.chdir(project)
    shown = run("diff", "try-1:2", "try-2:2")
    assert "-try-1" in shown.out
    assert "+try-2" in shown.out
    assert run("rewind", "try-2:2", "--into", ".", "--yes").code == 0
    assert (project / "src" / "m.py").read_text() == "try-2\n"
    assert "nothing has changed since try-2:2" in run("status").out


def test_a_fork_whose_store_is_gone_says_so(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("save", "start")
    store = Path(run("store", "stats", "--json").data["store"].removeprefix("sqlite:///"))
    run("fork", "start", "../try-1")
    monkeypatch.chdir(project.with_name("try-1"))
    shutil.rmtree(store.parent)
    told = run("save")
    assert told.code == 3
    assert "was forked from a project whose store was" in told.err
    (remedy,) = re.findall(r"rm \S+", told.err)
    subprocess.run(shlex.split(remedy), check=True)
    assert run("save").code == 0


def test_another_directory_in_the_place_of_a_fork_is_no_fork(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, told_apart: None
) -> None:
    run("save", "start")
    run("fork", "start", "../try-1")
    fork = project.with_name("try-1")
    shutil.rmtree(fork)
    fork.mkdir()
    monkeypatch.chdir(fork)
    assert run("timelines", "--json").data == []


def test_a_fork_into_what_had_a_store_of_its_own_hides_nothing(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = project.with_name("other")
    other.mkdir()
    monkeypatch.chdir(other)
    run("save", "mine")
    monkeypatch.chdir(project)
    run("save", "start")
    told = run("fork", "start", "../other")
    assert told.code == 0
    assert "to save there on it: export HARDSAVE_STORE=" in told.err
    monkeypatch.chdir(other)
    assert "mine" in run("log").out


def test_a_save_below_what_was_saved_says_that_it_begins_anew(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("save", "start")
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    told = run("save")
    assert told.code == 0
    assert f"hardsave -C {project}" in told.err
    assert "hardsave -C" not in run("save").err


def test_a_home_that_is_refused_leaves_no_store(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    for command in (["save"], ["run", "--", "true"]):
        told = run(*command)
        assert told.code == 2
        assert "holds a whole home directory" in told.err
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert "hardsave -C" not in run("log").err, "nothing was saved above"


def test_a_directory_that_is_gone_is_told_how_to_come_back(run: Run, project: Path) -> None:
    run("save")
    shutil.rmtree(project)
    told = run("-C", str(project), "log")
    assert told.code == 2
    assert "make it again" in told.err
    project.mkdir()
    assert run("-C", str(project), "rewind", "@", "--yes").code == 0
    assert (project / "a.txt").exists()


def test_a_repository_that_is_gone_is_told(run: Run, project: Path) -> None:
    Repository(project).init().commit("b.txt", "x")
    run("save")
    shutil.rmtree(project / ".git")
    (project / "a.txt").unlink()
    told = run("rewind", "@", "--yes")
    assert told.code == 0
    assert "no checkpoint holds .git" in told.err


def test_a_fork_that_cannot_be_noted_says_what_to_type(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", str(project.with_name("named.db")))
    run("save", "start")
    project.with_name("file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(project.with_name("file") / "below"))
    told = run("fork", "start", "../try-1")
    assert told.code == 0
    assert "to save there on it: export HARDSAVE_STORE=" in told.err


def test_who_has_no_home_and_names_a_store_needs_none(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_STORE", str(project.with_name("named.db")))
    for variable in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)  # a user that no system knows
    assert run("save").code == 0
    assert run("status").code == 0


def test_a_name_that_another_timeline_has_is_said_to_be_there(run: Run, session_1: Path) -> None:
    run("save", "before-it", "--status", "done", "--timeline", "main")
    run("save", "--timeline", "run-1", "--status", "done")
    ran = run("rewind", "before-it", "--timeline", "run-1", "--yes")
    assert ran.code == 3
    assert ran.err.endswith("; on other timelines it is 'main:1'\n")
    assert "other timelines" not in run("show", "never-was", "--timeline", "run-1").err
