"""From a rewind back into the real agents: at a terminal, and from inside of them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.integration.agents import test_claude_code as claude
from tests.integration.agents import test_codex as codex
from tests.integration.agents.stage import HARDSAVE, Stage
from tests.integration.cli.screen import Screen

needs_claude = pytest.mark.skipif(claude.CLAUDE is None, reason="Claude Code is not installed")
needs_codex = pytest.mark.skipif(codex.CODEX is None, reason="Codex is not installed")


def on_path(stage: Stage, program: str, name: str) -> None:
    """As its user would have it installed."""
    (folder := Path(stage.environment["HOME"]) / "bin").mkdir()
    (folder / name).symlink_to(os.path.realpath(program))
    stage.environment["PATH"] = f"{folder}:{stage.environment['PATH']}"


def asked(model: ScriptedModel) -> str:
    """All that a model was asked."""
    return json.dumps([each.body for each in model.requests])


def asked_first(model: ScriptedModel, prompt: str) -> str:
    """The first request with a prompt: what the agent knew when it was told that. Requests without
    tools only ask for a title."""
    asked = (each.body for each in model.requests if each.body.get("tools"))
    bodies = (body.get("messages") or body.get("input") for body in asked)
    return next(words for words in map(json.dumps, bodies) if prompt in words)


def at_shell(stage: Stage, more: dict[str, str]) -> Screen:
    return stage.screen(["bash", "--norc", "-i"], {**more, "PS1": "$ "})


@needs_claude
def test_one_key_in_the_list_goes_on_with_claude_and_the_prompt_is_there_to_edit(
    tmp_path: Path,
) -> None:
    """Two edits and a command, then a prompt that breaks it all."""
    stage = claude.ClaudeStage(tmp_path)
    assert claude.CLAUDE is not None
    on_path(stage, claude.CLAUDE, "claude")
    stage.hardsave("init", "--yes")
    stage.is_known_to_its_user()

    def write(name: str, id: str) -> Call:
        path = str(stage.project / name)
        return Call("Write", {"file_path": path, "content": f"{name}\n"}, id=id)

    script = [
        Reply(calls=(write("a.py", "toolu_1"),)),
        Reply(calls=(write("b.py", "toolu_2"),)),
        Reply(calls=(claude.bash("cat a.py b.py > all.txt", "toolu_3"),)),
        Reply("It is built."),
        Reply(calls=(claude.bash("rm *.py", "toolu_4"),)),
        Reply("It is clean."),
    ]
    built = {"a.py": "a.py\n", "all.txt": "a.py\nb.py\n", "b.py": "b.py\n"}
    with ScriptedModel(script) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        assert stage.run(stage.command("build it"), url).returncode == 0
        assert stage.files() == built
        (line,) = stage.hardsave("timelines")
        session = line["name"].removeprefix("claude-")
        stage.run(stage.command("--resume", session, "clean up"), url)
        assert stage.files() == {"all.txt": "a.py\nb.py\n"}
        with at_shell(stage, url) as screen:
            screen.wait_for("$")
            screen.type(f"{HARDSAVE} rewind\n")
            screen.wait_for("^G go on")
            screen.wait_for("clean up")
            screen.type("\x07")
            screen.wait_for("It is built.")
            screen.wait_for("clean up")
            assert stage.files() == built
            screen.type(" the rest")
            screen.wait_for("clean up the rest")
            screen.type("\r")
            screen.wait_until(lambda: "clean up the rest" in asked(model))
        words = asked_first(model, "clean up the rest")
    assert "It is built." in words
    assert "toolu_4" not in words


@needs_codex
def test_one_key_goes_on_with_codex_and_the_prompt_is_edited_first(tmp_path: Path) -> None:
    stage = codex.CodexStage(tmp_path)
    assert codex.CODEX is not None
    on_path(stage, codex.CODEX, "codex")
    stage.hardsave("init", "--yes")
    script = [
        Reply(calls=(codex.shell("echo a > a.txt", "c1"),)),
        Reply("Made a."),
        Reply(calls=(codex.shell("rm a.txt", "call_2"),)),
        Reply("Removed a."),
    ]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url)
        stage.run(stage.command("make a"), {})
        (line,) = stage.hardsave("timelines")
        session = line["name"].removeprefix("codex-")
        stage.run(stage.command("resume", session, "remove it"), {})
        (target,) = (
            each for each in stage.hardsave("log") if each["description"] == "before: remove it"
        )
        with at_shell(stage, {}) as screen:
            screen.wait_for("$")
            screen.type(f"{HARDSAVE} rewind :{target['seq']} --yes\n")
            screen.wait_for("go on now?")
            screen.type("\n")
            screen.wait_for("prompt: remove it")
            screen.type(" with care\n")
            screen.wait_for("Removed a.")
        words = asked_first(model, "remove it with care")
    assert "Made a." in words
    assert "call_2" not in words


def log(stage: Stage) -> list[Any]:
    """The checkpoints of a `hardsave run`, newest first."""
    found: list[Any] = stage.hardsave("log", "--timeline", "t")
    return found


@needs_claude
def test_a_rewind_typed_inside_claude_under_run_goes_on_in_the_same_terminal(
    tmp_path: Path,
) -> None:
    stage = claude.ClaudeStage(tmp_path)
    stage.hardsave("init", "--yes")
    stage.is_known_to_its_user()
    script = [
        Reply(calls=(claude.bash("echo a > a.txt", "toolu_1"),)),
        Reply("Made a."),
        Reply(calls=(claude.bash("rm a.txt", "toolu_2"),)),
        Reply("Removed a."),
        Reply("What was that?"),
    ]
    assert claude.CLAUDE is not None
    command = stage.watched([claude.CLAUDE, "--dangerously-skip-permissions"])
    with ScriptedModel(script) as model:
        url = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        with stage.screen([*command, "make a"], url) as screen:
            screen.wait_for("Made a.")
            claude.ask(screen, "remove it", "Removed a.")
            screen.wait_until(lambda: log(stage)[0]["description"] == "answered")
            (target,) = (each for each in log(stage) if each["description"] == "before: remove it")
            screen.type("!")
            screen.wait_for("! for shell mode")
            screen.type(f"{HARDSAVE} rewind :{target['seq']}")
            screen.wait_for(f"rewind :{target['seq']}")
            screen.wait_for("goes on in the conversation", key="\r")
            screen.wait_for("Made a.")
            screen.wait_for("remove it")
            head = stage.hardsave("show", "@", "--timeline", "t")
            assert head["id"] == target["id"], "the session that was left has saved"
            screen.type(" with care")
            screen.wait_for("remove it with care")
            screen.wait_for("Removed a.", key="\r")
            screen.wait_until(lambda: log(stage)[0]["description"] == "answered")
            screen.type(f"/hardsave-rewind :{target['seq']}")
            screen.wait_for(f"/hardsave-rewind :{target['seq']}")
            screen.wait_for("goes on in the conversation", key="\r")
            screen.wait_for("remove it with care")
            screen.type("\x03")  # what stands there goes first
            screen.wait_for("remove it with care", gone=True)
            screen.type("\x03")
            screen.wait_for("again to exit")
            screen.type("\x03")
            assert screen.ended() == 0
            assert screen.is_as_before()
        words = asked_first(model, "remove it with care")
    assert "Made a." in words
    assert "toolu_2" not in words
    saved = stage.saved()
    assert stage.files() == {"a.txt": "a\n"}
    assert len(stage.hardsave("timelines")) == 1
    assert any("remove it with care" in each.lines for each in saved)
    assert "remove it with care" not in saved[-1].lines


@needs_codex
def test_a_rewind_typed_inside_codex_under_run_goes_on_in_the_same_terminal(
    tmp_path: Path,
) -> None:
    """It gives its terminal back as it is when it is ended, so that is repaired."""
    stage = codex.CodexStage(tmp_path)
    stage.hardsave("init", "--yes")
    script = [
        Reply(calls=(codex.shell("echo a > a.txt", "call_1"),)),
        Reply("Made a."),
        Reply(calls=(codex.shell("rm a.txt", "call_2"),)),
        Reply("Removed a."),
        Reply("What was that?"),
    ]
    assert codex.CODEX is not None
    bypass = "--dangerously-bypass-approvals-and-sandbox"
    command = stage.watched([codex.CODEX, bypass])
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url)
        with stage.screen([*command, "make a"], {}) as screen:
            screen.wait_for("Made a.")
            screen.wait_until(lambda: log(stage)[0]["description"] == "answered")
            screen.type("remove it")
            screen.wait_for("Removed a.", key="\r")
            screen.wait_until(lambda: log(stage)[0]["description"] == "answered")
            (target,) = (each for each in log(stage) if each["description"] == "before: remove it")
            screen.type(f"!{HARDSAVE} rewind :{target['seq']}")
            screen.wait_for(f"rewind :{target['seq']}")
            screen.wait_for("goes on in the conversation", key="\r")
            screen.wait_for("Made a.")
            head = stage.hardsave("show", "@", "--timeline", "t")
            assert head["id"] == target["id"], "the session that was left has saved"
            screen.type("remove it with care")
            screen.wait_for("Removed a.", key="\r")
            screen.wait_until(lambda: log(stage)[0]["description"] == "answered")
            codex._quit(screen)
            assert screen.is_as_before()
        words = asked_first(model, "remove it with care")
    assert "Made a." in words
    assert "call_2" not in words
    assert len(stage.hardsave("timelines")) == 1
