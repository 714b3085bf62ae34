"""What a command is about where two projects share a store."""

from pathlib import Path

import pytest

import hardsave
from tests.unit.cli.conftest import Run
from tests.unit.repositories import begin_repository

TEXT = "hunter2-hunter2"


@pytest.fixture
def theirs(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another project with a timeline of three, as this one has; and one that has no files."""
    other = project.parent / "theirs"
    other.mkdir()
    (other / "b.txt").write_text(TEXT)
    (project / "a.txt").write_text(TEXT)
    for folder in (project, other):
        begin_repository(folder)
    monkeypatch.setenv("HARDSAVE_STORE", f"sqlite:///{project.parent}/shared.db")
    with hardsave.open() as vault:
        homes = {"ours": vault.workspace(project), "theirs": vault.workspace(other)}
        for name in (*homes, "of-none"):
            for turn in range(3):
                about = f"turn {turn} of {name}: {TEXT}"
                vault.timeline(name).save({"messages": [about]}, workspace=homes.get(name))
    return other


def counts() -> list[int]:
    with hardsave.open() as vault:
        return [len(vault.timeline(name)) for name in ("ours", "theirs", "of-none")]


def test_retain_lets_nothing_go_that_is_another_project_s(run: Run, theirs: Path) -> None:
    ran = run("store", "retain", "--keep", "1", "--dry-run")
    assert "2 timelines of other projects or of none left alone" in ran.err
    done = run("store", "retain", "--keep", "1", "--yes", "--json").data
    assert (done["dropped"], done["left_alone"]) == (2, ["of-none", "theirs"])
    assert counts() == [1, 3, 3]


def test_retain_sees_deleted_timelines_of_its_own_project_too(run: Run, theirs: Path) -> None:
    for name in ("ours", "theirs"):
        run("timelines", "delete", "--timeline", name)
    with hardsave.open() as vault:
        policy = hardsave.Policy(undo_window=hardsave.Policy().undo_window * 0)
        found = vault.retention.plan(policy, own=True)
    assert {choice.row.timeline for choice in found.drops} == {"ours"}


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("--all",), [1, 1, 1]),
        (("--timeline", "theirs"), [3, 1, 3]),  # who names it means it
        (("--timeline", "of-none"), [3, 3, 1]),
    ],
)
def test_retain_goes_further_if_it_is_told_so(
    run: Run, theirs: Path, arguments: tuple[str, ...], left: list[int]
) -> None:
    assert run("store", "retain", "--keep", "1", "--yes", *arguments).code == 0
    assert counts() == left


def test_retain_in_a_directory_that_saved_nothing_lets_nothing_go(
    run: Run, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere := theirs.parent / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    assert "left alone" in run("store", "retain", "--keep", "1", "--yes").err
    assert counts() == [3, 3, 3]


def test_all_and_one_are_two_wishes(run: Run, theirs: Path) -> None:
    assert run("store", "retain", "--all", "--timeline", "ours", "--dry-run").code == 2


def test_a_store_of_one_project_is_all_its_own_also_once_it_was_moved(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_repository(project)
    with hardsave.open() as vault:
        for turn in range(2):
            vault.timeline("main").save({"turn": turn}, workspace=".")
    moved = project.parent / "moved"
    project.rename(moved)
    monkeypatch.chdir(moved)
    assert f"hardsave move {project} {moved}" in run("log").err, "it says what to type"
    assert run("move", str(project)).code == 0
    run("save", "--timeline", "second")
    done = run("store", "retain", "--keep", "1", "--yes", "--json").data
    assert (done["dropped"], done["left_alone"]) == (1, [])


def test_log_undo_and_status_are_about_this_project(run: Run, theirs: Path) -> None:
    run("rewind", "ours:1", "--yes")
    run("-C", str(theirs), "rewind", "theirs:2", "--yes")
    assert [each["timeline"] for each in run("log", "--json").data] == ["ours"] * 3
    assert run("status", "--json").data["timeline"] == "ours"
    assert run("undo", "--json").data["timeline"] == "ours"
    with hardsave.open() as vault:
        head = vault.timeline("theirs").head
    assert head is not None
    assert head.seq == 2, "the latest operation of the store is theirs, and stands"
    assert run("undo", "--any-timeline", "--json").data["timeline"] in ("ours", "theirs")


def test_gc_and_compact_take_nothing_that_a_timeline_needs(run: Run, theirs: Path) -> None:
    assert run("store", "gc").code == run("store", "compact").code == 0
    assert run("store", "verify", "--json").data["ok"]
    assert counts() == [3, 3, 3]


def test_purge_and_search_are_about_the_whole_store(run: Run, theirs: Path) -> None:
    hits = run("search", "turn", "--all", "-n", "50", "--json").data["hits"]
    assert {hit["timeline"] for hit in hits} == {"ours", "theirs", "of-none"}
    run("store", "purge", "--text", TEXT, "--yes")
    assert run("search", "hunter2", "--all", "--json").data["hits"] == []
    assert counts() == [3, 3, 3]
