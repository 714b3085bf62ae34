"""The real Qwen Code, offline, against a model that says what a script says."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.integration.agents.stage import UNTIL_SAVED, Stage

QWEN = os.environ.get("HARDSAVE_TEST_QWEN") or shutil.which("qwen")
pytestmark = pytest.mark.skipif(QWEN is None, reason="Qwen Code is not installed")


class QwenStage(Stage):
    """Qwen Code in a project; the Node that stands beside it comes before any other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "qwen", "QWEN_HOME")
        assert QWEN is not None
        self.environment |= {
            "PATH": f"{Path(QWEN).parent}:{self.environment['PATH']}",
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "scripted",
        }

    def command(self, *arguments: str) -> list[str]:
        assert QWEN is not None
        return [QWEN, "--yolo", *arguments]

    def qwen(self, script: list[Reply], *arguments: str) -> list[dict[str, Any]]:
        """Let it work through a script; what it asked the model."""
        with ScriptedModel(script) as model:
            done = self.run(self.command(*arguments), {"OPENAI_BASE_URL": model.openai_url})
            assert done.returncode == 0, done
            return [each.body for each in model.requests if each.body.get("tools")]

    def transcripts(self) -> dict[str, str]:
        """Every transcript, by what is in it."""
        return {path: hash for path, hash in self.kept().items() if "/chats/" in path}


def shell(command: str, id: str) -> Call:
    given = {"command": command, "description": "run it", "is_background": False}
    return Call("run_shell_command", given, id=id)


def said(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What a request holds of the conversation, without what Qwen Code itself tells the model."""
    return [
        {**message, "content": _content(message["content"])}
        for message in request["messages"]
        if message["role"] != "system"
    ]


def _content(content: Any) -> Any:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return [each for each in blocks if "<system-reminder>" not in str(each.get("text"))]


def test_files_and_conversation_come_back_together_at_every_boundary(tmp_path: Path) -> None:
    stage = QwenStage(tmp_path)
    edited = stage.project / "edited.txt"
    edited.write_text("one\n")
    change = {"file_path": str(edited), "old_string": "one", "new_string": "two"}
    script = [
        Reply("I look.", (Call("read_file", {"file_path": str(edited)}, id="call_1"),)),
        Reply(calls=(Call("edit", change, id="call_2"),)),
        Reply(calls=(shell("echo b > made.txt", "call_3"), shell("rm edited.txt", "call_4"))),
        Reply("Done."),
    ]
    installed = {each["agent"]: each for each in stage.hardsave("init", "--yes")}
    assert installed["Qwen Code"]["changed"]
    original = stage.qwen(script, "do it")
    assert stage.files() == {"made.txt": "b\n"}

    saved, before = stage.checkpoints(), stage.transcripts()
    two, end = {"edited.txt": "two\n"}, {"made.txt": "b\n"}
    expected = {
        ("PostToolUse", "call_3"): ({**two, **end}, 3),
        ("PostToolUse", "call_2"): (two, 2),
        ("Stop", None): (end, 3),  # the last: it goes on with the original
    }
    calls = {("PostToolUse", f"call_{number}") for number in range(1, 5)}
    assert saved.keys() == {("UserPromptSubmit", None), ("Stop", None), *calls}
    for boundary, (files, request) in expected.items():
        back = stage.hardsave("rewind", saved[boundary]["id"], "--yes")
        assert stage.files() == files, boundary
        talk = back["conversation"]
        more = "1 more call" in talk["why"]
        assert more == (boundary == ("PostToolUse", "call_3")), talk
        assert {**stage.transcripts(), **before} == stage.transcripts(), "an original was touched"
        words = ("--resume", talk["session"], "go on")
        asked = stage.qwen([*script[:request], *[Reply("On.")] * 4], *words)[0]
        known = said(original[request])
        assert said(asked)[: len(known)] == known, boundary
        assert "go on" in json.dumps(said(asked)[len(known) :])
        assert ("Done." in json.dumps(said(asked)[len(known) :])) == (boundary == ("Stop", None))


def test_a_call_that_was_killed_is_answered_once_and_truly(tmp_path: Path) -> None:
    stage = QwenStage(tmp_path)
    stage.hardsave("init", "--yes")
    calls = (
        shell("echo b > made.txt", "call_1"),
        shell(UNTIL_SAVED % 1 + "echo $$ > pid; exec sleep 600", "call_2"),
    )
    with (
        ScriptedModel([Reply(calls=calls)]) as model,
        stage.started(stage.command("do it"), {"OPENAI_BASE_URL": model.openai_url}),
    ):
        stage.wait_for(stage.project / "pid")
        stage.wait_until(lambda: '"id":"call_2"' in stage.story())
    stage.end_tool()
    target = stage.checkpoints()["PostToolUse", "call_1"]["id"]
    back = stage.hardsave("rewind", target, "--yes")["conversation"]
    assert back["why"].startswith("2 calls have no result")  # results are written together
    asked = stage.qwen([Reply("On.")] * 4, "--resume", back["session"], "go on")[0]
    results = [each for each in said(asked) if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in results] == ["call_1", "call_2"]
    assert json.dumps(results).count("unknown") == 2


def test_run_reads_the_conversation_where_no_hook_calls(tmp_path: Path) -> None:
    stage = QwenStage(tmp_path)
    call = shell("echo b > made.txt", "call_1")
    with ScriptedModel([Reply(calls=(call,)), Reply("Done.")]) as model:
        done = stage.run(
            stage.watched(stage.command("do it")), {"OPENAI_BASE_URL": model.openai_url}
        )
        assert done.returncode == 0, done
    last = stage.saved()[-1]
    assert last.metadata["agent"] == "qwen-code"
    assert "Done." in last.lines
    back = stage.hardsave("rewind", last.id, "--yes")["conversation"]
    asked = stage.qwen([Reply("On.")] * 4, "--resume", back["session"], "go on")[0]
    assert "Done." in json.dumps(said(asked))
