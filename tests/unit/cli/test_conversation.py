"""`rewind` on a timeline of Claude Code: the conversation comes along, or it is said why not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import hardsave
from hardsave import config
from hardsave.agents import going_on, sessions
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.cli.errors import Exit
from hardsave.daemon import restart, running_agents, save
from hardsave.errors import Unavailable
from hardsave.stores.host import processes
from tests.unit.cli.conftest import Run

LINE = '{"type":"user","message":{"role":"user","content":"%s"},"sessionId":"s-1"}\n'


@pytest.fixture
def transcript(tmp_path: Path, project: Path) -> Path:
    """Two checkpoints of a session, each with its files."""
    path = tmp_path / "claude" / "projects" / "-p" / "s-1.jsonl"
    path.parent.mkdir(parents=True)
    told = {"session_id": "s-1", "hook_event_name": "Stop", "transcript_path": str(path)}
    for number, word in enumerate(("one", "two")):
        with path.open("a") as file:
            file.write(LINE % word)
        (project / "a.txt").write_text(f"{number}\n")
        save.work(json.dumps({**told, "cwd": str(project)}).encode(), os.environ)
    return path


def test_a_rewind_says_how_to_go_on(run: Run, transcript: Path, project: Path) -> None:
    ran = run("rewind", "@~1", "--yes")
    (copy,) = (path for path in transcript.parent.iterdir() if path != transcript)
    assert ran.code == Exit.DONE
    assert f"go on with: claude --resume {copy.stem}" in ran.err
    assert (project / "a.txt").read_text() == "0\n"
    assert "two" not in copy.read_text()


def test_undo_and_redo_name_the_conversation_of_the_head(run: Run, transcript: Path) -> None:
    with transcript.open("a") as file:
        file.write(LINE % "three")  # not saved yet
    told = {"session_id": "s-1", "hook_event_name": "Stop", "transcript_path": str(transcript)}
    save.work(json.dumps({**told, "cwd": os.getcwd()}).encode(), os.environ)

    def named(*typed: str) -> str:
        back = run(*typed, "--json").data["conversation"]
        assert back["command"] == f"claude --resume {back['session']}"
        return str(back["session"])

    two = named("rewind", "claude-s-1:2", "--yes")
    one = named("rewind", "claude-s-1:1", "--yes")
    assert named("undo") == two
    assert named("redo") == one
    assert named("undo") == two
    assert named("undo") == "s-1", "the whole one"
    assert named("redo") == two
    assert f"go on with: claude --resume {one}" in run("redo").err
    assert "two" not in transcript.with_name(f"{one}.jsonl").read_text()
    assert "two" in transcript.with_name(f"{two}.jsonl").read_text()


def test_a_rewind_that_does_nothing_makes_no_copy(run: Run, transcript: Path) -> None:
    ran = run("rewind", "@", "--yes")
    assert "go on with: claude --resume s-1" in ran.err
    assert list(transcript.parent.iterdir()) == [transcript]


def test_a_rewind_gives_the_prompt_back_that_it_took_back(run: Run, transcript: Path) -> None:
    assert run("rewind", "@~1", "--yes", "--json").data["conversation"]["prompt"] == "two"
    assert run("rewind", "@", "--yes", "--json").data["conversation"]["prompt"] == ""


def test_resume_is_refused_where_no_agent_could_be_started(run: Run, transcript: Path) -> None:
    ran = run("rewind", "@~1", "--yes", "--resume")
    assert ran.code == Exit.USAGE
    assert "there is none to start it on" in ran.err
    assert list(transcript.parent.iterdir()) == [transcript]


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not tell where a process works"
)
def test_an_agent_that_is_still_at_work_is_named(
    run: Run, transcript: Path, project: Path, tmp_path: Path
) -> None:
    """It knows nothing of a rewind, and goes on from where it is."""
    (program := tmp_path / "claude-code" / "claude").parent.mkdir()
    program.symlink_to(shutil.which("sleep") or "")
    with subprocess.Popen([program, "60"], cwd=project) as agent:
        try:
            ran = run("rewind", "@~1", "--yes")
        finally:
            agent.kill()
    assert "still running, and may write meanwhile: " in ran.err
    assert f"({agent.pid})" in ran.err
    told = f"claude (pid {agent.pid}) is still open and does not know of this: quit it, then type: "
    assert f"{told}claude --resume " in ran.err
    assert "still running" not in run("rewind", "@", "--files", "--yes").err


def test_where_files_and_state_are_there_the_conversation_is_cut_all_the_same(
    run: Run, transcript: Path
) -> None:
    """Of an agent that was killed, and had said more than it saved."""
    with transcript.open("a") as file:
        file.write(LINE % "three")
    assert run("rewind", "@", "--dry-run").code == Exit.DONE
    assert list(transcript.parent.iterdir()) == [transcript]
    ran = run("rewind", "@")
    (copy,) = (path for path in transcript.parent.iterdir() if path != transcript)
    assert ran.code == Exit.DONE
    assert "nothing else to do" in ran.err
    assert f"go on with: claude --resume {copy.stem}" in ran.err
    assert "two" in copy.read_text()
    assert "three" not in copy.read_text()
    assert run("undo", "--list", "--json").data == []
    assert run("rewind", "@", "--json").data["conversation"]["command"]


def test_the_session_that_goes_on_saves_on_the_same_timeline(
    run: Run, transcript: Path, project: Path
) -> None:
    session = run("rewind", "@~1", "--yes", "--json").data["conversation"]["session"]
    told = {"session_id": session, "hook_event_name": "Stop", "cwd": str(project)}
    told["transcript_path"] = str(transcript.with_name(f"{session}.jsonl"))
    save.work(json.dumps(told).encode(), os.environ)
    with hardsave.open() as vault:
        assert [line.name for line in vault.timelines()] == ["claude-s-1"]
        assert vault.timeline("claude-s-1").load()["transcript"]["session"] == session


def test_a_changed_transcript_is_said_and_files_come_back_all_the_same(
    run: Run, transcript: Path, project: Path
) -> None:
    transcript.write_text(LINE % "something else")
    ran = run("rewind", "@~1", "--yes")
    assert ran.code == Exit.FAILED
    assert "the conversation was left as it is" in ran.err
    assert (project / "a.txt").read_text() == "0\n"
    assert list(transcript.parent.iterdir()) == [transcript]


@pytest.mark.parametrize("how", [["--files"], ["--path", "a.txt"], ["--dry-run"]])
def test_files_alone_and_a_look_write_no_conversation(
    how: list[str], run: Run, transcript: Path
) -> None:
    assert run("rewind", "@~1", *how, "--yes").code == Exit.DONE
    assert list(transcript.parent.iterdir()) == [transcript]


def test_a_search_finds_what_was_said_and_not_the_lines_it_came_in(
    run: Run, transcript: Path
) -> None:
    found = run("search", "two", "--json").data
    assert "messages" in json.dumps(found)
    assert "lines" not in json.dumps(found)


def test_a_diff_tells_what_was_said_and_leaves_the_agents_record_out(
    run: Run, transcript: Path
) -> None:
    ran = run("diff", "@~1", "@")
    assert "two" in ran.out
    assert "lines[" not in ran.out
    assert "transcript." not in ran.out
    assert "lines" in json.dumps(run("diff", "@~1", "@", "--json").data)


def called(transcript: Path, event: str, session: str = "s-1") -> None:
    told = {"session_id": session, "hook_event_name": event, "cwd": os.getcwd(), "prompt": "on"}
    told["transcript_path"] = str(transcript.with_name(f"{session}.jsonl"))
    save.work(json.dumps(told).encode(), os.environ)


def head(run: Run) -> str:
    return str(run("show", "@", "--json").data["id"])


def test_the_end_of_the_session_that_was_left_does_not_move_the_head_back(
    run: Run, transcript: Path
) -> None:
    with transcript.open("a") as file:
        file.write('{"type":"assistant","message":{"role":"assistant","content":"x"}}\n')
    target = run("rewind", "@~1", "--yes", "--json").data["target"]["id"]
    called(transcript, "SessionEnd")
    assert head(run) == target
    called(transcript, "UserPromptSubmit")
    said_more = head(run)
    assert said_more != target, "its user goes on there, all the same"
    called(transcript, "SessionEnd")
    assert head(run) not in (target, said_more)


def test_the_rest_of_the_turn_in_which_a_session_was_left_does_not_move_the_head_back(
    run: Run, transcript: Path, project: Path
) -> None:
    """Files that it changes are saved all the same, beside the conversation of the head."""
    target = run("rewind", "@~1", "--yes", "--json").data["target"]["id"]
    for event in ("PostToolUse", "PostToolBatch", "Stop"):
        called(transcript, event)
    assert head(run) == target
    (project / "a.txt").write_text("2\n")
    called(transcript, "Stop")
    assert head(run) != target
    with hardsave.open() as vault:
        saved = vault.get(head(run))
        assert [each["content"] for each in saved.state["messages"]] == ["one"]
        assert saved.files is not None
        assert saved.files.read("a.txt") == b"2\n"
    assert "two" not in transcript.with_name(f"{resumed(run)}.jsonl").read_text()


def resumed(run: Run) -> str:
    return str(run("rewind", "@", "--json").data["conversation"]["session"])


def test_an_agent_that_is_about_to_be_ended_saves_nothing_of_what_it_still_says(
    run: Run, transcript: Path
) -> None:
    before = head(run)
    sessions.leave(os.environ, "s-1", (os.getpid(), processes.started(os.getpid()) or 0))
    called(transcript, "Stop")
    assert head(run) == before
    sessions.leave(os.environ, "s-1", (os.getpid(), 1))  # another process of this number
    called(transcript, "Stop")
    assert head(run) != before


def test_an_agent_that_was_not_ended_after_all_is_saved_again(run: Run, transcript: Path) -> None:
    """The rewind that was to end it, or the `hardsave run` around it, was killed."""
    before = head(run)
    ours = os.getpid(), processes.started(os.getpid()) or 0
    sessions.leave(os.environ, "s-1", ours)
    called(transcript, "UserPromptSubmit")
    assert head(run) != before
    assert sessions.left(os.environ, "s-1") is None
    sessions.leave(os.environ, "s-1", ours)
    assert sessions.left(os.environ, "s-1") == sessions.Left(ours)
    (file,) = (config.data_directory(os.environ, sys.platform) / "sessions" / "left").iterdir()
    os.utime(file, (0, 0))
    assert sessions.left(os.environ, "s-1") == sessions.Left(None)


def test_inside_of_an_agent_a_rewind_without_a_ref_lists_them(
    run: Run, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_agents, "agent_above", lambda: (CLAUDE_CODE, os.getpid()))
    ran = run("rewind")
    assert ran.code == Exit.DONE
    assert ":1 " in ran.out
    assert "go back with: hardsave rewind REF" in ran.err
    assert run("rewind", "@~1").code == Exit.USAGE, "outside of a run it is asked first"


def test_where_the_run_around_an_agent_is_gone_its_user_is_told_what_to_do(
    run: Run, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_agents, "agent_above", lambda: (CLAUDE_CODE, os.getpid()))
    monkeypatch.setenv(restart.VARIABLE, str(transcript.parent / "gone.sock"))
    monkeypatch.setenv(running_agents.RUN_VARIABLE, f"{os.getpid()}:claude-s-1")
    monkeypatch.setenv(CLAUDE_CODE.session_variable, "s-1")
    ran = run("rewind", "@~1")
    assert ran.code == Exit.DONE
    assert "claude cannot be started again here" in ran.err
    assert "go on with: claude --resume " in ran.err
    assert sessions.left(os.environ, "s-1") == sessions.Left(None), "until its user says more"


@pytest.fixture
def begun(run: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in which a checkpoint was saved before anything was said."""
    assert run("save", "--timeline", "t").code == Exit.DONE
    monkeypatch.setenv("HARDSAVE_TIMELINE", "t")
    return Path(request.getfixturevalue("transcript"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[restart.Next]:
    """What the run around this agent was asked to start; it takes it all."""
    found: list[restart.Next] = []

    def taken(path: str, wanted: restart.Next) -> SimpleNamespace:
        found.append(wanted)
        return SimpleNamespace(detach=lambda: None)

    monkeypatch.setattr(restart, "ask", taken)
    monkeypatch.setattr(running_agents, "agent_above", lambda: (CLAUDE_CODE, os.getpid()))
    monkeypatch.setenv(restart.VARIABLE, "run.sock")
    monkeypatch.setenv(running_agents.RUN_VARIABLE, f"{os.getpid()}:t")
    monkeypatch.setenv(CLAUDE_CODE.session_variable, "s-1")
    return found


def test_before_anything_was_said_the_agent_of_a_run_begins_anew(
    run: Run, begun: Path, asked: list[restart.Next], project: Path
) -> None:
    ran = run("rewind", ":1")
    assert ran.code == Exit.DONE
    (wanted,) = asked
    assert wanted == restart.Next(
        CLAUDE_CODE.name, None, "one", str(project.resolve()), "hardsave: claude begins anew"
    )
    assert (project / "a.txt").read_text() != "1\n"
    before = head(run)
    called(begun, "Stop")
    assert head(run) == before, "it is about to be ended"


def test_undo_and_redo_inside_of_a_run_start_the_agent_again(
    run: Run, begun: Path, asked: list[restart.Next]
) -> None:
    for typed in (("rewind", ":1"), ("undo",), ("redo",)):
        assert run(*typed).code == Exit.DONE
    assert [(each.session, each.prompt) for each in asked] == [
        (None, "one"),
        ("s-1", ""),
        (None, "one"),
    ]


def test_an_undo_that_is_not_about_a_conversation_leaves_none(
    run: Run, begun: Path, asked: list[restart.Next]
) -> None:
    assert run("rewind", ":1", "--files", "--yes").code == Exit.DONE
    assert run("fork", ":1", "--name", "other").code == Exit.DONE
    assert run("undo", "--timeline", "other").code == Exit.DONE
    assert not asked
    assert sessions.left(os.environ, "s-1") is None


@pytest.mark.parametrize("ref", [":1", "@~1"])
def test_an_agent_that_is_not_started_again_is_saved_when_its_user_says_more(
    run: Run,
    begun: Path,
    asked: list[restart.Next],
    monkeypatch: pytest.MonkeyPatch,
    ref: str,
) -> None:
    monkeypatch.setattr(restart, "ask", lambda *_: "gone")
    ran = run("rewind", ref)
    assert "claude cannot be started again here: gone" in ran.err
    before = head(run)
    called(begun, "UserPromptSubmit")
    assert head(run) != before


def test_a_conversation_that_cannot_be_brought_back_is_saved_on(
    run: Run, begun: Path, asked: list[restart.Next]
) -> None:
    begun.write_text("{}\n")
    ran = run("rewind", "@~1")
    assert "the conversation was left as it is" in ran.err
    assert not asked
    found = sessions.left(os.environ, "s-1")
    assert found is None or found.process is None


def test_an_interrupted_rewind_leaves_no_conversation(
    run: Run, begun: Path, asked: list[restart.Next], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(going_on, "conversation_of", fail)
    assert run("rewind", "@~1").code != Exit.DONE
    assert sessions.left(os.environ, "s-1") is None


def test_from_elsewhere_an_agent_that_is_open_is_named_where_nothing_had_been_said(
    run: Run, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still_open = [running_agents.OpenAgent("claude", 7)]
    monkeypatch.setattr(running_agents, "open_agents", lambda *_: still_open)
    ran = run("rewind", ":1", "--yes")
    said = "claude (pid 7) is still open and does not know of this: quit it, then type: claude\n"
    assert said in ran.err


def test_a_fork_has_the_conversation_in_its_own_directory(
    run: Run, transcript: Path, tmp_path: Path, project: Path
) -> None:
    there = tmp_path / "a_try"
    said = json.loads(LINE % "one")
    line = json.dumps({**said, "cwd": str(project), "sessionId": "s-2"}, separators=(",", ":"))
    transcript.with_name("s-2.jsonl").write_text(f"{line}\n")
    called(transcript, "Stop", "s-2")
    before = transcript.with_name("s-2.jsonl").read_bytes()
    ran = run("fork", "claude-s-2:1", str(there))
    (copy,) = (
        tmp_path / "claude/projects" / str(there).replace("/", "-").replace("_", "-")
    ).iterdir()
    assert f"go on with: cd {there} && claude --resume {copy.stem}" in ran.err
    assert json.loads(copy.read_text().splitlines()[0])["cwd"] == str(there)
    assert "one (forked from :1)" in copy.read_text()
    assert transcript.with_name("s-2.jsonl").read_bytes() == before
    back = run("-C", str(there), "rewind", "@", "--json").data["conversation"]
    assert back["directory"] == str(there)
