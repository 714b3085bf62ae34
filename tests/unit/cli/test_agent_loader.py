"""Agents named on the command line: what lies beside them is found, also when they are called."""

import sys
from pathlib import Path

import pytest

from hardsave.cli.agent_loader import load_agents

AGENTS = """
import sys
sys.path.insert(0, "lib")
import beside_early

def agent(job):
    import beside_late
    return beside_late.NAME

AGENTS = {"one": agent, "early": beside_early.NAME}
"""


def test_what_lies_beside_agents_is_found_when_they_are_loaded_and_when_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    for name in ("early", "late"):
        (tmp_path / f"beside_{name}.py").write_text(f"NAME = {name!r}")
        monkeypatch.delitem(sys.modules, f"beside_{name}", raising=False)
    (tmp_path / "agents.py").write_text(AGENTS)
    found = load_agents(f"{tmp_path / 'agents.py'}:AGENTS")
    assert found["early"] == "early"
    assert found["one"](None) == "late"
    assert sys.path == ["lib", *before, str(tmp_path)]
