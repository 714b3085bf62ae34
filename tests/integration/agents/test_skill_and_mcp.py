"""The skill and the MCP server in the real agents: listed, and used to save, break and go back."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.docs.pages import DOCS, blocks
from tests.integration.agents import test_claude_code as claude
from tests.integration.agents import test_codex as codex
from tests.integration.agents import test_qwen_code as qwen
from tests.integration.agents.stage import Stage

TOOLS = ["save", "log", "show", "diff", "search", "rewind", "undo"]
PAGE = DOCS / "howto" / "mcp.md"
# Claude Code begins without servers that take long to start, as on a machine with much to do.
WAITS = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"}
SKILL = "Checkpoints of all files of a project, with undo"


def added(stage: Stage, program: str, *more: str) -> None:
    """As the page says it, with more options; and the server may rewind."""
    stage.environment["PATH"] = f"{Path(sys.executable).parent}:{stage.environment['PATH']}"
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    name = Path(program).name
    (typed,) = (line for line in lines if line.startswith(f"{name} mcp add hardsave -- "))
    _, *words = shlex.split(typed)
    at = words.index("--")
    done = stage.run([program, *words[:at], *more, *words[at:], "--allow-rewind"], {})
    assert done.returncode == 0, done


def steps(stage: Stage) -> list[str]:
    """What the log of the one timeline tells, oldest first."""
    (line,) = stage.hardsave("timelines")
    found = stage.hardsave("log", "--steps", "--timeline", line["name"])
    return [each["name"] or each["step"] for each in reversed(found)]


@pytest.mark.skipif(claude.CLAUDE is None, reason="Claude Code is not installed")
def test_claude_reads_the_skill_and_takes_a_file_back_with_the_tools(tmp_path: Path) -> None:
    stage = claude.ClaudeStage(tmp_path)
    assert claude.CLAUDE is not None
    (stage.project / "a.txt").write_text("one\n")
    stage.hardsave("init", "--skill", "--yes")
    added(stage, claude.CLAUDE)
    assert "Connected" in stage.run([claude.CLAUDE, "mcp", "list"], {}).stdout

    def tool(called: str, id: str, **given: Any) -> Call:
        return Call(f"mcp__hardsave__{called}", given, id=id)

    script = [
        Reply(calls=(Call("Skill", {"skill": "hardsave"}, id="toolu_1"),)),
        Reply(calls=(tool("save", "toolu_2", name="before"),)),
        Reply(calls=(claude.bash("echo broken > a.txt; echo > junk.txt", "toolu_3"),)),
        Reply(calls=(tool("rewind", "toolu_4", ref="before"),)),
        Reply(calls=(claude.bash("cat a.txt", "toolu_5"),)),
        Reply(calls=(tool("rewind", "toolu_6", ref="before", apply=True),)),
        Reply("Done."),
    ]
    shown = ("--output-format", "stream-json", "--verbose")
    with ScriptedModel(script) as model:
        more = {"ANTHROPIC_BASE_URL": model.anthropic_url, **WAITS}
        done = stage.run(stage.command("do it", *shown), more)
        asked = [each.body for each in model.requests if each.body.get("tools")]
    assert done.returncode == 0, done
    listed = json.loads(done.stdout.splitlines()[0])
    assert "hardsave" in listed["skills"]
    assert {f"mcp__hardsave__{name}" for name in TOOLS} <= {*listed["tools"]}
    assert f"- hardsave: {SKILL}" in json.dumps(asked[0])
    assert "Save before you dare" in json.dumps(asked[1])
    assert "mcp__hardsave__undo" in json.dumps(asked), "which the script never calls"

    found = claude.results(asked[-1])
    answers = {each["tool_use_id"]: str(each["content"]) for each in found}
    assert '"dry_run":true' in answers["toolu_4"].replace(" ", "")
    assert "broken" in answers["toolu_5"]
    assert stage.files() == {"a.txt": "one\n"}
    assert "before" in steps(stage), "it is on the timeline of the session"
    stage.hardsave("undo")
    assert stage.files() == {"a.txt": "broken\n", "junk.txt": "\n"}


@pytest.mark.skipif(claude.CLAUDE is None, reason="Claude Code is not installed")
def test_claude_does_the_same_with_the_commands_of_the_skill(tmp_path: Path) -> None:
    stage = claude.ClaudeStage(tmp_path)
    (stage.project / "a.txt").write_text("one\n")
    stage.environment["PATH"] = f"{Path(sys.executable).parent}:{stage.environment['PATH']}"
    stage.hardsave("init", "--skill", "--yes")
    back = "hardsave rewind before-refactor --files --mine"
    script = [
        Reply(calls=(claude.bash("hardsave save before-refactor", "toolu_1"),)),
        Reply(calls=(claude.bash("echo broken > a.txt", "toolu_2"),)),
        Reply(calls=(claude.bash(f"{back} --dry-run && cat a.txt", "toolu_3"),)),
        Reply(calls=(claude.bash(f"{back} --yes && cat a.txt", "toolu_4"),)),
        Reply("Done."),
    ]
    *_, preview, rewound = claude.results(stage.claude(script, "do it")[-1])
    assert preview["content"].endswith("broken")
    assert "take it back with: hardsave undo --timeline do-it" in rewound["content"]
    assert stage.files() == {"a.txt": "one\n"}
    assert "before-refactor" in steps(stage)


@pytest.mark.skipif(claude.CLAUDE is None, reason="Claude Code is not installed")
def test_with_the_permissions_of_the_page_claude_saves_unasked_and_asks_before_it_goes_back(
    tmp_path: Path,
) -> None:
    stage = claude.ClaudeStage(tmp_path)
    assert claude.CLAUDE is not None
    (stage.project / "a.txt").write_text("one\n")
    [permissions] = [each for each in blocks(PAGE, "json") if "permissions" in each]
    (stage.config / "settings.json").write_text(permissions)
    stage.hardsave("init", "--yes")
    added(stage, claude.CLAUDE)
    again = {"ref": "first", "apply": True}
    script = [
        Reply(calls=(claude.bash("hardsave save first", "toolu_1"),)),
        Reply(calls=(Call("mcp__hardsave__save", {"name": "second"}, id="toolu_2"),)),
        Reply(calls=(Call("mcp__hardsave__rewind", again, id="toolu_3"),)),
        Reply(calls=(claude.bash("hardsave rewind first --files --yes", "toolu_4"),)),
        Reply("Done."),
    ]
    with ScriptedModel(script) as model:
        more = {"ANTHROPIC_BASE_URL": model.anthropic_url, **WAITS}
        assert stage.run([claude.CLAUDE, "-p", "do it"], more).returncode == 0
        asked = [each.body for each in model.requests if each.body.get("tools")]
    found = {each["tool_use_id"]: bool(each.get("is_error")) for each in claude.results(asked[-1])}
    assert found == {"toolu_1": False, "toolu_2": False, "toolu_3": True, "toolu_4": True}
    assert {"first", "second"} <= {*steps(stage)}


@pytest.mark.skipif(codex.CODEX is None, reason="Codex is not installed")
def test_codex_reads_the_skill_and_takes_a_file_back_with_the_tools(tmp_path: Path) -> None:
    """It tells an MCP server nothing of its environment but what is named."""
    stage = codex.CodexStage(tmp_path, codex.CODED)
    assert codex.CODEX is not None
    stage.hardsave("init", "--skill", "--yes")
    told = f"XDG_DATA_HOME={stage.environment['XDG_DATA_HOME']}"
    added(stage, codex.CODEX, "--env", told)
    server = (stage.config / "config.toml").read_text()

    def code(text: str, id: str) -> Call:
        return Call("exec", {"input": text}, id=id)

    script = [
        Reply(calls=(code("text(await tools.mcp__hardsave__save({name: 'before'}))", "c1"),)),
        Reply(calls=(code("await tools.exec_command({cmd: 'echo no > edited.txt'})", "c2"),)),
        Reply(
            calls=(
                code("text(await tools.mcp__hardsave__rewind({ref: 'before', apply: true}))", "c3"),
            )
        ),
        Reply("Done."),
    ]
    with ScriptedModel(script) as model:
        stage.configure(model.openai_url)
        with (stage.config / "config.toml").open("a") as file:
            file.write(server)
        waits = ("-c", "mcp_servers.hardsave.required=true")  # until the server answers
        done = stage.run(stage.command(*waits, "do it"), {})
        asked = [each.body for each in model.requests]
    assert done.returncode == 0, done
    assert f"- hardsave: {SKILL}" in json.dumps(asked[0])
    assert "no" not in stage.files()["edited.txt"], json.dumps(asked[-1])[-3000:]
    assert stage.files() == {"edited.txt": "one\n"}
    assert "before" in steps(stage)


@pytest.mark.skipif(qwen.QWEN is None, reason="Qwen Code is not installed")
def test_qwen_saves_with_the_tool_on_the_timeline_of_its_session(tmp_path: Path) -> None:
    stage = qwen.QwenStage(tmp_path)
    assert qwen.QWEN is not None
    stage.hardsave("init", "--yes")
    settings = stage.config / "settings.json"
    told = json.loads(settings.read_text())
    del told["hooks"]["PostToolUse"]  # so the timeline that saves last is another
    settings.write_text(json.dumps(told))
    stage.environment["PATH"] = f"{Path(sys.executable).parent}:{stage.environment['PATH']}"
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    (typed,) = (line for line in lines if line.startswith("qwen mcp add hardsave hardsave"))
    assert stage.run([qwen.QWEN, *shlex.split(typed)[1:]], {}).returncode == 0
    script = [
        Reply(calls=(qwen.shell("hardsave save aside --timeline other", "call_1"),)),
        Reply(calls=(Call("mcp__hardsave__save", {"name": "before"}, id="call_2"),)),
        *[Reply("Done.")] * 3,
    ]
    stage.qwen(script, "do it")
    assert [each["name"] for each in stage.hardsave("log", "--timeline", "other")] == ["aside"]
    (line,) = (each for each in stage.hardsave("timelines") if each["name"] != "other")
    found = stage.hardsave("log", "--steps", "--timeline", line["name"])
    assert "before" in [each["name"] for each in found]
