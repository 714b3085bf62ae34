"""The real Claude Code under its SDK goes on from where its session was taken back to."""

import json
from pathlib import Path

import pytest

import hardsave
from hardsave.runtime.scripted import Call, Reply, ScriptedModel
from tests.frameworks.claude_sdk import survivor
from tests.frameworks.killing import start

STEPS = 3


def _step(n: int) -> Reply:
    given = {"command": f"echo {n} > {n}.txt", "description": "write"}
    return Reply(f"Step {n}.", (Call("Bash", given, id=f"t{n}"),))


@pytest.mark.parametrize("is_whole", [True, False], ids=["after a result", "after a call"])
def test_it_goes_on_from_where_its_session_was_taken_back_to(
    tmp_path: Path, is_whole: bool
) -> None:
    store, told, work = f"sqlite:///{tmp_path}/s.db", tmp_path / "told", tmp_path / "work"
    with ScriptedModel([*map(_step, range(STEPS)), Reply("Done."), Reply("On.")]) as model:
        program = (survivor.__file__, store, tmp_path, model.anthropic_url)
        home = {"HOME": str(tmp_path)}
        assert start(*program, told=told, kill=None, environment=home)
        with hardsave.open(store) as vault:
            (session,) = vault.sessions()
            line = vault.timeline(session.timeline)
            wanted = '"tool_use_id": "t0"' if is_whole else '"id": "t1"'
            target = next(
                each
                for each in reversed(line.checkpoints(limit=100))
                if wanted in json.dumps(line.load(each)["messages"])
            )
            line.rewind(target, workspace=work)
        assert [each.name for each in work.iterdir()] == ["0.txt"]
        before = len(model.requests)
        assert start(*program, told=told, kill=None, environment=home)
        asked = [each.body for each in model.requests[before:] if each.body.get("tools")]
    first = json.dumps(asked[0]["messages"])
    assert "go on" in first
    assert '"tool_use_id": "t0"' in first
    assert "Step 2." not in first
    assert ('"id": "t1"' in first) == ('"tool_use_id": "t1"' in first)  # no call without a result
