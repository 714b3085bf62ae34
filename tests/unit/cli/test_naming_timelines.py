"""A timeline is named with --timeline, by its name or by a beginning that no other has."""

from pathlib import Path

import pytest

import hardsave
from hardsave.cli.commands.run import timeline_named
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session, Settings
from tests.unit.cli.conftest import Run

LONG = "claude-7d63e7b0-f288-46b6-abcd-2f90475a4877"


@pytest.fixture
def several(project: Path) -> Path:
    with hardsave.open() as vault:
        for name in (LONG, "session-1", "session-10", "session-2"):
            line = vault.timeline(name)
            line.save({"turn": 1}, workspace=".", status="done")
            line.save({"turn": 2}, workspace=".", status="done")
    return project


@pytest.mark.parametrize(
    "typed",
    [
        ["log", "-t", "cl"],
        ["status", "--timeline", "claude"],
        ["show", "cl:1"],
        ["show", "@", "-t", "cl"],
        ["diff", "cl:1", "claude-7:2"],
        ["rewind", "cl:1", "--state", "--yes"],
        ["delete", "cl:1"],
        ["search", "turn", "-t", "cl"],
        ["timelines", "clear", "-t", "cl"],
        ["timelines", "delete", "-t", "cl"],
        ["store", "export", "out.hardsave", "-t", "cl", "-t", "session-2"],
        ["store", "retain", "--keep", "1", "--yes", "-t", "cl"],
        ["store", "purge", "--whole", "--yes", "-t", "cl"],
    ],
)
def test_a_beginning_that_is_unique_names_the_timeline(
    typed: list[str], run: Run, several: Path
) -> None:
    assert run(*typed, "--json").code == Exit.DONE


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        (["log", "-t", "sess"], "'session-1', 'session-10', 'session-2'"),
        (["show", "session:1"], "'session-1', 'session-10', 'session-2'"),
        (["timelines", "delete", "-t", "s"], "'session-1', 'session-10', 'session-2'"),
    ],
)
def test_a_beginning_of_several_is_refused_with_their_names(
    typed: list[str], candidates: str, run: Run, several: Path
) -> None:
    ran = run(*typed)
    assert ran.code == Exit.USAGE
    assert f": {candidates}; type more of it" in ran.err


def test_a_save_may_make_a_timeline_and_takes_its_name_as_it_is(run: Run, several: Path) -> None:
    assert run("save", "-t", "session", "--json").data["timeline"] == "session"
    assert run("log", "-t", "session", "--json").code == Exit.DONE


def test_a_save_by_the_short_name_of_a_session_is_saved_on_that_session(
    run: Run, several: Path
) -> None:
    assert run("save", "-t", "claude-7d63e7b0", "--json").data["timeline"] == LONG
    assert run("save", "-t", "claude", "--json").data["timeline"] == "claude"


@pytest.mark.parametrize(
    ("typed", "meant"), [("claude-7d63e7b0", LONG), ("claude", "claude"), ("session-1",) * 2]
)
def test_a_run_by_the_short_name_of_a_session_goes_on_with_it(
    typed: str, meant: str, several: Path
) -> None:
    with Session(Settings(timeline=typed)) as session:
        assert timeline_named(session) == meant


@pytest.mark.parametrize("typed", [["rewind", "--yes"], ["diff", "now"], ["show"]])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("session-1", "'session-1' is a timeline, not a checkpoint; it stands at 'session-1:2'"),
        ("claude-7d63e7b0", "is a session, not a checkpoint; it stands at 'claude-7d63e7b0:2'"),
    ],
)
def test_a_timeline_in_place_of_a_checkpoint_is_told_with_its_head(
    typed: list[str], name: str, told: str, run: Run, several: Path
) -> None:
    ran = run(typed[0], name, *typed[1:])
    assert ran.code == Exit.NOT_FOUND
    assert told in ran.err


def test_what_was_printed_means_the_same_when_a_program_takes_that_name(
    run: Run, several: Path
) -> None:
    before = run("show", "claude-7d63e7b0:1", "--json").data["id"]
    with hardsave.open() as vault:
        vault.timeline("claude-7d63e7b0").save({"turn": 9}, workspace=".")
    assert run("show", "claude-7d63e7b0:1", "--json").data["id"] == before
    assert "claude-7d63e7b0-2" in run("timelines", "list").out
    later = run("show", "claude-7d63e7b0-2:1", "--json").data
    assert later["timeline"] == "claude-7d63e7b0"
    assert run("save", "-t", "claude-7d63e7b0-2").out.startswith("saved claude-7d63e7b0-2:2")


def test_what_is_printed_after_a_fork_leads_to_the_fork(run: Run, several: Path) -> None:
    ran = run("fork", "session-1:1", "--name", "claude-7d63e7b0")
    assert ran.out.startswith("forked claude-7d63e7b0-2 from")
    assert "hardsave log --timeline claude-7d63e7b0-2\n" in ran.err


def test_a_deleted_timeline_is_named_in_full_to_be_brought_back(run: Run, several: Path) -> None:
    run("timelines", "delete", "-t", "session-2")
    ran = run("log", "-t", "session-2")
    assert ran.code == Exit.NOT_FOUND
    assert "hardsave undo --timeline session-2" in ran.err
    assert run("undo", "-t", "session-2").code == Exit.DONE
    assert run("log", "-t", "session-2").code == Exit.DONE


def test_what_is_done_to_a_whole_timeline_is_not_done_to_the_usual_one(
    run: Run, several: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_TIMELINE", "session-1")
    for typed in (["timelines", "delete"], ["timelines", "clear"], ["store", "purge", "--whole"]):
        ran = run(*typed, *(["--yes"] if "purge" in typed else []))
        assert ran.code == Exit.USAGE
        assert "say which with --timeline" in ran.err


def test_the_timeline_of_a_run_need_not_have_a_checkpoint_yet(
    run: Run, several: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_TIMELINE", "session-")
    ran = run("log")
    assert ran.code == Exit.DONE
    assert "nothing was saved on timeline 'session-' yet" in ran.err


@pytest.mark.parametrize(
    "typed",
    [
        ["show", "session-1:1", "-t", "session-2"],
        ["diff", "session-1:1", "session-1:2", "-t", "session-2"],
        ["delete", "session-1:1", "-t", "session-2"],
        ["fork", "session-1:1", "-t", "session-2"],
        ["bisect", "session-1:1", "session-1:2", "-t", "session-2", "--", "true"],
        ["log", "--all", "-t", "session-2"],
        ["undo", "--any-timeline", "-t", "session-2"],
        ["redo", "--any-timeline", "-t", "session-2"],
        ["store", "verify", "-t", "session-2"],
        ["store", "verify", "session-1:1", "-t", "session-2"],
        ["store", "retain", "--all", "-t", "session-2", "--yes"],
        ["store", "purge", "--text", "turn", "-t", "session-2", "--yes"],
        ["store", "purge", "session-1:1", "-t", "session-2", "--yes"],
    ],
)
def test_a_timeline_that_something_else_makes_meaningless_is_refused(
    typed: list[str], run: Run, several: Path
) -> None:
    before = run("log", "--all", "--json").data
    ran = run(*typed)
    assert ran.code == Exit.USAGE, ran
    assert "--timeline means nothing beside" in ran.err
    assert run("log", "--all", "--json").data == before


@pytest.mark.parametrize(
    "typed",
    [
        ["show", "session-1:1", "-t", "session-1"],
        ["diff", "session-2:1", "@", "-t", "session-1"],
        ["rewind", "session-1:1", "--state", "--dry-run", "-t", "session-2"],
    ],
)
def test_a_timeline_that_a_ref_needs_or_agrees_with_is_taken(
    typed: list[str], run: Run, several: Path
) -> None:
    assert run(*typed).code == Exit.DONE


@pytest.mark.parametrize(
    "typed",
    [
        ["log", "--follow", "-n", "5"],
        ["log", "--follow", "--status", "done"],
        ["log", "--follow", "--since", "2h"],
        ["show", "@", "--full", "--state"],
        ["show", "@", "-n", "3", "--file", "a.txt"],
        ["diff", "@~1", "--stat", "--state"],
        ["jobs", "list", "--all", "--health"],
        ["undo", "-n", "3"],
    ],
)
def test_two_options_of_which_one_would_be_ignored_are_refused(
    typed: list[str], run: Run, session_1: Path
) -> None:
    assert run(*typed).code == Exit.USAGE


def test_what_another_session_has_changed_is_told_by_its_short_name(
    run: Run, several: Path
) -> None:
    with hardsave.open() as vault:
        (several / "a.py").write_text("one")
        vault.timeline("session-1").save({"turn": 3}, workspace=".")
        (several / "a.py").write_text("two")
        vault.timeline(LONG).save({"turn": 3}, workspace=".")
    told = run("rewind", "session-1:1", "--mine", "--dry-run").out
    assert "left as it is" in told
    assert "claude-7d63e7b0" in told
    assert LONG not in told


def test_show_leaves_out_what_only_rewinds_need(run: Run, several: Path) -> None:
    about = {"agent": "claude-code", "evidence": {"at": 1.0, "calls": []}}
    with hardsave.open() as vault:
        vault.timeline("session-1").save({"turn": 3}, metadata=about)
    assert 'metadata  {"agent": "claude-code"}\n' in run("show", "session-1:3").out
    assert run("show", "session-1:3", "--json").data["metadata"] == about


def test_show_tells_in_a_line_which_calls_have_changed_files(run: Run, several: Path) -> None:
    calls = [{"tool": "Bash", "tool_use_id": "1"}, {"tool": "Edit", "tool_use_id": "2"}]
    told = [
        {"calls": calls[:1], "paths": ["a", "b"], "count": 2},
        {"calls": calls, "paths": ["c"], "count": 1},
    ]
    with hardsave.open() as vault:
        vault.timeline("session-1").save({"turn": 3}, metadata={"changed_by": told})
        vault.timeline("session-1").save({"turn": 4}, metadata={"changed_by": "me"})
    shown = run("show", "session-1:3").out
    assert "changed by  Bash: 2 paths; Bash or Edit: 1 path\n" in shown
    assert "metadata" not in shown
    assert '{"changed_by": "me"}' in run("show", "session-1:4").out
