"""The real agents call the tools of a real `hardsave serve`, added as the page says it."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.docs.pages import DOCS, blocks
from tests.integration.agents import test_claude_code as claude
from tests.integration.agents import test_codex as codex
from tests.integration.agents import test_qwen_code as qwen
from tests.integration.agents.stage import Stage
from tests.integration.agents.test_skill_and_mcp import WAITS
from tests.integration.server.conftest import Server, starting

PAGE = DOCS / "howto" / "mcp.md"
NAME = "by-the-agent"
SAVE, LOG = "mcp__hardsave__save", "mcp__hardsave__log"


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Server]:
    """A server with a project of its own, which no agent works in."""
    (folder := tmp_path / "served").mkdir()
    with starting(folder) as start:
        server = start()
        (server.folder / "a.txt").write_text("of the server\n")
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (folder := tmp_path / "agent").mkdir()
    return folder


def added(stage: Stage, program: str, server: Server) -> None:
    """As the page says it, with the address and the token of this server."""
    stage.environment["HARDSAVE_TOKEN"] = server.token
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    name = Path(program).name
    (typed,) = (line for line in lines if line.startswith(f"{name} mcp add") and "http:" in line)
    _, *words = shlex.split(
        typed.replace("http://127.0.0.1:8765", server.url).replace("hs_…", server.token)
    )
    done = stage.run([program, *words], {})
    assert done.returncode == 0, done


def check(server: Server, result: object) -> None:
    """The agent has saved files of the server, and its model was told so by the log."""
    assert NAME in json.dumps(result), result
    with server.vault() as vault:
        (line,) = vault.timelines()
        (saved,) = vault.timeline(line.name).checkpoints()
        assert saved.name == NAME
        assert saved.files is not None
        assert saved.files.read("a.txt") == b"of the server\n"


@pytest.mark.skipif(claude.CLAUDE is None, reason="Claude Code is not installed")
def test_claude_saves_on_the_server_and_reads_its_log(home: Path, serving: Server) -> None:
    stage = claude.ClaudeStage(home)
    assert claude.CLAUDE is not None
    added(stage, claude.CLAUDE, serving)
    script = [
        Reply(calls=(Call(SAVE, {"name": NAME}, id="toolu_1"),)),
        Reply(calls=(Call(LOG, {}, id="toolu_2"),)),
        Reply("Done."),
    ]
    stage.environment |= WAITS
    *_, result = claude.results(stage.claude(script, "do it")[-1])
    assert result["tool_use_id"] == "toolu_2"
    check(serving, result["content"])


@pytest.mark.skipif(codex.CODEX is None, reason="Codex is not installed")
def test_codex_saves_on_the_server_and_reads_its_log(home: Path, serving: Server) -> None:
    stage = codex.CodexStage(home, codex.CODED)
    assert codex.CODEX is not None
    added(stage, codex.CODEX, serving)
    told = (stage.config / "config.toml").read_text()
    script = [
        Reply(calls=(Call("exec", {"input": f"text(await tools.{name}({given}))"}, id=id),))
        for name, given, id in ((SAVE, f"{{name: '{NAME}'}}", "c1"), (LOG, "{}", "c2"))
    ]
    with ScriptedModel([*script, Reply("Done.")]) as model:
        stage.configure(model.openai_url, trusted=False)
        with (stage.config / "config.toml").open("a") as file:
            file.write(told)
        waits = ("-c", "mcp_servers.hardsave.required=true")  # until the server answers
        done = stage.run(stage.command(*waits, "do it"), {})
        assert done.returncode == 0, done
        last = model.requests[-1].body
    check(serving, [each for each in last["input"] if each.get("call_id") == "c2"][-1]["output"])


@pytest.mark.skipif(qwen.QWEN is None, reason="Qwen Code is not installed")
def test_qwen_saves_on_the_server_and_reads_its_log(home: Path, serving: Server) -> None:
    stage = qwen.QwenStage(home)
    assert qwen.QWEN is not None
    added(stage, qwen.QWEN, serving)
    script = [
        Reply(calls=(Call(SAVE, {"name": NAME}, id="call_1"),)),
        Reply(calls=(Call(LOG, {}, id="call_2"),)),
        *[Reply("Done.")] * 3,
    ]
    asked = stage.qwen(script, "do it")
    (result,) = (each for each in asked[-1]["messages"] if each.get("tool_call_id") == "call_2")
    check(serving, result["content"])
