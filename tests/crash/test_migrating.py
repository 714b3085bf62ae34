"""A migration that ends anywhere leaves the store as it was, or as it becomes; nothing is lost."""

import lzma
import random
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hardsave.stores.sqlite import schema
from tests.crash.launcher import Launcher
from tests.fixtures.test_earlier_stores import FOLDERS

KILLS = ("before", "middle", "after")
FAILURES = ("ENOSPC", "EIO")
KILLED = -9
SAMPLE = 8


class Stage(NamedTuple):
    """A store of an earlier version, as often as it is needed."""

    launcher: Launcher
    base: Path
    earlier: int = 0
    whole: Any = None  # what is settled where nothing has struck
    calls: int = 0

    @property
    def folder(self) -> Path:
        return self.base / "stage"

    def run(self, **options: Any) -> Any:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.base / "prepared", self.folder)
        (ended,) = self.launcher.start(("migrating.run", {"folder": str(self.folder), **options}))
        assert ended.code in (0, KILLED), ended.words
        return ended.answer

    def settled(self) -> dict[str, Any]:
        found: dict[str, Any] = self.launcher.call("migrating.settle", folder=str(self.folder))
        return found

    def faults(self) -> list[str]:
        """What does not hold after an interruption."""
        after = self.settled()
        found = [*after["faults"], *after["left"]]
        if after["version"] not in (self.earlier, schema.VERSION):
            found.append(f"it is of version {after['version']}")
        if after["backup"] != self.whole["backup"]:
            found.append("its backup was touched")
        if after["rows"] != self.whole["rows"]:
            found.append("it holds something else")
        return found


@pytest.fixture(scope="module", params=FOLDERS, ids=[path.name for path in FOLDERS])
def stage(
    request: pytest.FixtureRequest, launcher: Launcher, tmp_path_factory: pytest.TempPathFactory
) -> Stage:
    base = tmp_path_factory.mktemp("migrating")
    source: Path = request.param
    with lzma.open(source / "everything.tar.xz") as data, tarfile.open(fileobj=data) as tar:
        tar.extractall(base / "prepared", filter="data")
    new = Stage(launcher, base, int(source.name.removeprefix("schema")))
    answer = new.run()
    assert answer["error"] == ""
    whole = new.settled()
    assert (whole["version"], whole["faults"]) == (schema.VERSION, [])
    return new._replace(whole=whole, calls=answer["calls"])


def struck(stage: Stage, points: list[tuple[int, str]]) -> list[str]:
    found: list[str] = []
    for at, how in points:
        stage.run(at=at, how=how)
        found += [f"{how} at call {at}: {each}" for each in stage.faults()]
    return found


def every(stage: Stage, ways: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(at, how) for at in range(1, stage.calls + 1) for how in ways]


def test_a_migration_struck_at_some_calls_leaves_the_old_store_or_the_new(
    stage: Stage, ran: Callable[..., None]
) -> None:
    some = random.Random(8).sample(every(stage, KILLS + FAILURES), SAMPLE)
    assert struck(stage, some) == []
    ran("injector", migrations=len(some))


@pytest.mark.torture
@pytest.mark.parametrize("ways", [KILLS, FAILURES], ids=["killed", "failing"])
def test_a_migration_struck_at_every_call_leaves_the_old_store_or_the_new(
    stage: Stage, ways: tuple[str, ...], ran: Callable[..., None]
) -> None:
    points = every(stage, ways)
    assert struck(stage, points) == []
    ran("injector", migrations=len(points))
