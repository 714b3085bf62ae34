"""A fork that is interrupted anywhere is finished, or gone with the directories made for it."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crash.launcher import Launcher
from tests.unit.workspace.room import leftovers

KILLS = ("before", "middle", "after")
FAILURES = ("ENOSPC", "EIO")
KILLED = -9
SAMPLE = 8


class Stage(NamedTuple):
    """A fork of a prepared workspace, as often as it is needed, always at the same place."""

    launcher: Launcher
    base: Path
    source: str = ""
    calls: int = 0

    @property
    def folder(self) -> Path:
        return self.base / "stage"

    def run(self, **options: Any) -> Any:
        if self.folder.exists():
            shutil.rmtree(self.folder)
        shutil.copytree(self.base / "prepared", self.folder, symlinks=True)
        (ended,) = self.launcher.start(("forking.run", {"folder": str(self.folder), **options}))
        assert ended.code in (0, KILLED), ended.words
        return ended.answer

    def faults(self) -> list[str]:
        """What does not hold after an interruption."""
        after = self.launcher.call("forking.settle", folder=str(self.folder))
        found = [*after["faults"], *after["journals"]]
        if after["is_forked"] != after["is_there"]:
            found.append(f"forked: {after['is_forked']}, and a directory: {after['is_there']}")
        if after["files"] != self.source:
            found.append("the files are others")
        return found + [f"left behind: {path}" for path in leftovers(self.folder / "new")]


@pytest.fixture(scope="module")
def stage(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    unmeasured = Stage(launcher, tmp_path_factory.mktemp("forking"))
    source = launcher.call("forking.prepare", folder=str(unmeasured.folder))
    unmeasured = unmeasured._replace(source=source)
    for left in (unmeasured.folder / "disk").rglob("*-shm"):
        left.unlink()
    unmeasured.folder.rename(unmeasured.base / "prepared")
    answer = unmeasured.run()
    assert answer["error"] == ""
    assert unmeasured.faults() == []
    return unmeasured._replace(calls=answer["calls"])


def struck(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        stage.run(at=at, how=how)
        found += [f"{how} at call {at}: {each}" for each in stage.faults()]
    return found


def every(stage: Stage, ways: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(at, how) for at in range(1, stage.calls + 1) for how in ways]


@pytest.mark.parametrize("ways", [KILLS, FAILURES], ids=["killed", "failing"])
def test_a_fork_struck_at_some_calls_is_finished_or_gone(
    stage: Stage, ways: tuple[str, ...], ran: Callable[..., None]
) -> None:
    points = random.Random(9).sample(every(stage, ways), SAMPLE)
    assert struck(stage, points) == []
    ran("injector", forks_struck=len(points))


@pytest.mark.torture
@pytest.mark.parametrize("ways", [KILLS, FAILURES], ids=["killed", "failing"])
def test_a_fork_struck_at_every_call_is_finished_or_gone(
    stage: Stage, ways: tuple[str, ...], ran: Callable[..., None]
) -> None:
    points = every(stage, ways)
    assert struck(stage, points) == []
    ran("injector", forks_struck=len(points))
