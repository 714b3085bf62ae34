"""A restore that is interrupted anywhere leaves each file old or new, and can be finished."""

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crash import restoring
from tests.crash.launcher import Launcher
from tests.unit.workspace.room import leftovers, picture

KILLS = ("before", "middle", "after")
SAMPLE = 10
KILLED = -9


class Stage(NamedTuple):
    """The same two states of a workspace, as often as they are needed."""

    launcher: Launcher
    base: Path
    roots: dict[str, str]
    present: dict[bytes, object]
    target: dict[bytes, object]
    calls: int

    def fresh(self, name: str) -> Path:
        folder = self.base / name
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(self.base / "prepared", folder, symlinks=True)
        relink(folder)
        return folder

    def run(self, folder: Path, **options: Any) -> Any:
        (ended,) = self.launcher.start(
            ("restoring.run", {"folder": str(folder), **self.roots, **options})
        )
        assert ended.code in (0, KILLED), ended.words
        return ended.answer if ended.code == 0 else None


def relink(folder: Path) -> None:
    """A copy is no copy if files that were one are two; here the present has none."""
    assert not (folder / "work/one").samefile(folder / "work/two")


@pytest.fixture(scope="module")
def stage(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    base = tmp_path_factory.mktemp("restoring")
    roots = launcher.call("restoring.prepare", folder=str(base / "prepared"))
    present = picture(base / "prepared/work")
    unmeasured = Stage(launcher, base, roots, present, {}, 0)
    folder = unmeasured.fresh("whole")
    answer = unmeasured.run(folder)
    assert (answer["error"], answer["conflicts"]) == ("", [])
    target = picture(folder / "work")
    assert repr(sorted(target.items())) == (base / "prepared/target").read_text()
    return unmeasured._replace(target=target, calls=answer["calls"])


def faults(stage: Stage, folder: Path, *, back: bool) -> list[str]:
    """What does not hold after a process died in the middle."""
    work = folder / "work"
    found = [
        f"{path!r} is torn"
        for path, seen in picture(work).items()
        if b".hardsave-tmp-" not in path and not is_old_or_new(stage, path, seen)
    ]
    had_journal = (folder / "journal").exists()
    if had_journal:
        answer = stage.run(folder, recover=True, back=back)
        found += [answer["error"]] if answer["error"] else []
        found += answer["conflicts"]
    seen = picture(work)
    expected = [stage.present if back else stage.target]
    if not had_journal:
        expected = [stage.present, stage.target]
    if seen not in expected:
        wrong = {path for each in expected for path, _ in seen.items() ^ each.items()}
        found.append(f"not what it should be: {sorted(wrong)}")
    found += [f"left behind: {path.name}" for path in leftovers(work)]
    if (folder / "journal").exists():
        found.append("the journal is still there")
    return found


def is_old_or_new(stage: Stage, path: bytes, seen: object) -> bool:
    """Directories are open while a restore goes on, and linked files may be parted already."""
    known = [each[path] for each in (stage.present, stage.target) if path in each]
    return any(_bare(seen) == _bare(each) for each in known)


def _bare(seen: object) -> object:
    assert isinstance(seen, tuple)
    return seen[:1] if seen[0] == "directory" else seen[:3]


def kill(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        folder = stage.fresh("struck")
        stage.run(folder, at=at, how=how)
        back = bool(at % 2)
        if at % 3 == 0 and (folder / "journal").exists():  # and again, while it recovers
            stage.run(folder, at=at // 2 + 1, how=how, recover=True, back=back)
        found += [f"{how} call {at}: {each}" for each in faults(stage, folder, back=back)]
    return found


def fail(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        folder = stage.fresh("failed")
        answer = stage.run(folder, at=at, how=how)
        if answer["error"] and "no file was changed" in answer["error"]:
            if picture(folder / "work") != stage.present or (folder / "journal").exists():
                found.append(f"{how} at call {at}: something was changed")
            answer = stage.run(folder)  # the same again, and now nothing fails
            assert answer["error"] == "", answer
        elif answer["error"] and "recover" not in answer["error"]:
            found.append(f"{how} at call {at}: {answer['error']}")
        found += [f"{how} at call {at}: {each}" for each in faults(stage, folder, back=False)]
    return found


def every(stage: Stage, ways: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(at, how) for at in range(1, stage.calls + 1) for how in ways]


def test_a_restore_killed_at_some_calls_is_finished_or_taken_back(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = random.Random(4).sample(every(stage, KILLS), SAMPLE)
    assert kill(stage, points) == []
    ran("injector", restores_killed=len(points))


def test_a_restore_on_a_failing_disk_loses_nothing_and_can_be_repeated(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = random.Random(5).sample(every(stage, ("ENOSPC", "EIO")), SAMPLE)
    assert fail(stage, points) == []
    ran("injector", restores_failed=len(points))


def test_a_restore_offers_enough_calls_to_be_struck_at(stage: Stage) -> None:
    assert stage.calls >= 60
    assert set(restoring.NEEDS_SPACE) - {"create"} <= set(restoring.CALLS)


def test_a_user_who_is_not_root_restores_what_is_in_a_read_only_directory(stage: Stage) -> None:
    folder = Path(tempfile.mkdtemp())  # not below a directory that is root's alone
    try:
        shutil.copytree(stage.base / "prepared", folder, symlinks=True, dirs_exist_ok=True)
        answer = stage.launcher.call("restoring.run_as_nobody", folder=str(folder), **stage.roots)
        assert (answer["error"], answer["conflicts"]) == ("", [])
        assert picture(folder / "work") == stage.target
    finally:
        shutil.rmtree(folder)


@pytest.mark.torture
def test_a_restore_killed_at_every_call_is_finished_or_taken_back(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = every(stage, KILLS)
    assert kill(stage, points) == []
    ran("injector", restores_killed=len(points))


@pytest.mark.torture
def test_a_restore_on_a_disk_that_fails_anywhere_loses_nothing(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = every(stage, ("ENOSPC", "EIO"))
    assert fail(stage, points) == []
    ran("injector", restores_failed=len(points))
