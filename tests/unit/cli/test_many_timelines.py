"""A store with more timelines than a command looks at by default."""

from pathlib import Path

import pytest

import hardsave
from hardsave.cli import known_timelines
from hardsave.cli import session as sessions
from hardsave.cli.commands import log as log_command
from hardsave.cli.commands import timelines
from tests.unit.cli.conftest import Run


@pytest.fixture
def many(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six timelines, of which a command looks at three."""
    monkeypatch.setattr(known_timelines, "NEWEST", 3)
    monkeypatch.setattr(sessions, "NEWEST", 3)
    monkeypatch.setattr(log_command, "NEWEST", 3)
    with hardsave.open() as vault:
        for at in range(6):
            line = vault.timeline(f"run-{at}")
            line.save(
                {"n": at}, status="failed" if at == 0 else "running", description=f"step {at}"
            )
    return project


def test_a_log_shows_the_newest_of_all(many: Path, run: Run) -> None:
    shown = run("log", "--all", "-n", "2").out
    assert "run-5" in shown
    assert "run-4" in shown
    assert "run-3" not in shown


def test_a_longer_log_reaches_the_older_ones(many: Path, run: Run) -> None:
    shown = run("log", "--all", "-n", "10").out
    assert all(f"run-{at}" in shown for at in range(6))
    assert all(f"run-{at}" in run("log", "-n", "10").out for at in range(6))


def test_a_filter_finds_what_is_older(many: Path, run: Run) -> None:
    assert "run-0" in run("log", "--all", "--status", "failed").out
    assert "run-0" in run("log", "--status", "failed").out


def test_an_older_one_can_be_named(many: Path, run: Run) -> None:
    assert "run-0:1" in run("log", "--timeline", "run-0", "--steps").out
    assert "step 0" in run("show", "@", "--timeline", "run-0").out


def test_timelines_are_listed_newest_first_as_many_as_asked_for(many: Path, run: Run) -> None:
    def listed(*words: str) -> list[str]:
        return [line.split()[0] for line in run("timelines", *words).out.splitlines()]

    assert listed("list", "-n", "2") == ["run-5", "run-4"]
    assert listed("list", "-n", "5") == ["run-5", "run-4", "run-3", "run-2", "run-1"]
    assert len(listed()) == 6


def test_a_list_that_leaves_some_out_says_so_and_programs_get_all(
    many: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "LIMIT", 2)
    shown = run("timelines")
    assert len(shown.out.splitlines()) == 2
    assert "these are the newest 2; -n 8 shows more" in shown.err
    assert "newest" not in run("timelines", "list", "-n", "6").err
    assert len(run("timelines", "--json").data) == 6
    assert len(run("timelines", "list", "-n", "3", "--json").data) == 3


def test_what_is_older_than_a_moment_is_found_on_any(many: Path, run: Run) -> None:
    done = run("rewind", "--status", "failed", "--dry-run", "--json")
    assert "run-0" in done.out
