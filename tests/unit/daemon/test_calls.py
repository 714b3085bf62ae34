"""The calls of agents, as hooks and transcripts tell them, and what they have changed."""

import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hardsave.agents import events
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.agents.codex.spec import CODEX
from hardsave.daemon.calls import CallLog, Look
from hardsave.stores.host.processes import look, started
from hardsave.timeline.diff import FileDiff


class Told:
    """A transcript of Claude Code, and the hooks that it calls."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.transcript = folder / "t.jsonl"
        self.log = CallLog(str(self.work))

    def call(self, id: str, at: float, tool: str = "Bash", **given: Any) -> None:
        given = given or {"command": f"do {id}"}
        block = {"type": "tool_use", "id": id, "name": tool, "input": given}
        self.line("assistant", block, at)

    def result(self, id: str, at: float) -> None:
        self.line("user", {"type": "tool_result", "tool_use_id": id, "content": "ok"}, at)

    def line(self, role: str, block: dict[str, Any], at: float) -> None:
        moment = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
        told = {"type": role, "timestamp": moment, "message": {"role": role, "content": [block]}}
        with self.transcript.open("a") as file:
            file.write(json.dumps(told) + "\n")

    def hook(self, name: str, at: float, **more: Any) -> events.Event:
        about = {
            "session_id": "s",
            "hook_event_name": name,
            "transcript_path": str(self.transcript),
        }
        data = json.dumps({**about, **more}).encode()
        event = events.parse(data)
        self.log.hook(CLAUDE_CODE, event, at)
        return event

    def made(self, path: str, after: float) -> list[str]:
        """The calls that have added a path, as it is on the disk."""
        (found,) = self.log.verdicts(FileDiff(added=(path,)), after, time.time())
        return [each.id for each in found.calls]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_a_change_is_told_of_the_call_that_the_transcript_has_open(told: Told) -> None:
    now = time.time()
    told.call("one", now - 10)
    told.hook("PostToolUse", now - 5, tool_name="Bash", tool_use_id="one")
    told.call("two", now - 1)
    (told.work / "f").touch()
    assert told.made("f", now - 5) == ["two"]
    about = told.log.about_burst(Look(FileDiff(added=("f",))), now - 5)
    assert about.description == "during Bash: do two"
    (found,) = about.metadata["changed_by"]
    assert found == {"calls": [{"tool": "Bash", "tool_use_id": "two"}], "paths": ["f"], "count": 1}


def test_a_change_at_a_known_moment_is_of_the_call_that_ran_then(told: Told) -> None:
    """Both have ended when the burst is looked at."""
    (told.work / "f").touch()
    at = (told.work / "f").stat().st_ctime
    told.call("one", at - 10)
    told.result("one", at - 3)
    told.call("two", at - 2)
    told.result("two", at + 2)
    told.call("three", at + 3)
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    told.log.read()
    (found,) = told.log.verdicts(FileDiff(added=("f",)), at - 20, at + 5)
    assert [each.id for each in found.calls] == ["two"]


def test_what_was_removed_was_removed_before_its_directory_changed_last(told: Told) -> None:
    folder = told.work / "deep"
    folder.mkdir()
    at = time.time()
    os.utime(folder, (at - 5, at - 5))
    told.call("one", at - 8)
    told.result("one", at - 4)
    told.call("two", at - 3)
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    (found,) = told.log.verdicts(FileDiff(removed=("deep/f",)), at - 10, at)
    assert [each.id for each in found.calls] == ["one"]
    (found,) = told.log.verdicts(FileDiff(removed=("gone/deep/f",)), at - 10, at)
    assert {each.id for each in found.calls} == {"one", "two"}


def test_a_file_that_was_moved_here_may_be_of_each_call_since_the_last_save(told: Told) -> None:
    now = time.time()
    told.call("one", now + 1000)
    told.result("one", now + 1010)
    told.call("two", now + 1020)
    (told.work / "f").touch()  # whose time is long before
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    (found,) = told.log.verdicts(FileDiff(added=("f",)), now + 1005, now + 1030)
    assert {each.id for each in found.calls} == {"one", "two"}


def test_what_comes_along_with_a_directory_is_of_the_call_that_has_moved_it(told: Told) -> None:
    """Its own time is that of the call before, which has made it and was saved since."""
    (told.work / "d").mkdir()
    (told.work / "d" / "f").touch()
    made = (told.work / "d" / "f").stat().st_ctime
    time.sleep(0.1)
    told.call("made it", made - 1)
    told.result("made it", made + 0.02)
    told.call("moved it", made + 0.06)
    (told.work / "d").rename(told.work / "e")
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    files = FileDiff(added=("e", "e/f"), removed=("d", "d/f"))
    (found,) = told.log.verdicts(files, made + 0.05, time.time())
    assert [each.id for each in found.calls] == ["moved it"]


def test_what_was_changed_while_the_head_was_saved_may_be_of_the_call_before(told: Told) -> None:
    (told.work / "f").touch()
    at = (told.work / "f").stat().st_ctime
    told.call("one", at - 1)
    told.result("one", at + 0.02)
    told.call("two", at + 0.2)
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    (found,) = told.log.verdicts(FileDiff(changed=("f",)), at + 0.1, at + 0.3)
    assert [each.id for each in found.calls] == ["one", "two"]


def test_what_a_directory_has_replaced_was_removed_since_the_head(told: Told) -> None:
    """The time of the directory is that of the one that has taken its place."""
    at = time.time()
    (told.work / "d").mkdir()
    os.utime(told.work / "d", (at - 1000, at - 1000))
    told.call("one", at - 5)
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    (found,) = told.log.verdicts(FileDiff(removed=("d/f",)), at - 10, at)
    assert [each.id for each in found.calls] == ["one"]


def test_a_call_whose_shell_left_a_process_is_a_candidate_until_that_has_ended(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    left = {"PATH": os.environ["PATH"], CLAUDE_CODE.session_variable: "s"}
    told.call("one", now - 5, command="sleep 60 &")
    shell = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]
    pid = int(subprocess.run(shell, env=left, stdout=subprocess.PIPE, check=True).stdout)
    seen = look(pid)
    assert seen is not None
    monkeypatch.setattr(os, "getppid", lambda: seen.parent)  # as for a daemon
    try:
        told.hook("PostToolUse", now - 4, tool_name="Bash", tool_use_id="one")
        told.call("two", now - 3)
        (told.work / "f").touch()
        assert told.made("f", now - 4) == ["one", "two"]
    finally:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while started(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    told.log.read()
    time.sleep(0.1)
    (told.work / "g").touch()
    assert told.made("g", now - 4) == ["two"]
    assert told.made("f", now - 4) == ["one", "two"]


def test_hooks_alone_tell_when_a_call_ran(told: Told) -> None:
    """Codex says before a call, too; a transcript may be out of reach."""
    now = time.time()
    call = {"tool_name": "Bash", "tool_use_id": "one", "tool_input": {"command": "x"}}
    told.hook("PreToolUse", now - 5, **call)
    (told.work / "f").touch()
    assert told.made("f", now - 5) == ["one"]
    told.hook("PostToolUse", now - 4, **call)
    assert told.made("f", now - 5) == []


def test_where_a_turn_begins_no_call_runs_any_more(told: Told) -> None:
    now = time.time()
    told.call("interrupted", now - 10)
    told.hook("UserPromptSubmit", now - 5, prompt="x")
    (told.work / "f").touch()
    assert told.made("f", now - 6) == []
    about = told.log.about_burst(Look(FileDiff(added=("f",))), now - 6)
    assert about.description == "between calls"


def test_a_call_of_an_agent_that_was_killed_ends_with_the_next_prompt(told: Told) -> None:
    now = time.time()
    told.call("killed", now - 1000)
    told.line("user", {"type": "text", "text": "go on"}, now - 10)
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    (told.work / "f").touch()
    assert told.made("f", now - 5) == []
    told.call("one", now - 5)
    assert told.made("f", now - 5) == ["one"]


def test_what_no_transcript_tells_is_not_guessed(told: Told) -> None:
    about = told.log.about_burst(Look(FileDiff(added=("f",))), 0.0)
    assert (about.description, [*about.metadata]) == ("", ["evidence"])
    told.log.has_hooks = True
    assert (
        told.log.about_burst(Look(FileDiff(added=("f",))), 0.0).description
        == "during the next tool"
    )


def test_a_hook_whose_call_ran_alone_has_nothing_to_add(told: Told) -> None:
    now = time.time()
    told.call("one", now - 5)
    event = told.hook("PostToolUse", now, tool_name="Bash", tool_use_id="one")
    assert not told.log.is_shared(event.tool_use_id, now - 6, now)


def test_of_calls_at_once_each_edit_is_told_by_its_path(told: Told) -> None:
    now = time.time()
    told.call("shell", now - 5)
    told.call("edit", now - 5, "Write", file_path=str(told.work / "new"), content="x")
    event = told.hook("PostToolUse", now, tool_name="Bash", tool_use_id="shell")
    assert told.log.is_shared("shell", now - 6, now)
    for name in ("new", "f"):
        (told.work / name).touch()
    about = told.log.about_hook(event, Look(FileDiff(added=("f", "new"))), now - 6)
    assert about.description == "during Bash: do shell | Write: new"
    made = {
        path: [call["tool_use_id"] for call in each["calls"]]
        for each in about.metadata["changed_by"]
        for path in each["paths"]
    }
    assert made == {"f": ["shell"], "new": ["edit"]}


def test_a_line_that_is_half_written_is_read_when_it_is_whole(told: Told) -> None:
    told.call("one", time.time())
    whole = told.transcript.read_bytes()
    told.transcript.write_bytes(whole[:40])
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    told.log.read()
    assert not told.log.is_shared(None, 0, time.time() + 10)
    told.transcript.write_bytes(whole)
    told.log.read()
    assert told.log.is_shared(None, 0, time.time() + 10)


def test_a_transcript_that_is_none_tells_nothing(told: Told, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in ("missing", "fifo", "work"):
        told.log.source(CODEX, path, str(tmp_path / path))
    told.log.read()
    assert not told.log.is_shared(None, 0, time.time())


def test_a_burst_waits_for_the_hook_of_a_running_call_alone(told: Told) -> None:
    now, slept = [0.0], [0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        slept[0] += 1

    def give_way(*, is_ending: bool = False) -> int:
        slept[0] = 0
        told.log.give_way(lambda: is_ending, clock=lambda: now[0], sleep=sleep)
        return slept[0]

    told.call("one", time.time())
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    assert give_way() == 0  # no hook calls here
    told.log.has_hooks = True
    assert give_way() == pytest.approx(50, abs=2)  # and then a part of the call is saved
    assert give_way(is_ending=True) == 0
    told.result("one", time.time())
    assert give_way() == 0


def test_a_burst_goes_on_as_soon_as_a_hook_has_saved(told: Told) -> None:
    told.call("one", time.time())
    told.log.source(CLAUDE_CODE, "s", str(told.transcript))
    told.log.has_hooks = True
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        told.log.hook_done()

    told.log.give_way(lambda: False, sleep=sleep)
    assert len(slept) == 1
