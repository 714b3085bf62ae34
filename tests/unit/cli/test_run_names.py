from datetime import UTC, datetime

import pytest

from hardsave.cli.commands.run import named_after

NOON = datetime(2026, 6, 15, 12, 0, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("claude", "claude-20260615-120007-7"),
        ("/usr/bin/my agent", "my-agent-20260615-120007-7"),
        ("../--", "run-20260615-120007-7"),
    ],
)
def test_a_run_is_called_after_what_runs_and_since_when(program: str, name: str) -> None:
    assert named_after(program, NOON, 7) == name


def test_two_runs_of_one_second_have_timelines_of_their_own() -> None:
    assert named_after("claude", NOON, 7) != named_after("claude", NOON, 8)
