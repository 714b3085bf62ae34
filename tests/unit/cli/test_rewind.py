"""`rewind`, `undo`, `redo`, `ops`: what they do, what they say, what they leave alone."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hardsave
from hardsave.cli.render import rewind_plan
from hardsave.vault.restore.path_choice import Kept
from hardsave.vault.restore.plan import FileChanges
from hardsave.workspace.restore import execution
from tests.unit.cli.conftest import Run, talk
from tests.unit.repositories import begin_repository
from tests.unit.workspace.git_room import built


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_state_and_files_go_back_and_come_again(run: Run, session_1: Path) -> None:
    late = files(session_1)
    ran = run("rewind", "plan-ready", "--yes")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "rewound session-1 to session-1:2"
    assert "hardsave undo --timeline session-1" in ran.err
    assert files(session_1) == {"a.txt": "one\ntwo\n"}
    assert run("show", "@", "--json").data["ref"] == "session-1:2"
    assert "session-1:3" in run("undo").out
    assert files(session_1) == late
    run("redo")
    assert files(session_1) == {"a.txt": "one\ntwo\n"}
    kinds = [each["kind"] for each in run("undo", "--list", "--json").data]
    assert kinds == ["redo", "undo", "rewind"]


def test_a_dry_run_says_what_would_happen_and_does_nothing(run: Run, session_1: Path) -> None:
    before = files(session_1)
    ran = run("rewind", "@~2", "--dry-run")
    assert "session-1:3 → session-1:1  3 → 1 message" in ran.out
    assert "    ~ a.txt" in ran.out
    assert "    - b.txt" in ran.out
    assert files(session_1) == before
    data = run("rewind", "@~2", "--dry-run", "--json").data
    assert data["dry_run"] is True
    assert data["files"]["removed"] == ["b.txt"]
    assert run("undo", "--list", "--json").data == []


def test_only_the_state_leaves_files_alone(run: Run, session_1: Path) -> None:
    before = files(session_1)
    run("rewind", "@~2", "--state", "--yes")
    assert files(session_1) == before
    assert run("show", "@", "--json").data["ref"] == "session-1:1"


def test_only_files_leave_the_head_alone(run: Run, session_1: Path) -> None:
    run("rewind", "@~2", "--files", "--yes")
    assert files(session_1) == {"a.txt": "one\n"}
    assert run("show", "@", "--json").data["message_count"] == 3


@pytest.mark.parametrize("both", [("--state", "--files"), ("--everyone", "--mine")])
def test_of_two_options_that_exclude_each_other_none_is_taken(
    run: Run, session_1: Path, both: tuple[str, str]
) -> None:
    before = files(session_1)
    ran = run("rewind", "@~2", *both, "--yes")
    assert ran.code == 2
    assert all(option in ran.err for option in both)
    assert files(session_1) == before
    assert run("undo", "--list", "--json").data == []


@pytest.mark.parametrize("other", ["--git", "--mine", "--everyone", "--into=.", "--path=a.txt"])
def test_an_option_about_files_is_refused_where_only_the_state_goes_back(
    run: Run, session_1: Path, other: str
) -> None:
    ran = run("rewind", "@~2", "--state", other, "--yes")
    assert ran.code == 2
    assert other.partition("=")[0] in ran.err
    assert "are about files; leave --state or these out" in ran.err
    assert run("undo", "--list", "--json").data == []


def test_an_empty_directory_is_something_to_do(run: Run, project: Path) -> None:
    (project / "empty").mkdir()
    assert run("save").code == 0
    (project / "empty").rmdir()
    ran = run("rewind", "@", "--files", "--yes")
    assert "+ empty/" in ran.out
    assert (project / "empty").is_dir()
    assert "nothing to do" in run("rewind", "@", "--files", "--yes").err


def test_a_path_is_meant_from_where_one_stands(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = session_1 / "inner"
    inner.mkdir()
    begin_repository(session_1)  # else a folder is a project of its own
    monkeypatch.chdir(inner)
    ran = run("rewind", "session-1:1", "--path", "../a.txt", "--yes", "--timeline", "session-1")
    assert ran.code == 0, ran
    assert files(session_1) == {"a.txt": "one\n", "b.txt": "new\n"}
    assert run("rewind", "@", "--path", "../../elsewhere", "--yes").code == 2
    ran = run("rewind", "@", "--path", "inner/a.txt", "--yes", "--timeline", "session-1")
    assert ran.code == 3
    assert f"'inner/inner/a.txt' is neither among the files of '{session_1}'" in ran.err


def test_a_path_is_never_taken_for_another_of_the_same_name(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Below a workspace that is no repository, and from anywhere else, by any link."""
    inner = session_1 / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text("within\n")
    monkeypatch.setenv("HARDSAVE_STORE", f"sqlite:///{tmp_path}/named.db")
    with hardsave.open() as vault:
        saved = vault.timeline("session-1").save_files(session_1)
    (session_1 / "a.txt").write_text("mine\n")
    (inner / "a.txt").write_text("broken\n")
    (tmp_path / "link").symlink_to(session_1)
    for folder, typed in (
        (inner, "a.txt"),
        (session_1, "inner/a.txt"),
        (tmp_path, "link/inner/a.txt"),
        (tmp_path, str(inner / "a.txt")),
    ):
        monkeypatch.chdir(folder)
        ran = run("rewind", saved.id, "--path", typed, "--dry-run", "--json")
        assert ran.code == 0, ran
        assert ran.data["files"]["changed"] == ["inner/a.txt"]
    assert run("rewind", saved.id, "--path", "elsewhere", "--dry-run").code == 2
    other = tmp_path / "other"
    (other / "inner").mkdir(parents=True)
    for typed in ("other/inner/a.txt", "link/inner/a.txt"):
        ran = run("rewind", saved.id, "--path", typed, "--into", str(other), "--dry-run", "--json")
        assert ran.data["files"]["created"] == ["inner/a.txt"]


def test_by_status_and_time(run: Run, session_1: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("session-1").append({"turn": 4}, status="failed")
    ran = run("rewind", "--status", "running", "--state", "--yes", "--json")
    assert ran.data["target"]["ref"] == "session-1:3"
    assert run("rewind", "--before", "3h", "--yes").code == 3
    assert run("rewind", "@", "--before", "3h", "--yes").code == 2


def test_a_rewind_that_changes_no_file_says_so(run: Run, session_1: Path) -> None:
    run("save", "state alone")
    before = files(session_1)
    ran = run("rewind", "@~1", "--yes")
    assert "files as of session-1:3: as they were" in ran.out
    assert files(session_1) == before


def test_without_a_terminal_there_is_no_list_to_choose_from(run: Run, session_1: Path) -> None:
    ran = run("rewind")
    assert ran.code == 2
    assert "a REF such as @~1" in ran.err


def test_where_it_is_all_there_already_nothing_is_done(run: Run, session_1: Path) -> None:
    ran = run("rewind", "@", "--yes")
    assert ran.code == 0
    assert "nothing to do" in ran.err
    assert run("undo", "--list", "--json").data == []
    assert not run("rewind", "@", "--yes", "--json").data["dry_run"]
    assert run("rewind", "@", "--dry-run", "--json").data["dry_run"]


def test_another_session_in_the_same_place_is_a_conflict_with_its_way_out(
    run: Run, session_1: Path
) -> None:
    (session_1 / "c.txt").write_text("theirs\n")
    with hardsave.open() as vault:
        vault.timeline("session-2").save({}, workspace=".", status="done")
    arguments = ("rewind", "session-1:1", "--timeline", "session-1", "--yes")
    ran = run(*arguments)
    assert ran.code == 4
    assert "--mine" in ran.err
    assert "scope=" not in ran.err
    assert run(*arguments, "--mine").code == 0
    assert files(session_1) == {"a.txt": "one\n", "c.txt": "theirs\n"}


def test_a_ref_says_which_of_two_unfinished_timelines_is_meant(run: Run, session_1: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("session-2").save({}, workspace=".")
        vault.timeline("session-1").save_files(".")
    assert run("rewind", "@~1", "--yes").code == 2
    assert (
        run("rewind", "session-1:2", "--state", "--yes", "--json").data["timeline"] == "session-1"
    )


def test_a_fork_goes_back_into_what_it_was_forked_from(run: Run, session_1: Path) -> None:
    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        line.append({"turn": 4}, status="done", workspace=".")
        line.fork("plan-ready", name="try-2").append({"turn": 9}, workspace=".")
    ran = run("rewind", "session-1:1", "--state", "--yes", "--json")
    assert ran.data["timeline"] == "try-2"
    assert run("show", "@", "--timeline", "session-1", "--json").data["seq"] == 4


def test_files_can_go_into_another_directory(run: Run, session_1: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ran = run("rewind", "plan-ready", "--files", "--into", str(other), "--yes")
    assert ran.code == 0, ran
    assert files(other) == {"a.txt": "one\ntwo\n"}
    assert len(files(session_1)) == 2


def test_files_that_go_into_another_directory_leave_the_project_as_it_is(
    run: Run, session_1: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("theirs\n")
    asked = [("log", "--steps", "--json"), ("status", "--json")]
    before = [run(*each).out for each in asked]
    ran = run("rewind", "plan-ready", "--into", str(other), "--yes")
    assert ran.code == 0, ran
    assert files(other) == {"a.txt": "one\ntwo\n"}
    assert [run(*each).out for each in asked] == before
    assert run("show", "@", "--json").data["ref"] == "session-1:3"
    assert "hardsave undo --timeline other" in ran.err
    assert run("undo", "--timeline", "other").code == 0
    assert files(other) == {"a.txt": "theirs\n"}
    assert [run(*each).out for each in asked] == before
    assert run("rewind", "plan-ready", "--yes").code == 0
    assert files(session_1) == {"a.txt": "one\ntwo\n"}
    refused = run("rewind", "plan-ready", "--into", str(other), "--tasks", "--yes")
    assert refused.code == 2
    assert "leave out --tasks" in refused.err


def test_on_this_timeline_what_another_session_did_is_left_alone(run: Run, session_1: Path) -> None:
    """Both of them: a rewind to a REF of the other, and the undo of a rewind of the other."""
    with hardsave.open() as vault:
        vault.timeline("session-2").save({}, workspace=".")
        vault.timeline("session-1").save_files(".")
    run("rewind", "session-1:2", "--state", "--yes", "--timeline", "session-1")
    refused = run("undo", "--this-timeline")
    assert refused.code == 2, "both are unfinished"
    assert "say which with --timeline" in refused.err
    mine = ("--this-timeline", "--timeline", "session-2")
    assert run("undo", *mine).code == 3
    assert run("undo", "--this-timeline", "--any-timeline").code == 2
    to_another = ("rewind", "session-1:1", "--files", "--dry-run", "--json")
    assert run(*to_another).data["timeline"] == "session-1", "the ref says which is meant"
    assert run(*to_another, "--this-timeline").code == 2
    found = run(*to_another, "--mine", *mine)
    assert found.code == 0, found
    assert found.data["timeline"] == "session-2"


def test_undo_of_nothing_is_not_found(run: Run, session_1: Path) -> None:
    assert run("undo").code == 3
    assert run("redo", "--any-timeline").code == 3


def test_undo_and_redo_say_what_became_of_files(run: Run, session_1: Path) -> None:
    run("rewind", "@~2", "--yes")
    (session_1 / "a.txt").write_text("theirs")
    run("save", "--timeline", "other")
    told = run("undo", "--timeline", "session-1").out
    assert "files: 1 created, 1 kept" in told
    assert "    + b.txt" in told
    assert "    ! a.txt  left as it is: timeline 'other' has changed it" in told
    assert files(session_1)["a.txt"] == "theirs"
    assert run("redo", "--timeline", "session-1", "--json").data["files"]["removed"] == ["b.txt"]
    run("rewind", "@~1", "--state", "--yes", "--timeline", "session-1")
    assert run("undo", "--timeline", "session-1", "--json").data["files"] is None


def test_undo_of_a_deleted_timeline_needs_its_name_or_any(run: Run, session_1: Path) -> None:
    ran = run("timelines", "delete", "--timeline", "session-1")
    assert "hardsave undo --timeline session-1" in ran.err
    assert run("log", "--all", "--json").data == []
    assert run("undo", "--any-timeline").code == 0
    assert len(run("log", "--all", "--json").data) == 3


def test_a_project_that_was_removed_as_a_whole_comes_back(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(session_1)
    shutil.rmtree(session_1)
    ran = run("log")
    assert ran.code == 3
    assert "was removed" in ran.err
    session_1.mkdir()
    monkeypatch.chdir(session_1)
    assert run("rewind", "session-1:3", "--yes").code == 0
    assert files(session_1) == before


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_what_could_not_be_brought_back_is_told_and_is_no_success(
    run: Run, session_1: Path
) -> None:
    (session_1 / "sub").mkdir()
    (session_1 / "sub" / "c.txt").write_text("c\n")
    run("save", "whole", "--timeline", "session-1")
    (session_1 / "sub" / "c.txt").unlink()
    (session_1 / "sub").chmod(0o500)
    ran = run("rewind", "whole", "--yes")
    (session_1 / "sub").chmod(0o700)
    assert ran.code == 1
    assert "1 path could not be brought back" in ran.err


def test_what_a_plan_keeps_is_no_failure() -> None:
    def changes(*kept: str) -> FileChanges:
        return FileChanges("/w", (), (), (), 0, tuple(Kept(path, "why") for path in kept))

    assert rewind_plan.failed(None, None) == []
    assert rewind_plan.failed(changes("a"), changes("a")) == []
    assert [each.path for each in rewind_plan.failed(changes("a"), changes("a", "b"))] == ["b"]
    assert [each.path for each in rewind_plan.failed(changes(), changes("b"))] == ["b"]


@pytest.mark.parametrize("ref", ["@", "@~1"])
def test_an_interrupted_rewind_says_what_the_head_is_by_now(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch, ref: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (session_1 / "a.txt").write_text("ruined\n")
    with monkeypatch.context() as patched:
        patched.setattr(execution, "prepared", interrupt)
        ran = run("rewind", ref, "--yes")
    assert ran.code == 130
    target = {"@": "session-1:3", "@~1": "session-1:2"}[ref]
    assert "what was there is saved as session-1:4, which @ means by now" in ran.err
    assert f"was to go to {target}" in " ".join(ran.err.split())
    assert run("rewind", target, "--yes").code == 0
    assert (session_1 / "a.txt").read_text() == "one\ntwo\n"


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_directory_with_a_secret(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / ".env").write_text("TOKEN=1")


def a_file_that_is_shut(path: Path) -> None:
    path.chmod(0)


@pytest.mark.parametrize(
    "become",
    [
        a_pipe,
        a_directory_with_a_secret,
        pytest.param(
            a_file_that_is_shut,
            marks=pytest.mark.skipif(os.getuid() == 0, reason="root may read everything"),
        ),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_rewind_that_did_not_bring_everything_back_has_failed_and_says_what_is_missing(
    run: Run, session_1: Path, become: Callable[[Path], None], alone: bool
) -> None:
    files = ["--files"] if alone else []
    run("rewind", "plan-ready", "--yes")
    become(session_1 / "a.txt")
    if not alone:
        (session_1 / "c.txt").write_text("to be removed")
    shown = run("rewind", "plan-ready", *files, "--dry-run", "--json")
    assert shown.code == 0
    assert not shown.data["files"]["is_complete"]
    ran = run("rewind", "plan-ready", *files, "--yes")
    assert ran.code == 1
    assert "1 path could not be brought back: a.txt" in ran.err
    assert "! a.txt  left as it is" in ran.out
    again = run("rewind", "plan-ready", *files, "--yes", "--json")
    assert again.code == 1
    assert [each["path"] for each in again.data["files"]["missing"]] == ["a.txt"]
    assert not again.data["files"]["is_complete"]


def test_a_directory_that_only_stays_is_nothing_that_is_missing(run: Run, session_1: Path) -> None:
    (session_1 / "new").mkdir()
    (session_1 / "new/.env").write_text("TOKEN=1")
    ran = run("rewind", "plan-ready", "--yes", "--json")
    assert ran.code == 0
    assert [each["path"] for each in ran.data["files"]["kept"]] == ["new"]
    assert ran.data["files"]["is_complete"]


def test_an_undo_that_did_not_bring_everything_back_has_failed(run: Run, session_1: Path) -> None:
    run("rewind", "@~2", "--yes")
    a_pipe(session_1 / "a.txt")
    ran = run("undo", "--json")
    assert ran.code == 1
    assert [each["path"] for each in ran.data["files"]["missing"]] == ["a.txt"]
    (session_1 / "a.txt").unlink()
    assert run("redo").code == 0


def test_what_was_not_saved_is_named_before_and_after(run: Run, project: Path) -> None:
    (project / ".gitignore").write_text(".env\n")
    (project / ".env").write_text("KEY=1")
    run("save")
    (project / ".env").unlink()
    (project / "a.txt").write_text("two\n")
    said = "! .env was not saved and does not come back"
    assert said in run("rewind", "@", "--dry-run").out
    ran = run("rewind", "@", "--yes")
    assert said in ran.out
    assert ran.code == 0
    data = run("rewind", "@", "--dry-run", "--json").data
    assert data["files"]["not_saved"] == [{"path": ".env", "reason": "ignored", "is_gone": True}]


def test_a_rewind_across_a_checkout_says_so(run: Run, project: Path) -> None:
    repository = built(project / "work")
    run("-C", str(repository.root), "save")
    repository.git("checkout", "-qf", "side")
    said = "! git was on main; it is on side now: --git brings it back"
    assert said in run("-C", str(repository.root), "rewind", "@", "--dry-run").out
    assert said in run("-C", str(repository.root), "rewind", "@", "--yes").out


def test_a_preview_names_what_calls_have_done_outside_since(project: Path, run: Run) -> None:
    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        line.save({"messages": talk("one")}, workspace=project)
        for number, outside in enumerate([("git push",), ("git push",), ("npm publish",), ()]):
            (project / "a.txt").write_text(f"{number}\n")
            step = hardsave.StepSummary(call="Bash", call_id=str(number), outside=outside)
            line.append({"messages": talk(f"{number}")}, workspace=project, step=step)
    shown = run("rewind", ":1", "--dry-run").out
    assert "! 3 calls since reached outside, still done: npm publish, git push ×2" in shown
    assert "! 1 call since reached outside, still done: npm publish" in (
        run("rewind", ":3", "--dry-run", "--files").out
    )
    assert "outside" not in run("rewind", ":4", "--dry-run").out
    assert "outside" not in run("rewind", ":1", "--dry-run", "--path", "a.txt").out


def test_a_fork_says_how_it_is_taken_back(run: Run, session_1: Path) -> None:
    """A bare undo is about this directory, and may take back a rewind here."""
    run("rewind", "plan-ready", "--yes")
    late = files(session_1)
    told = run("fork", "@~1", "../beside").err
    assert "take it back with: hardsave undo --timeline beside" in told
    assert "took back the fork on beside" in run("undo", "--timeline", "beside").out
    assert files(session_1) == late
