"""Commands run in this process, in a project and a home of their own."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hardsave
from hardsave.cli.main import main


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Its one JSON document."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a file, in which nothing was saved yet."""
    for variable in ("HARDSAVE_STORE", "HARDSAVE_TIMELINE", "PAGER", "HARDSAVE_PAGER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    (tmp_path / "claude").mkdir()
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))  # where it never was
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


def talk(*texts: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text} for text in texts]


@pytest.fixture
def session_1(project: Path) -> Path:
    """Three checkpoints of an agent, each with its files; the second has a name."""
    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        line.save({"messages": talk("hello"), "turn": 1}, workspace=".")
        (project / "a.txt").write_text("one\ntwo\n")
        line.append({"messages": talk("a plan"), "turn": 2}, name="plan-ready", workspace=".")
        (project / "b.txt").write_text("new\n")
        line.append({"messages": talk("done"), "turn": 3}, workspace=".")
    return project
