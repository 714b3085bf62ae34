"""A rewind that is interrupted anywhere: head, files and tasks agree, and undo brings the present
back."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crash.launcher import Launcher
from tests.unit.workspace.room import leftovers, picture

KILLS = ("before", "middle", "after")
FAILURES = ("ENOSPC", "EIO")
KILLED = -9
SAMPLE = 6
WAYS_OUT = ("repeat", "recover", "try again", "undo", "verify", "free", "see to", "retry")


class Stage(NamedTuple):
    """One action on a prepared store and workspace, as often as it is needed. The place is
    always the same: a store knows a workspace by its path."""

    launcher: Launcher
    base: Path
    action: str
    target: str
    present: str
    calls: int

    @property
    def folder(self) -> Path:
        return self.base / "stage"

    def fresh(self) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder)
        shutil.copytree(self.base / "prepared", self.folder, symlinks=True)
        one, two = self.folder / "work/one", self.folder / "work/two"
        if self.action == "undo":  # a copy is no copy if files that were one are two
            two.unlink()
            os.link(one, two)

    def run(self, **options: Any) -> Any:
        given = {"folder": str(self.folder), "action": self.action, **options}
        (ended,) = self.launcher.start(("rewinding.run", given))
        assert ended.code in (0, KILLED), ended.words
        return ended.answer if ended.code == 0 else None

    def faults(self) -> list[str]:
        """What does not hold after an interruption."""
        work = self.folder / "work"
        known = [dict(eval(each)) for each in (self.present, self.target)]  # noqa: S307 # our own
        found = [
            f"{path!r} is torn"
            for path, at in picture(work).items()
            if b".hardsave-tmp-" not in path and not any(_same(at, all.get(path)) for all in known)
        ]
        after = self.launcher.call("rewinding.settle", folder=str(self.folder), action=self.action)
        by_state = {1: self.target, 2: self.present}
        by_task = {1: "rolled_back", 2: "completed"}
        pairs = [after["state"], after["files"], *after["then"][:2], *after["then"][3:]]
        for state, files in zip(pairs[::2], pairs[1::2], strict=True):
            if files != by_state[state["turn"]]:
                found.append(f"with {state} the files are not those: {_differing(files, by_state)}")
            if state["task"] != by_task[state["turn"]]:
                found.append(f"head and task do not agree: {state}")
        if len({each["turn"] for each in pairs[:4:2]}) != 2:
            found.append("the other side was not reached")
        found += [*after["faults"], *after["journals"], *after["then"][2]]
        return found + [f"left behind: {path.name}" for path in leftovers(work)]


def _same(seen: object, known: object) -> bool:
    """Directories are open while a restore goes on, and linked files may be parted already."""
    assert isinstance(seen, tuple)
    if not isinstance(known, tuple):
        return False
    return seen[:1] == known[:1] if seen[0] == "directory" else seen[:3] == known[:3]


def _differing(files: str, by_state: dict[int, str]) -> list[bytes]:
    seen = dict(eval(files))  # noqa: S307 # our own words
    other = dict(eval(by_state[1]))  # noqa: S307
    return sorted(path for path in seen.keys() | other if seen.get(path) != other.get(path))


@pytest.fixture(scope="module", params=["rewind", "undo"])
def stage(
    launcher: Launcher, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Stage:
    base = tmp_path_factory.mktemp("rewinding")
    action: str = request.param
    made = launcher.call("rewinding.prepare", folder=str(base / "stage"), action=action)
    for left in (base / "stage/disk").rglob("*-shm"):
        left.unlink()
    (base / "stage").rename(base / "prepared")
    unmeasured = Stage(launcher, base, action, made["target"], made["present"], 0)
    unmeasured.fresh()
    answer = unmeasured.run()
    assert answer["error"] == ""
    assert unmeasured.faults() == []
    return unmeasured._replace(calls=answer["calls"])


def kill(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        stage.fresh()
        stage.run(at=at, how=how)
        found += [f"killed {how} call {at}: {each}" for each in stage.faults()]
    return found


def fail(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        stage.fresh()
        error = stage.run(at=at, how=how)["error"]
        if error and not any(way in error for way in WAYS_OUT):
            found.append(f"{how} at call {at} does not say what to do: {error}")
        found += [f"{how} at call {at}: {each}" for each in stage.faults()]
    return found


def every(stage: Stage, ways: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(at, how) for at in range(1, stage.calls + 1) for how in ways]


def test_a_rewind_killed_at_some_calls_leaves_head_and_files_that_agree(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = random.Random(7).sample(every(stage, KILLS), SAMPLE)
    assert kill(stage, points) == []
    ran("injector", rewinds_killed=len(points))


def test_a_rewind_on_a_failing_disk_loses_nothing_and_says_what_to_do(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = random.Random(8).sample(every(stage, FAILURES), SAMPLE)
    assert fail(stage, points) == []
    ran("injector", rewinds_failed=len(points))


def test_a_rewind_offers_enough_calls_to_be_struck_at(stage: Stage) -> None:
    assert stage.calls >= 100


def crowd(launcher: Launcher, folder: Path, count: int) -> None:
    """Two processes save a workspace while a third takes its own part of it back and forth."""
    launcher.call("rewinding.begin", folder=str(folder), names=["cid", "ada", "bob"])
    given = {"folder": str(folder), "count": count}
    ended = launcher.start(
        ("rewinding.save_often", {**given, "name": "ada"}),
        ("rewinding.save_often", {**given, "name": "bob"}),
        ("rewinding.rewind_often", {**given, "name": "cid"}),
    )
    for each in ended:
        assert (each.code, each.answer) == (0, []), each.words
    after = launcher.call("rewinding.summary", folder=str(folder))
    assert after["counts"]["ada"] == after["counts"]["bob"] == count + 1
    assert after["counts"]["cid"] >= count + 1
    assert (after["faults"], after["journals"]) == ([], [])
    for name in ("ada", "bob"):
        assert (folder / f"work/{name}/file").read_text() == f"{name} {count}"
    assert leftovers(folder / "work") == []


def test_two_processes_save_while_a_third_rewinds(launcher: Launcher, tmp_path: Path) -> None:
    crowd(launcher, tmp_path, 6)


@pytest.mark.torture
def test_two_processes_save_for_long_while_a_third_rewinds(
    launcher: Launcher, tmp_path: Path
) -> None:
    crowd(launcher, tmp_path, 60)


@pytest.mark.torture
def test_a_rewind_killed_at_every_call_leaves_head_and_files_that_agree(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = every(stage, KILLS)
    assert kill(stage, points) == []
    ran("injector", rewinds_killed=len(points))


@pytest.mark.torture
def test_a_rewind_on_a_disk_that_fails_anywhere_loses_nothing(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = every(stage, FAILURES)
    assert fail(stage, points) == []
    ran("injector", rewinds_failed=len(points))
