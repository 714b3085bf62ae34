"""A process that is killed at any write of the ledger leaves one that goes on by itself."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import events
from tests.crash.injector import How, Strike
from tests.crash.launcher import Launcher

KILLED = -9
WAYS: tuple[How, ...] = ("before", "middle", "after")
SAMPLE = 10
PARTS = 6


class Stage:
    """Runs of the same work, each in a folder of its own."""

    def __init__(self, launcher: Launcher, base: Path) -> None:
        self.launcher = launcher
        self.base = base
        folder, _ = self.run(None)
        self.events = events.calls(events.read(folder / "journal"))

    def points(self) -> list[Strike]:
        return [
            Strike(event.call, how)
            for event in self.events
            for how in WAYS
            if Strike(event.call, how).fits(event)
        ]

    def run(self, strike: Strike | None) -> tuple[Path, list[str]]:
        """The folder that was worked in, and what the process told."""
        folder = self.base / ("whole" if strike is None else "struck")
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "disk").mkdir(parents=True)
        given = {
            "folder": str(folder / "disk"),
            "told": str(folder / "told"),
            "journal": str(folder / "journal"),
            "strike": None if strike is None else (strike.at, strike.how, False),
        }
        (ended,) = self.launcher.start(("working.run", given))
        assert ended.code in (0, KILLED), ended.words
        return folder, (folder / "told").read_text().splitlines()

    def faults(self, strike: Strike | None) -> list[str]:
        folder, told = self.run(strike)
        found = self.launcher.call("working.check", folder=str(folder / "disk"), told=told)
        return [f"{strike}: {fault}" for fault in found]


@pytest.fixture(scope="module")
def stage(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(launcher, tmp_path_factory.mktemp("working"))


def test_a_run_that_nobody_disturbs_passes_the_same_checks(stage: Stage) -> None:
    assert stage.faults(None) == []


def test_a_process_killed_at_some_writes_goes_on_and_repeats_nothing(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = random.Random("ledger").sample(stage.points(), SAMPLE)
    assert [fault for point in points for fault in stage.faults(point)] == []
    ran("injector", kill_points=len(points))


@pytest.mark.torture
@pytest.mark.parametrize("part", range(PARTS))
def test_a_process_killed_at_every_write_goes_on_and_repeats_nothing(
    stage: Stage, part: int, ran: Callable[..., None]
) -> None:
    """Every write in one of three ways; the parts may run side by side."""
    points = stage.points()
    assert len({point.at for point in points}) >= 300
    random.Random("ways").shuffle(points)
    points = list({point.at: point for point in points}.values())[part::PARTS]
    assert [fault for point in points for fault in stage.faults(point)] == []
    ran("injector", kill_points=len(points))
