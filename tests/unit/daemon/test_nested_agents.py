"""An agent that another one has started."""

import pytest

from hardsave.daemon import running_agents

HOOK = ("hardsave-hook", "claude-code")
SHELL = ("/bin/zsh", "-c", "eval 'codex exec fix'")


@pytest.mark.parametrize(
    ("above", "agents"),
    [
        ([HOOK, ("sh", "-c", "hardsave-hook"), ("claude",)], 1),
        ([HOOK, ("claude", "-p"), ("bash", "-c", "claude -p")], 1),
        ([HOOK, ("/opt/codex",), ("node", "/usr/bin/codex")], 1),  # its program, and what starts it
        ([HOOK, ("codex", "exec"), SHELL, ("claude",)], 2),
        ([HOOK, ("claude", "-p"), SHELL, ("claude",)], 2),
        ([HOOK, ("codex", "exec"), ("claude",)], 2),
        ([HOOK, ("bash", "-c", "hook")], 0),
    ],
)
def test_agents_are_counted_among_the_processes_above_a_hook(
    above: list[tuple[str, ...]], agents: int
) -> None:
    assert running_agents.count_agents(above) == agents


@pytest.mark.parametrize("told", ["", "x", "x:t", "-1:t"])
def test_what_no_run_has_told_is_none(told: str) -> None:
    assert running_agents.run_around({running_agents.RUN_VARIABLE: told}) is None
    assert not running_agents.is_inner({running_agents.RUN_VARIABLE: told}, 1)


def test_a_run_is_known_by_what_it_tells() -> None:
    run = running_agents.Run(7, "a:b")
    assert running_agents.run_around({running_agents.RUN_VARIABLE: run.dump()}) == run
    assert running_agents.run_around({}) is None
