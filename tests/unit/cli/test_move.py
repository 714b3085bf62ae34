"""`hardsave move`: what was saved, and what was said, goes on where the project is now."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hardsave
from tests.unit.cli.conftest import Run
from tests.unit.repositories import begin_repository


@pytest.fixture
def moved(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that was copied to another place, as to another file system, and removed."""
    begin_repository(project)
    run("save", "one")
    (project / "a.txt").write_text("changed\n")
    new = project.with_name("new place")
    shutil.copytree(project, new)
    shutil.rmtree(project)
    monkeypatch.chdir(new)
    return new


def test_history_goes_on_in_the_new_directory(run: Run, project: Path, moved: Path) -> None:
    ran = run("move", str(project))
    assert ran.code == 0
    assert ran.out.strip() == (
        f"{moved} goes on with what was saved in {project}: 1 checkpoint on 1 timeline"
    )
    assert "one" in run("log").out
    assert run("rewind", "one", "--yes").code == 0
    assert (moved / "a.txt").read_text() == "one\n"
    assert run("save").out.startswith("saved main:")
    assert not project.exists()


def test_workspaces_are_where_the_project_is_now(run: Run, project: Path, moved: Path) -> None:
    run("move", str(project))
    with hardsave.open() as vault:
        (saved,) = vault.moments(moved)
        assert saved.files is not None
        assert (saved.files.workspace, saved.files.host) == (str(moved), None)
        assert vault.workspace(moved).last == saved
        vault.timeline("main").save_files(moved)
        assert len(vault.moments(moved)) == 2
        assert not vault.moments(project)


def test_a_fork_goes_on_with_the_store_where_it_is_now(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("save", "one")
    run("fork", "one", "../try")
    new = project.rename(project.with_name("new"))
    data = run("move", "../project", str(new), "--json").data
    assert data["forks"] == [str(project.with_name("try"))]
    assert data["checkpoints"] == 2
    monkeypatch.chdir(project.with_name("try"))
    assert "saved try:2" in run("save").out


def test_what_was_said_to_claude_code_is_found_in_the_new_directory(
    run: Run, project: Path, moved: Path, tmp_path: Path
) -> None:
    folders = tmp_path / "claude" / "projects"
    old, new = (
        folders / "".join(c if c.isalnum() else "-" for c in str(each)) for each in (project, moved)
    )
    old.mkdir(parents=True)
    lines = [
        {"type": "user", "sessionId": "s-1", "cwd": str(project / "src"), "message": {}},
        {"type": "summary", "summary": "no directory"},
    ]
    session = "0b0c0d0e-0000-4000-8000-000000000001"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (old / f"{session}.jsonl").write_text(text)
    ran = run("move", str(project))
    assert "1 conversation of Claude Code can be resumed there: claude --resume" in ran.out
    found = [json.loads(line) for line in (new / f"{session}.jsonl").read_text().splitlines()]
    assert [line.get("cwd") for line in found] == [str(moved / "src"), None]
    assert (old / f"{session}.jsonl").read_text() == text


SESSION = "0b0c0d0e-0000-4000-8000-000000000001"


class Claude:
    """What Claude Code keeps of a session that is gone on with in one directory, then another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kept(self, directory: Path, name: str = f"{SESSION}.jsonl") -> Path:
        place = "".join(c if c.isalnum() else "-" for c in str(directory))
        return self.folder / "projects" / place / name

    def say(self, directory: Path, text: str, name: str = f"{SESSION}.jsonl") -> None:
        path = self.kept(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        line = {"type": "user", "cwd": str(directory), "share": 1e-7, "message": text}
        with path.open("a") as file:
            file.write(json.dumps(line).replace("1e-07", "1e-7") + "\n")  # as JavaScript has it

    def said(self, directory: Path, name: str = f"{SESSION}.jsonl") -> list[str]:
        lines = [json.loads(line) for line in self.kept(directory, name).read_text().splitlines()]
        assert {line["cwd"] for line in lines} == {str(directory)}
        return [line["message"] for line in lines]


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    return Claude(tmp_path / "claude")


def move_there_and_back(run: Run, here: Path, there: Path, between: Callable[[], None]) -> str:
    here.rename(there)
    assert run("move", str(here), str(there)).code == 0
    between()
    there.rename(here)
    ran = run("move", str(there), str(here))
    assert ran.code == 0
    return " ".join(ran.out.split())


def test_a_conversation_that_went_on_elsewhere_comes_back_with_its_project(
    run: Run, project: Path, claude: Claude
) -> None:
    run("save")
    there = project.with_name("there")
    claude.say(project, "make a")
    told = move_there_and_back(run, project, there, lambda: claude.say(there, "make b"))
    assert "1 conversation of Claude Code can be resumed there" in told
    assert claude.said(project) == ["make a", "make b"]
    assert not list(claude.kept(project).parent.glob("tmp*"))


def test_conversations_that_have_parted_are_both_kept_and_named(
    run: Run, project: Path, claude: Claude
) -> None:
    run("save")
    there = project.with_name("there")

    def both() -> None:
        claude.say(project, "make c")
        claude.say(there, "make b")

    claude.say(project, "make a")
    told = move_there_and_back(run, project, there, both)
    assert claude.said(project) == ["make a", "make c"]
    assert claude.said(there) == ["make a", "make b"]
    assert f"Claude Code has two conversations {SESSION}" in told
    assert str(claude.kept(project)) in told
    assert str(claude.kept(there)) in told


def test_what_subagents_said_moves_with_the_conversation(
    run: Run, project: Path, claude: Claude
) -> None:
    run("save")
    there, name = project.with_name("there"), f"{SESSION}/subagents/agent-1.jsonl"
    result = f"{SESSION}/tool-results/1.txt"
    claude.say(project, "make a")
    claude.say(project, "look", name)
    claude.kept(project, result).parent.mkdir()
    claude.kept(project, result).write_bytes(b"\xff")

    def go_on() -> None:
        assert claude.kept(there, result).read_bytes() == b"\xff"
        claude.say(there, "make b")
        claude.say(there, "look again", name)

    move_there_and_back(run, project, there, go_on)
    assert claude.said(project, name) == ["look", "look again"]


def test_what_cannot_be_moved_is_refused(run: Run, project: Path, moved: Path) -> None:
    ran = run("move", "../nosuch")
    assert ran.code == 3
    assert f"gone from where they were: {project}" in ran.err
    assert run("move", str(project), "../nosuch").code == 2
    run("save", "--store", str(project.parent / "other.db"))
    project.mkdir()
    assert run("move", str(project)).code == 0, "another directory is there, of the same name"


def test_a_project_that_is_still_there_is_left(run: Run, project: Path) -> None:
    run("save")
    new = project.with_name("copy")
    shutil.copytree(project, new)
    ran = run("move", str(project), str(new))
    assert ran.code == 2
    assert "is still at" in ran.err


def test_a_store_of_its_own_is_not_replaced(run: Run, project: Path, moved: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("main").save_files(moved)
    ran = run("move", str(project))
    assert ran.code == 4
    assert "store import all.hardsave" in ran.err


def test_a_store_that_is_open_is_not_moved(run: Run, project: Path, moved: Path) -> None:
    (store,) = (project.parent / "data").rglob("store.db")
    with hardsave.open(f"sqlite:///{store}"):
        ran = run("move", str(project))
    assert ran.code == 6
    assert "has to be moved, and" in ran.err
    assert store.exists()


def test_doctor_names_projects_that_are_gone(run: Run, project: Path, moved: Path) -> None:
    found = {each["what"]: each for each in run("doctor", "--json").data}["moved projects"]
    assert str(project) in found["message"]
    assert "hardsave move OLD NEW" in found["message"]
