"""A restore of a git position that is interrupted anywhere is finished by the same call."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crash import gitrestoring
from tests.crash.launcher import Launcher
from tests.unit.workspace.git_room import present
from tests.unit.workspace.repository import Repository
from tests.unit.workspace.room import picture

KILLS = ("before", "middle", "after")
SAMPLE = 6
KILLED = -9


class Stage(NamedTuple):
    """The same repository before the same restore, as often as it is needed."""

    launcher: Launcher
    base: Path
    calls: int

    def fresh(self, name: str) -> Path:
        folder = self.base / name
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(self.base / "prepared", folder, symlinks=True)
        return folder

    def run(self, folder: Path, **options: Any) -> Any:
        (ended,) = self.launcher.start(("gitrestoring.run", {"folder": str(folder), **options}))
        assert ended.code in (0, KILLED), ended.words
        return ended.answer if ended.code == 0 else None


@pytest.fixture(scope="module", params=["rebase", "no commits"])
def stage(
    launcher: Launcher,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Stage:
    base = tmp_path_factory.mktemp("gitrestoring")
    launcher.call("gitrestoring.prepare", folder=str(base / "prepared"), scenario=request.param)
    unmeasured = Stage(launcher, base, 0)
    folder = unmeasured.fresh("whole")
    answer = unmeasured.run(folder)
    assert answer["error"] == ""
    assert faults(folder) == []
    return unmeasured._replace(calls=answer["calls"])


def faults(folder: Path) -> list[str]:
    """What does not hold after the restore was finished."""
    _, target = gitrestoring.positions(folder)
    now = present(folder / "work", target)
    found = [] if now == target else [f"it stands elsewhere: {gitrestoring.strangers(folder)}"]
    git = folder / "work/.git"
    found += [f"left: {path}" for path in git.rglob("*.lock")]
    found += [f"left: {path}" for path in git.glob("hardsave-*")]
    repository = Repository(folder / "work")
    found += repository.git("fsck", "--no-dangling", "--strict").decode().splitlines()
    pins = repository.line("for-each-ref", "--format=%(refname)", "refs/hardsave").splitlines()
    found += [] if f"refs/hardsave/{gitrestoring.ID}/HEAD" in pins else ["nothing is pinned"]
    for log in (path for path in (git / "logs").rglob("*") if path.is_file()):
        lines = [line for line in log.read_text().splitlines() if "hardsave: rewind" in line]
        if len(lines) > 1:
            found.append(f"{log.name} tells it {len(lines)} times")
    if "hardsave: rewind" not in (git / "logs/HEAD").read_text():
        found.append("the reflog does not tell it")
    return found


def kill(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        folder = stage.fresh("struck")
        stage.run(folder, at=at, how=how)
        found += [f"{how} call {at}: torn: {each}" for each in gitrestoring.strangers(folder)]
        if at % 3 == 0:  # and again, while it recovers
            stage.run(folder, at=at // 2 + 1, how=how)
        answer = stage.run(folder)
        ended = [answer["error"]] if answer["error"] else faults(folder)
        found += [f"{how} call {at}: {each}" for each in ended]
    return found


def fail(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        folder = stage.fresh("failed")
        inside = picture(folder / "work/.git")
        answer = stage.run(folder, at=at, how=how)
        if "nothing was changed" in answer["error"]:
            now = {path for path in picture(folder / "work/.git") if b"hardsave" not in path}
            if gone := {path for path in inside if path not in now}:
                found.append(f"{how} at call {at}: something was changed: {gone}")
        elif answer["error"] and "recover" not in answer["error"]:
            found.append(f"{how} at call {at}: {answer['error']}")
        found += [f"{how} at call {at}: torn: {each}" for each in gitrestoring.strangers(folder)]
        again = stage.run(folder)
        ended = [again["error"]] if again["error"] else faults(folder)
        found += [f"{how} at call {at}: {each}" for each in ended]
    return found


def every(stage: Stage, ways: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(at, how) for at in range(1, stage.calls + 1) for how in ways]


def test_a_git_restore_killed_at_some_calls_is_finished(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = random.Random(6).sample(every(stage, KILLS), SAMPLE)
    assert kill(stage, points) == []
    ran("injector", git_restores_killed=len(points))


def test_a_git_restore_on_a_failing_disk_can_be_repeated(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = random.Random(7).sample(every(stage, ("ENOSPC", "EIO")), SAMPLE)
    assert fail(stage, points) == []
    ran("injector", git_restores_failed=len(points))


@pytest.mark.torture
def test_a_git_restore_killed_at_every_call_is_finished(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = every(stage, KILLS)
    assert kill(stage, points) == []
    ran("injector", git_restores_killed=len(points))


@pytest.mark.torture
def test_a_git_restore_on_a_disk_that_fails_anywhere_can_be_repeated(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = every(stage, ("ENOSPC", "EIO"))
    assert fail(stage, points) == []
    ran("injector", git_restores_failed=len(points))
