"""A process is killed in the middle of an act with a key: the same request does it once."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crash import acting
from tests.crash.launcher import Launcher

KILLED = -9
WAYS = ("before", "middle", "after")


class Stage(NamedTuple):
    """One act on a prepared store, as often as it is needed."""

    launcher: Launcher
    base: Path
    act: str
    calls: int = 0
    wanted: Any = None  # what is there before the act, after it, after later work, and repeated

    @property
    def folder(self) -> Path:
        return self.base / "stage"

    def fresh(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.base / "prepared", self.folder)

    def call(self, function: str, **given: Any) -> Any:
        return self.launcher.call(f"acting.{function}", folder=str(self.folder), **given)

    def kill(self, at: int, how: str) -> list[str]:
        """What does not hold after a process was killed there."""
        self.fresh()
        given = {"folder": str(self.folder), "act": self.act, "at": at, "how": how}
        (ended,) = self.launcher.start(("acting.run", given))
        assert ended.code == KILLED, ended.words
        found = []
        left, *after = self.call("repeat", act=self.act)
        if left not in self.wanted[:2]:
            found.append(f"it is half done: {left}")
        if after != self.wanted[1:]:
            found.append(f"the same request came to {after}")
        return [f"killed {how} call {at}: {each}" for each in found]


@pytest.fixture(scope="module", params=[*acting.ACTS])
def stage(
    launcher: Launcher, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Stage:
    act: str = request.param
    made = Stage(launcher, tmp_path_factory.mktemp("acting"), act)
    made.call("prepare", act=act)
    for left in (made.folder / "disk").rglob("*-shm"):
        left.unlink()
    made.folder.rename(made.base / "prepared")
    made.fresh()
    wanted = made.call("repeat", act=act)
    made.fresh()
    return made._replace(calls=made.call("run", act=act), wanted=wanted)


def test_an_act_that_was_killed_at_any_call_is_done_once_by_the_same_request(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = [(at, WAYS[at % 3]) for at in range(1, stage.calls + 1)]
    assert [fault for point in points for fault in stage.kill(*point)] == []
    ran("injector", acts_killed=len(points))


def test_the_act_does_what_it_says_and_its_repetition_nothing(stage: Stage) -> None:
    before, done, later, again = stage.wanted
    assert before["happened"] == done["happened"][:-1]
    assert again == later
    assert later["happened"] != done["happened"]
    assert stage.calls >= 3


@pytest.mark.torture
def test_an_act_that_was_killed_anywhere_is_done_once_by_the_same_request(
    stage: Stage, ran: Callable[..., None]
) -> None:
    points = [(at, how) for at in range(1, stage.calls + 1) for how in WAYS]
    assert [fault for point in points for fault in stage.kill(*point)] == []
    ran("injector", acts_killed=len(points))
