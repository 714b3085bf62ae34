"""What the page about skill and MCP server says is so."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from hardsave.cli.main import main
from hardsave.cli.mcp_server import answers, tools
from hardsave.cli.mcp_server.tools import Common
from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "howto" / "mcp.md"


def test_it_lists_every_tool_and_the_size_of_an_answer() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert named == [each.name for each in tools.offered(Common(allow_rewind=True))]
    assert f"at most {answers.LONGEST:,} characters" in PAGE.read_text()


def test_what_init_is_typed_for_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home := tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    home.mkdir()
    typed = [line.partition("#")[0].split()[1:] for line in blocks(PAGE, "sh")[0].splitlines()]
    assert len(typed) == 3
    for words, is_there in zip(typed, (True, True, False), strict=True):
        assert main([*words, "--yes"]) == 0
        assert (home / "skills" / "hardsave" / "SKILL.md").exists() == is_there


def test_its_settings_start_the_server() -> None:
    (codex,) = blocks(PAGE, "toml")
    others, *_ = blocks(PAGE, "json")
    for told in (
        tomllib.loads(codex)["mcp_servers"]["hardsave"],
        json.loads(others)["mcpServers"]["hardsave"],
    ):
        assert [told["command"], *told["args"]] == ["hardsave", "mcp"]
