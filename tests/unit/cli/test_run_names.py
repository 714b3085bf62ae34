from datetime import UTC, datetime

import pytest

from hardsave.cli.commands.run import random_suffix, timeline_name

NOON = datetime(2026, 6, 15, 12, 0, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("claude", "claude-20260615-120007-c0ffee"),
        ("/usr/bin/my agent", "my-agent-20260615-120007-c0ffee"),
        ("../--", "run-20260615-120007-c0ffee"),
    ],
)
def test_a_run_is_called_after_what_runs_and_since_when(program: str, name: str) -> None:
    assert timeline_name(program, NOON, "c0ffee") == name


def test_runs_of_one_second_have_timelines_of_their_own() -> None:
    """Also in containers, where the processes have one number."""
    names = {timeline_name("claude", NOON, random_suffix()) for _ in range(20)}
    assert len(names) == 20
