"""From a broken state to going on with the real agent, by the list that `hardsave rewind` opens."""

from pathlib import Path

import pytest

from hardsave.runtime.scripted import Reply, ScriptedModel
from tests.integration.agents import test_claude_code as claude
from tests.integration.agents.stage import HARDSAVE
from tests.integration.agents.test_going_on import at_shell, needs_claude, on_path

ENTER, GO_ON = "\r", "\x07"


@needs_claude
@pytest.mark.parametrize("keys", [[GO_ON], [ENTER, "y", ENTER, ENTER]])
def test_at_most_five_keys_lead_from_a_broken_state_to_going_on(
    keys: list[str], tmp_path: Path
) -> None:
    stage = claude.ClaudeStage(tmp_path)
    assert claude.CLAUDE is not None
    on_path(stage, claude.CLAUDE, "claude")
    stage.hardsave("init", "--yes")
    stage.is_known_to_its_user()
    script = [
        Reply(calls=(claude.bash("echo a > a.txt", "toolu_1"),)),
        Reply(calls=(claude.bash("echo b > b.txt", "toolu_2"),)),
        Reply("Made both."),
        Reply(calls=(claude.bash("rm *.txt; git push; true", "toolu_3"),)),
        Reply("Cleaned up."),
    ]
    with ScriptedModel(script) as model:
        more = {"ANTHROPIC_BASE_URL": model.anthropic_url}
        stage.run(stage.command("make two files"), more)
        (line,) = stage.hardsave("timelines")
        session = line["name"].removeprefix("claude-")
        stage.run(stage.command("--resume", session, "clean up"), more)
        assert stage.files() == {}
        with at_shell(stage, more) as screen:
            screen.wait_for("$")
            screen.type(f"{HARDSAVE} rewind\n")
            screen.wait_for("files  2 created")
            assert "2 prompts, 5 steps" in screen.text
            assert "1 call since reached outside, still done: git push" in screen.text
            waits = ["rewind?", "", "go on now", "Claude Code"]
            for key, text in zip(keys, waits[-len(keys) :], strict=True):
                screen.type(key)
                screen.wait_for(text)
            screen.wait_for("Made both.")
            screen.wait_for("clean up")  # to be edited
    assert stage.files() == {"a.txt": "a\n", "b.txt": "b\n"}
