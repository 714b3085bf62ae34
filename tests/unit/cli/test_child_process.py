"""A program that is run as an attempt at a task, and signals that come at the worst moments."""

import signal
from pathlib import Path
from typing import Any

import pytest

from hardsave.tasks.child_lock import ChildLock
from tests.unit.cli.conftest import Run


@pytest.mark.parametrize("moment", ["__enter__", "started"])
@pytest.mark.parametrize(
    ("number", "state", "made"),
    [(signal.SIGINT, "completed", True), (signal.SIGTERM, "pending", False)],
)
def test_a_signal_that_comes_while_a_program_is_started_does_not_leave_it_behind(
    run: Run,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    number: signal.Signals,
    state: str,
    *,
    made: bool,
) -> None:
    """SIGINT is told the program by its terminal, which it has none of here. That the task is
    given to no other process while the program works is what matters."""
    ours = getattr(ChildLock, moment)

    def interrupted(*args: Any) -> Any:
        signal.raise_signal(number)
        return ours(*args)

    monkeypatch.setattr(ChildLock, moment, interrupted)
    run("tasks", "add", "t1")
    ran = run("tasks", "start", "t1", "--", "sh", "-c", "sleep 0.2; echo made > made.txt")
    found = run("tasks", "show", "t1", "--json").data
    assert (found["state"], (project / "made.txt").exists()) == (state, made)
    assert ran.code == (0 if made else 1)
    assert found["error_message"] == (None if made else "sh ended with exit code 143")
