"""`save`, `fork`, `bisect`, `export`, `retain`, `purge`, `verify`, `doctor` and the like."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import hardsave
from hardsave.stores.local import database
from hardsave.vault import findings
from hardsave.workspace.watch import inotify
from tests.unit.cli.conftest import Run
from tests.unit.repositories import begin_repository


def test_the_first_save_makes_main_and_carries_nothing(run: Run, project: Path) -> None:
    ran = run("save", "first", "-m", "a beginning", "--json")
    assert ran.data["ref"] == "main:1"
    assert ran.data["kind"] == "manual"
    assert ran.data["description"] == "a beginning"
    assert run("show", "@", "--state", "--json").data is None


def test_a_save_carries_an_agents_state_and_status_forward(run: Run, session_1: Path) -> None:
    (session_1 / "a.txt").write_text("by hand\n")
    ran = run("save", "by-hand")
    assert ran.out.startswith("saved session-1:4 by-hand")
    data = run("show", "@", "--json").data
    assert data["message_count"] == 3
    assert data["status"] == "running"
    assert data["files"]["changed"] == ["a.txt"]


def test_a_save_from_a_folder_further_down_saves_the_project(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_repository(session_1)
    inner = session_1 / "src"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert run("save", "--json").data["workspace"] == str(session_1)


def test_secrets_come_along_if_they_are_asked_for(run: Run, project: Path) -> None:
    (project / ".env").write_text("KEY=1\n")
    assert [each["path"] for each in run("save", "--json").data["not_captured"]] == [".env"]
    assert run("save", "--include", ".env", "--json").data["not_captured"] == []


def test_a_fork_gets_its_own_directory_and_timeline(run: Run, session_1: Path) -> None:
    ran = run("fork", "plan-ready", "../try-2")
    assert ran.code == 0, ran
    assert (session_1.parent / "try-2" / "a.txt").read_text() == "one\ntwo\n"
    assert "HARDSAVE_STORE=" not in ran.err, "the directory knows its store"
    assert run("log", "--timeline", "try-2", "--json").code == 0
    assert run("fork", "plan-ready", "../try-2").code == 4


def test_bisect_finds_the_step_and_keeps_its_answer_apart_from_what_is_printed(
    session_1: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from hardsave.cli.main import main

    program = ["sh", "-c", "echo noise; test ! -f b.txt"]
    assert main(["bisect", "session-1:1", "@", "--json", "--", *program]) == 0
    out, err = capfd.readouterr()
    assert '"ref": "session-1:3"' in out.partition("last_good")[0]
    assert "noise" not in out
    assert "noise" in err


def test_what_was_exported_can_be_imported_elsewhere_and_taken_back(
    run: Run, session_1: Path, tmp_path: Path
) -> None:
    other = str(tmp_path / "other.db")
    assert (
        run("store", "export", "out.hardsave", "--timeline", "session-1", "--json").data[
            "checkpoints"
        ]
        == 3
    )
    assert (
        run("store", "import", "out.hardsave", "--store", other, "--json").data["checkpoints"] == 3
    )
    assert len(run("log", "--all", "--store", other, "--json").data) == 3
    assert run("store", "import", "out.hardsave", "--store", other).out.startswith(
        "0 new checkpoints, 3"
    )
    assert run("undo", "--any-timeline", "--store", other).code == 0
    assert run("log", "--all", "--store", other, "--json").data == []
    assert run("store", "import", "nothing.hardsave").code == 2


def test_an_import_says_what_was_deleted_here_and_how_it_comes_back(
    run: Run, session_1: Path
) -> None:
    run("store", "export", "out.hardsave", "--timeline", "session-1")
    run("timelines", "delete", "--timeline", "session-1")
    again = run("store", "import", "out.hardsave")
    assert (
        again.out
        == "0 new checkpoints, 3 were here already; 3 of them are deleted here and stay so\n"
    )
    assert "'hardsave undo' takes it back" in again.err


def test_retain_shows_then_lets_go(run: Run, session_1: Path) -> None:
    plan = run("store", "retain", "--keep", "1", "--dry-run", "--json").data
    assert [each["ref"] for each in plan["drops"]] == ["session-1:1"]
    assert len(run("log", "--json").data) == 3
    assert run("store", "retain", "--keep", "1", "--yes", "--json").data["dropped"] == 1
    assert [each["seq"] for each in run("log", "--json").data] == [3, 2]


def test_purge_of_a_text_leaves_no_trace(run: Run, session_1: Path, tmp_path: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("session-1").append({"key": "sk-secret-0123"})
    assert (
        run("store", "purge", "--text", "sk-secret-0123", "--yes", "--json").data["rewritten"] == 1
    )
    stored = [path.read_bytes() for path in tmp_path.glob("data/**/*") if path.is_file()]
    assert stored
    assert not any(b"sk-secret-0123" in content for content in stored)
    assert run("store", "purge", "--yes").code == 2
    assert run("store", "purge", "@", "--whole", "--timeline", "session-1", "--yes").code == 2


def test_damage_is_exit_5_with_the_next_step(run: Run, session_1: Path, tmp_path: Path) -> None:
    (store,) = tmp_path.glob("data/**/store.db")
    for path in store.parent.glob("store.db-backup*"):
        path.unlink()
    content = bytearray(store.read_bytes())
    for at in range(4096, len(content), 4096):
        content[at + 2000 : at + 2100] = os.urandom(100)
    store.write_bytes(content)
    ran = run("store", "verify")
    assert ran.code == 5, ran
    ran = run("log", "--json")
    assert ran.code == 5
    assert ran.data["error"]["kind"] == "damaged"


def test_doctor_proves_that_it_works_and_leaves_nothing_behind(
    run: Run, session_1: Path, tmp_path: Path
) -> None:
    def everything() -> set[str]:
        return {str(path) for path in tmp_path.rglob("*") if "-lock" not in path.name}

    run("status")
    before = everything()
    ran = run("doctor", "--json")
    assert ran.code == 0, ran
    assert {each["level"] for each in ran.data} == {"ok"}
    assert {path for path in everything() - before if "hardsave-doctor-" in path} == set()


def test_a_fork_into_the_workspace_is_told_of(run: Run, session_1: Path) -> None:
    assert "it lies in this workspace" in run("fork", "plan-ready", "try-3").err
    assert "it lies in this workspace" not in run("fork", "plan-ready", "../try-4").err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["bisect", "@", "@", "--", "true"], "cannot be good and bad"),
        (["store", "import", "a.txt"], "name a file that 'hardsave store export' made"),
        (["completion"], "Choose from: bash, zsh, fish (see"),
    ],
)
def test_what_cannot_be_done_is_told_with_what_can(
    run: Run, session_1: Path, command: list[str], message: str
) -> None:
    (session_1 / "a.txt").write_text("no export")
    ran = run(*command)
    assert ran.code == 2
    assert message in ran.err


def test_doctor_tells_of_a_place_where_no_store_can_be_made(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/proc")
    ran = run("doctor", "--json")
    assert ran.code == 1
    found = {each["what"]: each for each in ran.data}["save and restore"]
    assert (found["level"], "/proc/" in found["message"]) == ("failure", True)
    ran = run("save")
    assert ran.code == 6
    assert "or name a store elsewhere with --store or HARDSAVE_STORE" in ran.err


def test_doctor_warns_of_a_store_that_keeps_nothing(run: Run, project: Path) -> None:
    found = {each["what"]: each for each in run("doctor", "--store", "memory://", "--json").data}
    assert found["store"]["level"] == "warning"
    assert "nothing that stays" in found["store"]["message"]


def test_doctor_writes_nothing_into_the_repository_that_a_store_lies_in(
    run: Run, project: Path
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    run("save", "--store", "here.db")
    excluded = (project / ".git/info/exclude").read_text()
    run("doctor", "--store", "here.db")
    assert (project / ".git/info/exclude").read_text() == excluded


def test_doctor_warns_of_a_store_that_an_agent_can_reach(run: Run, project: Path) -> None:
    run("save", "--store", "here.db")
    found = {each["what"]: each for each in run("doctor", "--store", "here.db", "--json").data}
    assert found["store"]["level"] == "warning"
    assert "lies in the workspace" in found["store"]["message"]


@pytest.mark.parametrize(
    ("free", "level"), [(50 << 20, "failure"), (500 << 20, "warning"), (50 << 30, "ok")]
)
def test_a_full_disk_is_told(free: int, level: str) -> None:
    assert findings.disk("disk", free).level == level


@pytest.mark.parametrize(("free", "why"), [(0, "no space left for"), (1 << 30, "the disk fails")])
def test_an_error_of_a_full_disk_says_that_it_is_full(
    free: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "free_bytes", lambda path: free)
    told = str(database.translated(apsw.IOError("disk I/O error"), str(tmp_path / "a.db")))
    assert told.startswith(why)
    assert "(disk I/O error)" in told


def test_what_needs_room_itself_is_no_remedy_for_a_full_disk() -> None:
    assert findings.disk("disk", 50 << 20).remedy.endswith(
        "hardsave store retain, then hardsave store gc"
    )
    remedy = findings.disk("disk", 4096, [("store.db-search", 5 << 20)]).remedy
    assert "or delete what is not needed any more: store.db-search (5.0 MiB); only then" in remedy


@pytest.mark.parametrize(
    ("copied", "last", "level"), [(None, 3, "warning"), (2, 3, "warning"), (3, 3, "ok")]
)
def test_a_backup_that_is_behind_is_told(copied: int | None, last: int, level: str) -> None:
    assert findings.backup("backup", copied, last).level == level


def test_a_backup_that_is_gone_or_damaged_is_told_and_the_remedy_helps(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "a.db"

    def backup() -> dict[str, str]:
        return next(each for each in run("doctor", "--json").data if each["what"] == "backup")

    monkeypatch.setenv("HARDSAVE_STORE", str(store))
    run("save")
    copy = Path(f"{store}-backup")
    copy.write_bytes(b"garbage")
    assert "damaged" in backup()["message"]
    assert backup()["remedy"].startswith("hardsave save")
    run("save", "again")
    assert backup()["level"] == "ok"
    copy.unlink()
    assert backup()["message"] == "there is none yet"
    assert backup()["remedy"].startswith("hardsave save")
    run("save", "once-more")
    assert backup()["level"] == "ok"


def test_a_store_that_only_a_repair_may_help_is_told_with_that(
    run: Run, project: Path, tmp_path: Path
) -> None:
    store = tmp_path / "a.db"
    run("save", "--store", str(store))
    for path in (store, Path(f"{store}-backup")):
        path.write_bytes(b"garbage" * 1000)
    ran = run("doctor", "--store", str(store), "--json")
    found = {each["what"]: each for each in ran.data}["store"]
    assert (ran.code, found["level"]) == (1, "failure")
    assert "hardsave.repair()" not in found["message"]
    assert " repair'" in found["message"]
    assert found["remedy"] == "do as it says, then look again"


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_doctor_finds_that_others_watch_all_that_may_be_watched(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*given: object) -> int:
        raise OSError(number, os.strerror(number))

    def watching() -> dict[str, str]:
        return next(each for each in run("doctor", "--json").data if each["what"] == "watching")

    assert watching()["level"] == "ok"
    name = "add" if number == errno.ENOSPC else "__init__"
    monkeypatch.setattr(inotify.Inotify, name, refuse)
    assert watching()["level"] == "warning"
    assert "but not now" in watching()["message"]
    assert "inotify" in watching()["message"]


@pytest.mark.parametrize(("kind", "level"), [("ext4", "ok"), ("nfs4", "warning"), ("", "ok")])
def test_a_file_system_that_others_change_is_told(kind: str, level: str) -> None:
    assert findings.file_system("file system", kind).level == level


def test_too_many_directories_to_watch_are_told_with_the_way_out() -> None:
    assert findings.watches("watching", 100, 8_192).level == "ok"
    found = findings.watches("watching", 7_000, 8_192)
    assert found.level == "warning"
    assert "sysctl" in found.remedy


def test_doctor_ends_with_1_if_restoring_does_not_work(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.cli.doctor import probe

    monkeypatch.setattr(probe, "_difference", lambda before, after: "these differ: a.txt")
    ran = run("doctor")
    assert ran.code == 1
    assert "✗  save and restore" in ran.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell: str, run: Run) -> None:
    assert "_HARDSAVE_COMPLETE" in run("completion", shell).out


def test_purge_says_where_a_text_still_is_and_that_it_is_nowhere(run: Run, project: Path) -> None:
    run("save", "--timeline", "about sesame")
    ran = run("store", "purge", "--text", "sesame", "--yes")
    assert ran.code == 1
    assert "still there: the name of timeline 'about sesame'" in ran.err
    assert run("store", "purge", "--text", "sesame", "--yes", "--json").data["left"] != []
    ran = run("store", "purge", "--text", "nowhere", "--yes")
    assert (ran.code, ran.out.strip()) == (0, "it was in nothing that is saved")


@pytest.mark.parametrize(
    "what",
    [
        ["timelines", "clear", "--timeline", "session-1"],
        ["timelines", "delete", "--timeline", "session-1"],
    ],
)
def test_what_was_deleted_is_not_said_to_have_never_been_saved(
    run: Run, session_1: Path, what: list[str]
) -> None:
    run(*what)
    said = "; bring it back with: hardsave undo --timeline session-1"
    by_ref = [["show", "@"], ["show", "plan-ready"], ["rewind", "session-1:2", "--yes"]]
    for command in (["log"], ["log", "-t", "session-1"], ["status"], ["diff"], *by_ref):
        ran = run(*command)
        assert said in ran.err, ran
        assert "nothing was saved" not in ran.err
    assert run("undo", "--timeline", "session-1").code == 0
    assert len(run("log", "--json").data) == 3
    assert said not in run("log", "--timeline", "other").err


def test_a_timeline_whose_only_checkpoint_was_deleted_says_so(run: Run, session_1: Path) -> None:
    run("save", "--timeline", "other", "--status", "done")
    run("delete", "other:1")
    assert "a checkpoint of 'other' was deleted" in run("log", "--timeline", "other").err
    ran = run("show", "other:1", "--timeline", "session-1")
    assert ran.err.strip().endswith("bring it back with: hardsave undo --timeline other")
    assert "which is not there now" in run("undo", "--list").out
    assert run("undo", "--timeline", "other").code == 0
    assert "was deleted" not in run("log", "--timeline", "nothing-here").err


def test_a_timeline_that_is_not_there_is_not_said_to_be_cleared(run: Run, session_1: Path) -> None:
    ran = run("timelines", "clear", "--timeline", "sesion-1")
    assert (ran.code, "there is no timeline 'sesion-1'" in ran.err) == (3, True)
    assert run("timelines", "clear", "--timeline", "session-1", "--json").data["checkpoints"] == 3


def test_an_export_to_a_dash_is_not_a_file_of_that_name_by_chance(
    run: Run, session_1: Path
) -> None:
    ran = run("store", "export", "-")
    assert (ran.code, "not a stream" in ran.err) == (2, True)
    assert not Path("-").exists()
    assert run("store", "export", "./-").code == 0


def test_a_rule_that_hides_most_files_is_said_by_save_status_and_log(
    run: Run, project: Path
) -> None:
    for number in range(9):
        (project / f"{number}.py").write_text("one\n")
    run("save")
    (project / ".gitignore").write_text("*\n")
    said = "! a new rule in .gitignore:1 ('*') leaves out 10 of 10 files"
    for command in ("status", "save", "status", "log"):
        assert said in " ".join(run(command).out.split()), command
    (project / ".gitignore").rename(project / "away")
    assert "a new rule" not in run("status").out
    (project / "away").rename(project / ".gitignore")
    (project / "0.py").write_text("ruined\n")
    (project / "1.py").unlink()
    ran = run("rewind", "main:1", "--yes")
    assert ran.code == 0, ran
    assert (project / "0.py").read_text() == (project / "1.py").read_text() == "one\n"


def test_stats_say_how_much_of_it_is_the_backup(run: Run) -> None:
    run("save")
    found = run("store", "stats", "--json").data
    assert 0 < found["backup_bytes"] < found["disk_bytes"]
    assert " are the backup" in run("store", "stats").out
