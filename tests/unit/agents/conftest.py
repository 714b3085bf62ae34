"""A project and a home of one's own, and what Claude Code would write."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("HARDSAVE_STORE", "HARDSAVE_TIMELINE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    monkeypatch.chdir(folder)
    return folder


def line(type: str, **more: Any) -> str:
    """A line of a transcript."""
    return json.dumps({"type": type, "sessionId": "s-1", **more})


def called(*ids: str) -> str:
    blocks = [{"type": "tool_use", "id": id, "name": "Bash", "input": {}} for id in ids]
    return said("assistant", blocks, uuid=f"u-{ids[0]}", version="2.1.0", cwd="/p")


def answered(id: str) -> str:
    return said("user", [{"type": "tool_result", "tool_use_id": id, "content": "ok"}])


def said(role: str, content: Any, **more: Any) -> str:
    return line(role, message={"role": role, "content": content}, **more)
