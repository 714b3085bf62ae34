"""The real Claude Code, offline, against a model that says what a script says."""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.runtime.scripted import Call, Reply, ScriptedModel

TIMEOUT_SECONDS = 120


def claude() -> str | None:
    """The program: the one that is named, the one in the SDK's wheel, or the one on PATH."""
    if named := os.environ.get("HARDSAVE_TEST_CLAUDE"):
        return named
    found = importlib.util.find_spec("claude_agent_sdk")
    if found is not None and found.origin is not None:
        bundled = Path(found.origin).parent / "_bundled" / "claude"
        if bundled.exists():
            return str(bundled)
    return shutil.which("claude")


CLAUDE = claude()
pytestmark = pytest.mark.skipif(CLAUDE is None, reason="Claude Code is not installed")


class Stage:
    """A project, a home of its own, and Claude Code with our hooks."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.config = folder / "claude"
        self.config.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def hardsave(self, *arguments: str) -> Any:
        done = self._run([sys.executable, "-P", "-m", "hardsave", *arguments, "--json"], {})
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def claude(self, script: list[Reply], *arguments: str) -> list[dict[str, Any]]:
        """Let it work through a script; what it asked the model."""
        assert CLAUDE is not None
        with ScriptedModel(script) as model:
            command = [CLAUDE, "-p", "--dangerously-skip-permissions", *arguments]
            done = self._run(command, {"ANTHROPIC_BASE_URL": model.anthropic_url})
            assert done.returncode == 0, done
            # Requests without tools are the client's own: titles, topics.
            return [each.body for each in model.requests if each.body.get("tools")]

    def _run(self, command: list[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.project,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def transcripts(self) -> dict[str, str]:
        """Every transcript, by what is in it."""
        found = sorted(self.config.glob("projects/*/*.jsonl"))
        return {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.project.iterdir())}


def bash(command: str, id: str) -> Call:
    return Call("Bash", {"command": command, "description": "run it"}, id=id)


def said(request: dict[str, Any]) -> list[Any]:
    """What a request holds of the conversation, block by block, without what is about caching."""
    return list(_said(request["messages"]))


def _said(messages: list[dict[str, Any]]) -> Iterator[Any]:
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            yield message["role"], {k: v for k, v in block.items() if k != "cache_control"}


def test_files_and_conversation_come_back_together(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    edited = stage.project / "edited.txt"
    edited.write_text("one\n")
    change = {"file_path": str(edited), "old_string": "one", "new_string": "two"}
    script = [
        Reply("I look.", (Call("Read", {"file_path": str(edited)}, id="toolu_1"),)),
        Reply(calls=(Call("Edit", change, id="toolu_2"),)),
        Reply(calls=(bash("echo b > made.txt", "toolu_3"), bash("rm edited.txt", "toolu_4"))),
        Reply("Done."),
    ]
    stage.hardsave("init", "--yes")
    original = stage.claude(script, "do it")
    assert stage.files() == {"made.txt": "b\n"}

    (line,) = stage.hardsave("timelines")
    saved = {
        (each["metadata"]["hook"], each["metadata"].get("tool")): each
        for each in stage.hardsave("log", "--timeline", line["name"])
    }
    before = stage.transcripts()
    expected = {
        ("Stop", None): ({"made.txt": "b\n"}, 3),
        ("PostToolBatch", "Edit"): ({"edited.txt": "two\n"}, 2),
        ("PostToolUse", "Edit"): ({"edited.txt": "two\n"}, 2),
        ("PostToolBatch", "Read"): ({"edited.txt": "one\n"}, 1),
    }
    for boundary, (files, request) in expected.items():
        target = saved[boundary]["id"]
        back = stage.hardsave("rewind", target, "--timeline", line["name"], "--yes")
        assert stage.files() == files, boundary
        assert {**stage.transcripts(), **before} == stage.transcripts(), "an original was touched"
        (asked,) = stage.claude(
            [*script[:request], *[Reply("On.")] * 4],
            *("--resume", back["conversation"]["session"], "go on"),
        )
        known = said(original[request])
        assert said(asked)[: len(known)] == known, boundary
        assert "go on" in json.dumps(said(asked)[len(known) :])
        assert "changed on disk" not in json.dumps(asked["messages"])
        assert ("Done." in json.dumps(said(asked)[len(known) :])) == (boundary == ("Stop", None))


def test_a_call_that_was_cut_short_is_answered_once_and_truly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    stage.hardsave("init", "--yes")
    stage.claude([Reply(calls=(bash("echo b > made.txt", "toolu_1"),)), Reply("Done.")], "do it")
    monkeypatch.setenv("XDG_DATA_HOME", stage.environment["XDG_DATA_HOME"])
    monkeypatch.chdir(stage.project)
    with hardsave.open() as vault:
        (line,) = vault.timelines()
        target = next(each for each in line.checkpoints() if each.metadata["hook"] == "PostToolUse")
        mark = target.read("transcript")
    os.truncate(mark["path"], mark["offset"])  # as if it had been killed before it wrote the result
    back = stage.hardsave("rewind", target.id, "--yes")
    session = back["conversation"]["session"]
    (asked,) = stage.claude([Reply("On.")] * 4, "--resume", session, "go on")
    results = [block for _, block in said(asked) if block["type"] == "tool_result"]
    assert [(each["tool_use_id"], each["is_error"]) for each in results] == [("toolu_1", True)]
    assert "unknown" in json.dumps(results)
