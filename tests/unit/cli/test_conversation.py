"""`rewind` on a timeline of Claude Code: the conversation comes along, or it is said why not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hardsave
from hardsave.cli.errors import Exit
from hardsave.daemon import save
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
