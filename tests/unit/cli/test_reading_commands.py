"""`log`, `show`, `diff`, `status`, `search`, `timelines`: what people are told."""

import os
import shlex
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hardsave
from hardsave.cli.commands import log
from hardsave.daemon import save
from hardsave.errors import Misuse
from hardsave.vault.search import search as vault_search
from tests.unit.cli.conftest import Run, talk
from tests.unit.repositories import begin_repository


def test_log_shows_branches_names_counts_and_the_head(run: Run, session_1: Path) -> None:
    run("rewind", "plan-ready", "--yes")
    with hardsave.open() as vault:
        vault.timeline("session-1").append({"messages": talk("another way")}, workspace=".")
    assert [line.split()[0] for line in run("log").out.splitlines()] == ["@", "×", "●", "○"]
    lines = run("log", "--steps").out.splitlines()
    assert [line.split()[0] for line in lines] == ["@", "│", "├─╯", "●", "○"]
    assert "session-1:4" in lines[0]
    assert lines[0].endswith("another way")
    assert lines[1].startswith("│ ×  session-1:3  ")
    assert "  +1" in lines[1]
    assert "plan-ready a plan" in lines[3]
    assert "1 file" in lines[4]


def test_log_of_a_fork_goes_on_into_what_it_was_forked_from(run: Run, session_1: Path) -> None:
    assert run("fork", "plan-ready", "--name", "try-2").code == 0
    lines = run("log", "--timeline", "try-2").out.splitlines()
    assert lines[0].startswith("@  session-1:2 ← try-2")
    assert len(lines) == 2


def test_log_narrows_and_says_if_nothing_is_left(run: Run, session_1: Path) -> None:
    assert [each["seq"] for each in run("log", "--name", "plan-ready", "--json").data] == [2]
    assert [each["seq"] for each in run("log", "-n", "1", "--json").data] == [3]
    ran = run("log", "--status", "nonsense")
    assert ran.code == 0
    assert ran.out == ""
    assert "there is nothing like that" in ran.err
    ran = run("log", "--timeline", "sesion-1")
    assert ran.code == 3
    assert "there is no timeline 'sesion-1'; 'hardsave timelines' lists them" in ran.err
    ran = run("log", "session-1")
    assert ran.code == 2
    assert "(session-1); a timeline is named with --timeline" in ran.err
    assert len(run("log", "--since", "1h", "--json").data) == 3
    assert run("log", "--until", "1h", "--json").data == []


def test_show_lists_the_paths_of_a_first_checkpoint_if_all_are_asked_for(
    run: Run, project: Path
) -> None:
    for name in ("b.txt", "sub/a.txt"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("one\n")
    run("save")
    assert "b.txt" not in run("show", "@").out
    lines = run("show", "@", "--full").out.splitlines()
    assert lines[-2:] == ["  + b.txt", "  + sub/a.txt"]
    added = run("show", "@", "--full", "--json").data["files"]["added"]
    assert added == ["a.txt", "b.txt", "sub/a.txt"]


def test_log_counts_what_was_not_captured(run: Run, project: Path) -> None:
    (project / ".env").write_text("KEY=1\n")
    assert "! .env" in run("save").out
    assert "!1" in run("log").out


def test_log_says_whose_result_came_last(run: Run, project: Path) -> None:
    called = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "what stands in a"}
    with hardsave.open() as vault:
        said = [{"role": "assistant", "content": [{"type": "text", "text": "I look"}, called]}]
        vault.timeline("main").save({"messages": said})
        vault.timeline("main").append({"messages": [{"role": "user", "content": [result]}]})
    newest, first = run("log").out.splitlines()
    assert newest.endswith("after Read")
    assert first.endswith("I look")


def test_after_a_rewind_nothing_has_changed_since_the_head(run: Run, session_1: Path) -> None:
    run("rewind", "plan-ready", "--yes")
    out = run("status").out
    assert "nothing has changed since session-1:2" in out
    (session_1 / "new").touch()
    out = run("status").out
    assert "1 file changed since session-1:2" in out
    assert "+ new" in out


def test_what_an_agent_said_cannot_drive_the_terminal(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("main").save({"messages": talk("\x1b]52;c;AAAA\x07 [red]x[/red]")})
    for arguments in (["log"], ["show", "@"], ["show", "@", "--full"], ["search", "red"]):
        out = run(*arguments).out
        assert "\x1b" not in out
        assert "[red]x[/red]" in out


def test_show_has_the_last_messages_and_changed_lines(run: Run, session_1: Path) -> None:
    out = run("show", "plan-ready").out
    assert "session-1:2" in out
    assert "plan-ready" in out
    assert "assistant  a plan" in out
    assert "~ a.txt  +1" in out
    assert "the last 1" in run("show", "@", "-n", "1").out


def test_show_says_that_files_are_newer_than_what_was_said(run: Run, session_1: Path) -> None:
    said = run("show", "@", "--json").data
    assert said["state_of"] == said["id"]
    assert "the files are newer" not in run("show", "@").out
    for content in ("in the middle", "still"):
        (session_1 / "midst").write_text(content)
        with hardsave.open() as vault:
            vault.timeline("session-1").save_files(".")
    assert "as in session-1:3; the files are newer" in run("show", "@").out
    assert run("show", "@", "--json").data["state_of"] == said["id"]
    told = "what was said goes back to session-1:3; the files are newer"
    assert told in run("rewind", "@~1", "--yes").err
    assert told not in run("rewind", said["id"], "--yes").err
    (session_1 / "midst").write_text("by hand")
    run("save")
    by_hand = run("show", "@", "--json").data["id"]
    run("rewind", said["id"], "--yes")
    assert "goes back to" not in run("rewind", by_hand, "--yes").err


def test_show_writes_a_file_byte_for_byte(
    session_1: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    from hardsave.cli.main import main

    content = bytes(range(256))
    (session_1 / "data.bin").write_bytes(content)
    main(["save", "binary"])
    capsysbinary.readouterr()
    assert main(["show", "binary", "--file", "data.bin"]) == 0
    assert capsysbinary.readouterr().out == content
    assert main(["show", "binary", "--file", "nothing"]) == 3
    assert main(["show", "binary", "--file", "data.bin", "--json"]) == 2


def test_below_a_directory_that_was_saved_the_way_there_is_told(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (session_1 / "below").mkdir()
    monkeypatch.chdir(session_1 / "below")
    hint = f"but {session_1} was; see: hardsave -C {session_1} log"
    for command in (["log"], ["status"], ["timelines"]):
        ran = run(*command)
        assert (ran.code, hint in ran.err) == (0, True), ran
    for command in (["show", "@"], ["undo"], ["redo"]):
        ran = run(*command)
        assert (ran.code, hint in ran.err) == (3, True), ran
    assert run("save").code == 0  # a project of its own
    assert hint not in run("log").err


def test_a_file_is_named_as_it_is_seen_from_here_or_from_the_root(
    session_1: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardsave.cli.main import main

    begin_repository(session_1)  # so that the project is the same one below
    (session_1 / "below").mkdir()
    (session_1 / "top.txt").write_text("at the top")
    (session_1 / "below" / "a.txt").write_text("below")
    main(["save", "two"])
    monkeypatch.chdir(session_1 / "below")
    seen = {"../top.txt": b"at the top", "top.txt": b"at the top", "a.txt": b"below"}
    for path, content in seen.items():
        capsysbinary.readouterr()
        assert main(["show", "two", "--file", path]) == 0
        assert capsysbinary.readouterr().out == content
    assert main(["show", "two", "--file", "../../outside"]) == 3


def test_diff_shows_messages_values_and_lines(run: Run, session_1: Path) -> None:
    out = run("diff", "session-1:1").out
    assert "~ turn: 1 → 3" in out
    assert "+ assistant  a plan" in out
    assert "+two" in out.splitlines()
    assert "+++ b/b.txt" in out
    assert "+++" not in run("diff", "session-1:1", "--stat").out
    assert "turn" not in run("diff", "session-1:1", "--files").out
    assert "+two" not in run("diff", "session-1:1", "--state").out
    data = run("diff", "session-1:1", "session-1:2", "--json").data
    assert data["files"] == {"added": [], "removed": [], "changed": ["a.txt"]}
    assert "+two" in data["patches"]["a.txt"]
    assert "nothing differs" in run("diff", "@", "@").out


def test_status_lists_what_has_changed_and_saves_nothing(run: Run, session_1: Path) -> None:
    assert "nothing has changed since session-1:3" in run("status").out
    (session_1 / "a.txt").unlink()
    (session_1 / "c.txt").write_text("x")
    ran = run("status")
    assert "  - a.txt" in ran.out
    assert "  + c.txt" in ran.out
    assert "hardsave save" in ran.err
    assert run("status", "--json").data["files"]["removed"] == ["a.txt"]
    assert len(run("log", "--json").data) == 3


def test_looking_where_nothing_was_saved_makes_no_store(
    run: Run, project: Path, tmp_path: Path
) -> None:
    for arguments in (
        ["log"],
        ["status"],
        ["timelines"],
        ["store", "stats"],
        ["undo", "--list"],
        ["search", "x"],
    ):
        assert run(*arguments).code == 0
    assert "1 file to save" in run("status").out
    assert not (tmp_path / "data").exists()


def test_a_store_of_which_only_the_backup_is_left_is_opened(
    run: Run, session_1: Path, tmp_path: Path
) -> None:
    (store,) = tmp_path.glob("data/**/store.db")
    store.unlink()
    assert len(run("log", "--json").data) == 3


def test_two_unfinished_timelines_have_to_be_told_apart(run: Run, session_1: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("session-2").save({}, workspace=".")
        vault.timeline("session-1").save_files(".")
        vault.timeline("session-2").save_files(".")
    for command in ("save", "rewind @"):
        ran = run(*command.split())
        assert ran.code == 2, command
        assert "'session-2', 'session-1'; say which" in ran.err
    for command in ("status", "diff", "show @"):
        ran = run(*command.split())
        assert ran.code == 0, command
        assert "this is about 'session-2'" in ran.err, "the last that saved"
    assert "unfinished" not in run("log", "--timeline", "session-2").err
    assert run("log", "--timeline", "session-2").code == 0
    assert run("log", "--timeline", "session-2").code == 0
    assert run("show", "session-1:2").code == 0  # needs no timeline
    assert len(run("log", "--all", "--json").data) == 6


def test_doctor_says_which_of_two_unfinished_timelines_to_save(run: Run, session_1: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("the second").save({}, workspace=".")
        vault.timeline("session-1").save_files(".")
        vault.timeline("the second").save_files(".")
    save.work(b"nonsense", os.environ)
    found = {each["what"]: each for each in run("doctor", "--json").data}["missed saves"]
    command, _, _ = found["remedy"].partition(";")
    assert command == "hardsave save --timeline 'the second'"
    assert run(*shlex.split(command)[1:]).code == 0
    found = {each["what"]: each for each in run("doctor", "--json").data}["missed saves"]
    assert found["level"] == "ok"


def test_the_timeline_may_come_from_the_environment(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDSAVE_TIMELINE", "other")
    assert run("log", "--json").data == []
    assert len(run("log", "--timeline", "session-1", "--json").data) == 3
    assert len(run("--timeline", "session-1", "log", "--json").data) == 3
    assert run("--timeline", "other", "log", "--timeline", "session-1", "--json").data


def test_search_finds_and_says_where(run: Run, session_1: Path) -> None:
    ran = run("search", "plan", "--json")
    assert {hit["path"] for hit in ran.data["hits"]} == {"messages[1].content", ""}
    assert "session-1:2" in run("search", '"a plan"').out
    ran = run("search", "nonsense")
    assert (ran.code, ran.out) == (0, "")
    assert run("search", "plan", "--timeline", "other", "--json").code == 3


def test_a_search_says_how_far_it_reaches_and_how_to_reach_all(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_search, "SEARCH_SECONDS", 0.0)
    ran = run("search", "plan")
    assert "2 checkpoints not searched yet" in ran.err
    assert "--wait" in ran.err
    data = run("search", "plan", "--json").data
    assert (data["unsearched"], data["reaches"] is None) == (1, False)
    data = run("search", "plan", "--wait", "--json").data
    assert (data["unsearched"], data["reaches"]) == (0, None)
    assert "searched yet" not in run("search", "plan").err


def test_a_search_finds_files_by_their_names_and_says_what_became_of_them(
    run: Run, session_1: Path
) -> None:
    (session_1 / "a.txt").unlink()
    run("save", "--timeline", "session-1")
    lines = run("search", "a.txt").out.splitlines()
    assert lines[0] == "session-1"
    assert lines[1].split() == ["session-1:1", "…", ":4", "now", "-", "file", "a.txt"]
    (hit,) = run("search", "a.txt", "--json").data["hits"]
    assert (hit["field"], hit["path"], hit["change"]) == ("file", "a.txt", "removed")
    assert (hit["checkpoint"]["seq"], hit["newest"]["seq"]) == (1, 4)


def test_a_search_is_about_the_sessions_of_this_directory_unless_all_is_asked_for(
    run: Run, session_1: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    with hardsave.open() as vault:
        vault.timeline("here").save({"messages": talk("a plan, too")}, workspace=".")
        vault.timeline("there").save(
            {"messages": talk("their plan")}, workspace=tmp_path / "elsewhere"
        )

    def found(*given: str) -> set[str]:
        return {hit["timeline"] for hit in run("search", "plan", *given, "--json").data["hits"]}

    assert found() == {"session-1", "here"}
    assert found("--all") == {"session-1", "here", "there"}
    assert found("--timeline", "there") == {"there"}
    assert run("search", "their").out == ""
    assert "--all searches other directories" in run("search", "their").err
    assert run("search", "plan", "--all", "--timeline", "here").code == 2


def test_timelines_lists_them(run: Run, session_1: Path) -> None:
    ran = run("timelines")
    assert ran.out.split()[:3] == ["session-1", "3", "checkpoints"]
    assert ran.out.split()[-1] == "running"
    assert run("timelines", "--json").data[0]["head"]["seq"] == 3


def test_a_directory_stays_the_same_project_while_a_sandbox_is_around_it(
    run: Run, session_1: Path
) -> None:
    (session_1.parent / ".git").mkdir()
    assert "session-1:3" in run("log", "--steps").out
    assert "nothing has changed" in run("diff").out


def test_a_store_that_cannot_be_looked_for_is_not_taken_for_missing(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listdir(path: object = ".") -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", listdir)
    ran = run("log")
    assert ran.code != 0
    assert "cannot be told: [Errno 13] Permission denied" in ran.err


def test_a_diff_of_nothing_is_what_is_not_saved_yet(run: Run, session_1: Path) -> None:
    assert "nothing has changed" in run("diff").out
    (session_1 / "a.txt").write_text("one\nTWO\n")
    (session_1 / "b.txt").unlink()
    (session_1 / "c.bin").write_bytes(b"\0")
    (session_1 / "d").symlink_to("/etc/passwd")
    ran = run("diff")
    assert ran.code == 0
    assert "session-1:3 → now" in ran.out
    assert "-two\n+TWO\n" in ran.out
    assert "--- a/b.txt\n+++ /dev/null" in ran.out
    assert "c.bin: not a text" in ran.out
    assert "+/etc/passwd\n" in ran.out, "where a link leads, not what is there"
    assert run("diff", "--stat").out.splitlines()[1:] == [
        "~ a.txt | 2 +-",
        "- b.txt | 1 -",
        "+ c.bin | Bin 0 → 1 bytes",
        "+ d     | 1 +",
        "4 files changed, 2 insertions(+), 2 deletions(-)",
    ]
    data = run("diff", "--json").data
    assert data["new"] is None
    assert data["files"]["changed"] == ["a.txt"]
    assert "+TWO" in data["patches"]["a.txt"]
    assert run("diff", "--state").code == 2
    assert run("diff", "@~1", "--state", "--files").code == 2
    assert run("log", "--json").data[0]["seq"] == 3, "nothing was saved for this"


def test_a_diff_of_a_checkpoint_with_now_is_what_changed_since_then(
    run: Run, session_1: Path
) -> None:
    (session_1 / "a.txt").write_text("now\n")
    out = run("diff", "session-1:1", "now").out
    assert "session-1:1 → now" in out
    assert "-one\n+now\n" in out
    assert "+++ b/b.txt" in out
    assert "turn" not in out, "the disk has files alone"
    back = run("diff", "now", "session-1:1").out
    assert "now → session-1:1" in back
    assert "-now\n+one\n" in back
    assert "+++ /dev/null" in back
    assert run("diff", "now").out == run("diff").out
    data = run("diff", "now", "session-1:1", "--json").data
    assert (data["old"], data["new"]["seq"]) == (None, 1)
    assert data["files"]["removed"] == ["b.txt"]
    assert run("diff", "now", "now").code == 2
    assert run("diff", "@~1", "now", "--state").code == 2


def test_a_diff_without_a_second_checkpoint_says_that_the_other_is_the_head(
    run: Run, session_1: Path
) -> None:
    assert run("diff", "@~1").out.startswith("session-1:2 → session-1:3, the head\n")
    assert "the head" not in run("diff", "@~1", "@").out


def test_a_diff_may_be_of_some_paths_as_they_are_seen_from_here(
    run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_repository(session_1)  # so that the project is the same one below
    (session_1 / "src").mkdir()
    for name in ("a.txt", "src/b.py", "src/c.py", "srcs"):
        (session_1 / name).write_text("new\n")

    def paths(*given: str) -> list[str]:
        return sorted(run("diff", *given, "--json").data["patches"])

    assert paths("@", "now", "--path", "src") == ["src/b.py", "src/c.py"]
    monkeypatch.chdir(session_1 / "src")
    assert paths("--path", "c.py", "--path", "../a.txt") == ["a.txt", "src/c.py"]
    assert paths("session-1:1", "@", "--path", "../b.txt") == ["b.txt"]
    assert "turn" not in run("diff", "session-1:1", "@", "--path", "../b.txt").out
    ran = run("diff", "--path", "d.py")
    assert (ran.code, "'src/d.py' is on neither side" in ran.err) == (3, True)
    assert run("diff", "@~1", "--path", "c.py", "--state").code == 2


def test_a_stat_counts_lines_and_messages_and_names_keys(run: Run, session_1: Path) -> None:
    out = run("diff", "session-1:1", "--stat").out.splitlines()[1:]
    assert out == [
        "messages 1 → 3  +2",
        "state ~turn",
        "~ a.txt | 1 +",
        "+ b.txt | 1 +",
        "2 files changed, 2 insertions(+)",
    ]
    data = run("diff", "session-1:1", "--stat", "--json").data
    assert (data["insertions"], data["deletions"]) == (2, 0)
    assert [(each["path"], each["added"]) for each in data["stat"]] == [("a.txt", 1), ("b.txt", 1)]


def test_many_messages_are_shown_by_their_first_and_last_and_all_if_asked_for(
    run: Run, project: Path
) -> None:
    with hardsave.open() as vault:
        line = vault.timeline("main")
        line.save({"messages": talk("hello")})
        line.append({"messages": talk(*(f"answer {number}" for number in range(100)))})
    out = run("diff", "main:1").out
    assert "messages 1 → 101  +100" in out
    assert "88 more messages; --state shows all" in out
    assert len(out.splitlines()) < 20
    assert "answer 99" in out
    assert run("diff", "main:1", "--state").out.count("answer") == 100


def test_a_changed_message_is_shown_as_it_was_and_as_it_is(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        line = vault.timeline("main")
        line.save({"messages": talk("the same", "as it was")})
        line.save({"messages": talk("the same", "as it is")})
    out = run("diff", "main:1").out
    assert "- assistant  as it was\n+ assistant  as it is\n" in out
    assert "the same" not in out


def test_a_diff_says_which_side_has_no_files(run: Run, session_1: Path) -> None:
    with hardsave.open() as vault:
        vault.timeline("plain").save({})
    assert "plain:1 was saved without files" in run("diff", "plain:1", "session-1:1").out
    ran = run("diff", "plain:1", "now")
    assert (ran.code, "was saved without files" in ran.err) == (3, True)


def test_a_diff_where_nothing_was_saved_says_so(run: Run) -> None:
    ran = run("diff")
    assert (ran.code, "nothing was saved here yet" in ran.err) == (3, True)


def test_a_log_names_the_files_where_nothing_else_is_said(run: Run, project: Path) -> None:
    run("save")
    for name in ("b.txt", "c.txt"):
        (project / name).write_text("x")
    run("save")
    (project / "b.txt").unlink()
    run("save", "-m", "said")
    newest, middle, _ = run("log").out.splitlines()
    assert middle.endswith("b.txt, c.txt")
    assert newest.endswith("said")


def test_a_long_name_is_never_printed_and_numbers_are_refs(run: Run, project: Path) -> None:
    name = "claude-0b6e1f2a-5c1d-4e8f-9a3b-2f6e8d7c1a90"
    for turn in range(2):
        (project / "a.txt").write_text(f"turn {turn}\n")
        run("save", "--timeline", name)
    newest, oldest = run("log").out.splitlines()
    assert [line.split()[1] for line in (newest, oldest)] == [":2", ":1"]
    assert "-turn 0\n+turn 1\n" in run("diff", ":1", ":2").out
    assert run("rewind", ":1", "--yes").code == 0
    assert (project / "a.txt").read_text() == "turn 0\n"
    run("save", "--timeline", "other")
    assert run("show", ":2").code == 3, "of the timeline that saved last"
    assert [line.split()[1] for line in run("log", "-t", name).out.splitlines()] == [
        "claude-0b6e1f2a:2",
        "claude-0b6e1f2a:1",
    ]
    assert run("show", ":2", "--timeline", name).code == 0
    assert run("show", "claude:2").code == 0


def test_without_a_timeline_a_number_alone_means_nothing(session_1: Path) -> None:
    with hardsave.open() as vault:
        assert vault.timeline("session-1").get(":2").name == "plan-ready"
        with pytest.raises(Misuse, match="TIMELINE:2"):
            vault.get(":2")


def test_the_head_is_shown_also_if_it_is_older_than_all_the_others(
    run: Run, session_1: Path
) -> None:
    """After a rewind far back, the log shows where it is."""
    for number in range(5):
        (session_1 / "a.txt").write_text(f"{number}\n")
        run("save", f"n{number}")
    run("rewind", "session-1:1", "--yes")
    rows = run("log", "-n", "3").out.splitlines()
    assert [row.split("session-1:")[1][0] for row in rows] == ["8", "7", "6", "1"]
    assert rows[-1].startswith("@  session-1:1")
    assert run("log", "-n", "3", "--steps").out.splitlines()[-1].startswith("│ @  session-1:1")
    assert len(run("log", "-n", "3", "--json").data) == 3
    assert "@" not in run("log", "-n", "3", "--kind", "manual").out


def test_what_was_begun_further_back_than_is_shown_is_on_no_branch_of_the_others(
    run: Run, session_1: Path
) -> None:
    for number in range(4):
        (session_1 / "a.txt").write_text(f"{number}\n")
        run("save", f"n{number}")
    run("rewind", "session-1:1", "--yes")
    (session_1 / "a.txt").write_text("another way\n")
    run("save")
    rows = run("log", "-n", "3", "--steps").out.splitlines()
    assert [row[:3] for row in rows] == ["@  ", "│ ×", "│ ×"]


def test_what_is_saved_once_the_follower_says_so_is_seen() -> None:
    with hardsave.open("memory://") as vault:
        line = vault.timeline("main")
        line.save(1)
        later = threading.Timer(0.5, line.save, [3])
        seen: list[int] = []

        def say(_: str) -> None:
            line.save(2)
            later.start()

        def event(data: Callable[[], Any], _: object) -> None:
            seen.append(data()["checkpoint"]["seq"])
            later.join()
            vault.close()

        out = SimpleNamespace(is_terminal=True, say=say, event=event)
        session: Any = SimpleNamespace(vault=vault, out=out, remote=None)
        log._follow(session, None)
    assert seen == [2]


def test_show_without_a_ref_shows_the_head(run: Run, session_1: Path) -> None:
    assert run("show", "--json").data["ref"] == "session-1:3"


def test_a_path_behind_a_ref_is_answered_with_the_option_for_it(run: Run, session_1: Path) -> None:
    for command in ("rewind", "diff"):
        told = run(command, "@", "@~1", "src").err
        assert "a timeline is named with --timeline, a file or directory with --path" in told
    assert "--path" not in run("status", "src").err


def test_one_name_that_is_near_is_named_as_one(run: Run, session_1: Path) -> None:
    assert "the nearest is 'plan-ready'" in run("show", "plan-raedy").err


def test_a_log_of_a_directory_where_nothing_was_saved_says_where_the_others_are(
    run: Run, session_1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store,) = (tmp_path / "data").rglob("store.db")
    monkeypatch.setenv("HARDSAVE_STORE", f"sqlite:///{store}")
    (other := tmp_path / "other").mkdir()
    monkeypatch.chdir(other)
    assert "nothing was saved in this directory; 'hardsave log --all' shows" in run("log").err
    assert "there is nothing like that" in run("log", "--status", "failed").err


def test_a_timeline_without_files_is_not_said_to_have_saved_nothing(
    run: Run, project: Path
) -> None:
    assert "nothing was saved here yet" in run("status").err
    with hardsave.open() as vault:
        vault.timeline("session-1").save({"turn": 1})
    assert "no files were saved here yet; 'hardsave save' saves them" in run("status").err
