"""Printed commands work from any directory."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from hardsave.cli.hints import Invocation, quoted
from hardsave.cli.tree import COMMANDS
from hardsave.daemon import save
from tests.unit.cli.conftest import Ran, Run

AWKWARD = "a $(touch gone) 'b' \"c\""
UNSEEN = "a\x1b[31m\u202e'\\\udce9ü"


def told(ran: Ran, what: str) -> list[str]:
    """The words of a command that was printed, as a shell would take them."""
    (line,) = (each for each in ran.err.splitlines() if each.startswith(f"{what}: hardsave "))
    return shlex.split(line.removeprefix(f"{what}: hardsave "))


@pytest.mark.parametrize("word", ["plain", AWKWARD, UNSEEN, "", "-x", "two\nlines"])
def test_a_shell_reads_a_quoted_word_as_what_it_was(word: str) -> None:
    said = quoted(word)
    assert all(character.isprintable() for character in said)
    printed = subprocess.run(["bash", "-c", f"printf %s {said}"], capture_output=True, check=True)
    assert printed.stdout == os.fsencode(word)


def test_a_message_leads_to_where_the_command_was() -> None:
    invocation = Invocation(COMMANDS)
    message = (
        "see 'hardsave undo'; a fault of hardsave itself; /opt/hardsave log; hardsave store gc"
    )
    assert invocation.in_context(message) == message
    invocation.change_directory("a b")
    invocation.change_directory("../c")
    invocation.store = "x.db"
    there = "hardsave -C 'a b/../c' --store x.db"
    assert invocation.in_context(message) == message.replace(
        "hardsave undo", f"{there} undo"
    ).replace("hardsave store gc", f"{there} store gc")
    assert (
        invocation.command("undo", "--timeline", "it's") == f"{there} undo --timeline 'it'\"'\"'s'"
    )


def test_commands_that_ask_a_server_lead_there_and_others_to_no_store() -> None:
    invocation = Invocation(COMMANDS)
    invocation.change_directory("a")
    invocation.server = "http://localhost:8765"
    message = "see 'hardsave jobs list', or 'hardsave undo'"
    there = "hardsave --server http://localhost:8765"
    assert invocation.in_context(message) == f"see '{there} jobs list', or 'hardsave undo'"
    assert invocation.command("jobs", "approve", "fix-1") == f"{there} jobs approve fix-1"
    assert invocation.command("undo") == "hardsave undo"


@pytest.fixture
def elsewhere(tmp_path: Path, run: Run, session_1: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that has a timeline of the same name as the other, and something to take back."""
    folder = tmp_path / "else where"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for text in ("one", "two"):
        (folder / "mine.txt").write_text(text)
        run("save", "--timeline", "session-1")
    run("rewind", "@~1", "--yes")
    return folder


def test_what_takes_a_rewind_back_is_about_the_project_that_was_rewound(
    run: Run, session_1: Path, elsewhere: Path
) -> None:
    ran = run("-C", str(session_1), "rewind", "@~1", "--yes")
    assert run(*told(ran, "take it back with")).code == 0
    assert (elsewhere / "mine.txt").read_text() == "one"
    assert [each["kind"] for each in run("undo", "--list", "--json").data] == ["rewind"]
    ran = run("undo", "-C", os.path.relpath(session_1), "--timeline", "session-1")
    assert (ran.code, ran.err.count("--list")) == (3, 1), "it was taken back already"
    assert f"'hardsave -C {os.path.relpath(session_1)} undo --list'" in ran.err


@pytest.mark.parametrize("names_store", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        ["fork", "@", "--name", AWKWARD],
        ["delete", "@"],
        ["timelines", "clear", "--timeline", "session-1"],
        ["rewind", "@~1", "--yes"],
        ["bisect", "@~1", "@", "--", "test", "!", "-f", "b.txt"],
        ["status"],
    ],
    ids=lambda typed: typed[0],
)
def test_every_command_that_is_printed_works_from_where_the_other_was_typed(
    run: Run, session_1: Path, elsewhere: Path, command: list[str], names_store: bool
) -> None:
    (session_1 / "a.txt").write_text("changed\n")
    store = run("-C", str(session_1), "store", "stats", "--json").data["store"]
    where = ["-C", str(session_1), *(["--store", store] if names_store else [])]
    ran = run(*where, *command)
    lines = [each for each in ran.err.splitlines() if ": hardsave " in each]
    assert ran.code == 0, ran
    assert lines, ran
    for line in lines:
        typed = shlex.split(line.partition(": hardsave ")[2])
        assert typed[: len(where)] == where
        assert run(*typed, *(["--yes"] if "rewind" in typed else [])).code == 0
    assert (elsewhere / "mine.txt").read_text() == "one"


def test_an_error_leads_to_the_store_that_was_named(run: Run, project: Path) -> None:
    ran = run("--store", "my runs.db", "log")
    assert (ran.code, "'hardsave --store 'my runs.db' save' makes a new one" in ran.err) == (
        3,
        True,
    )


def test_a_directory_that_is_gone_is_brought_back_by_its_name(run: Run, project: Path) -> None:
    ran = run("-C", "gone away", "log")
    assert (ran.code, "'hardsave -C 'gone away' rewind' brings" in ran.err) == (2, True)


def test_doctors_remedies_are_about_the_project_that_was_looked_at(
    run: Run, session_1: Path, elsewhere: Path, tmp_path: Path
) -> None:
    (session_1 / "inside.db").write_bytes(b"no store")
    found = run("-C", str(session_1), "--store", "inside.db", "doctor", "--json").data
    assert f"hardsave -C {session_1} --store inside.db" in json.dumps(found)


def test_what_status_offers_is_about_the_timeline_that_it_shows(run: Run, session_1: Path) -> None:
    run("save", "--timeline", "other", "--status", "done")
    (session_1 / "a.txt").write_text("changed\n")
    ran = run("status", "--timeline", "session-1")
    assert told(ran, "save it with") == ["save", "--timeline", "session-1"]
    assert run(*told(ran, "take it back with"), "--yes").code == 0
    assert (session_1 / "a.txt").read_text() != "changed\n"
    (session_1 / "a.txt").write_text("changed\n")
    assert told(run("status", "--timeline", "other"), "save it with")[:1] == ["save"]


def test_a_name_that_would_drive_a_terminal_does_not(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a\u202eb"
    run("save", "--timeline", name)
    (project / "a.txt").write_text("two\n")
    run("save", "--timeline", name)
    for ran in (run("rewind", "@~1", "--yes"), run("fork", "@"), run("undo", "--timeline", name)):
        assert "\u202e" not in ran.out + ran.err
        assert r"\xe2\x80\xae" in ran.err
    folder = tmp_path / "p\x1b[31m" / "below"
    folder.mkdir(parents=True)
    run("-C", str(folder.parent), "save")
    monkeypatch.chdir(folder)
    for ran in (run("status"), run("log"), run("save")):
        assert "\x1b" not in ran.out + ran.err
        assert r"\x1b" in ran.err


def test_a_store_that_was_named_from_here_is_told_to_others_by_its_whole_path(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that was a project of its own has to be told which store."""
    other = tmp_path / "other"
    other.mkdir()
    run("-C", str(other), "save")
    run("--store", "../runs.db", "save")
    ran = run("--store", "../runs.db", "fork", "@", str(other))
    (url,) = shlex.split(ran.err.partition("export HARDSAVE_STORE=")[2])
    monkeypatch.chdir(other)
    monkeypatch.setenv("HARDSAVE_STORE", url)
    assert run("log", "--timeline", "other", "--json").data[-1]["timeline"] == "main"


SESSION = "0b6e8d9e-1111-4222-8333-444455556666"


def test_an_agent_is_resumed_where_it_was_started(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks for its conversations by where it stands."""
    started = project / "it's here"
    started.mkdir()
    folder = "".join(each if each.isalnum() else "-" for each in str(started))
    path = tmp_path / "claude" / "projects" / folder / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    line = {"type": "user", "sessionId": SESSION, "cwd": str(started)}
    said = {"role": "user", "content": "one"}
    path.write_text(json.dumps({**line, "message": said}, separators=(",", ":")) + "\n")
    event = {"session_id": SESSION, "hook_event_name": "Stop", "transcript_path": str(path)}
    save.work(json.dumps({**event, "cwd": str(started)}).encode(), os.environ)
    monkeypatch.chdir(started)
    assert "go on with: claude --resume " in run("rewind", "@").err
    monkeypatch.chdir(tmp_path)
    ran = run("-C", str(started), "rewind", "@")
    assert f"go on with: cd {shlex.quote(str(started))} && claude --resume " in ran.err
    assert run("-C", str(started), "rewind", "@", "--json").data["conversation"]["directory"] == (
        str(started)
    )
