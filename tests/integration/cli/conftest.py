"""A project in which an agent has worked, and commands as people start them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import hardsave
from tests.integration.cli.screen import Screen

HARDSAVE = [sys.executable, "-m", "hardsave"]
SAID = ["Please fix the parser", "I read the test", "A plan", "Changed the parser", "All green"]


class Project(NamedTuple):
    """A directory, and the environment in which its store is found."""

    path: Path
    environment: Mapping[str, str]

    def screen(self, *arguments: str, width: int = 100, height: int = 30, **more: str) -> Screen:
        """A command on a terminal."""
        return Screen(
            [*HARDSAVE, *arguments],
            cwd=self.path,
            environment={**self.environment, **more},
            width=width,
            height=height,
        )

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A command whose output goes into a pipe."""
        return subprocess.run(
            [*HARDSAVE, *arguments],
            cwd=self.path,
            env={"PATH": os.environ["PATH"], **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.path.iterdir()}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Five checkpoints on `session-1`; the third is called plan-ready."""
    data = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    monkeypatch.delenv("HARDSAVE_STORE", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        for number, text in enumerate(SAID, 1):
            (folder / "parser.py").write_text("# a line\n" * number)
            message = {"role": "assistant", "content": text}
            line.append(
                {"messages": [message], "turn": number},
                name="plan-ready" if number == 3 else None,
                workspace=folder,
            )
    environment = {"XDG_DATA_HOME": str(data), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    return Project(folder, environment)
