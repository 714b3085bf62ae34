"""The same scenarios and the same promises, under the second net."""

import random
from collections.abc import Callable

import pytest

from tests.crash import strace
from tests.crash.rig import Rig, was_killed
from tests.crash.scenarios import SCENARIOS
from tests.crash.strace import Point

SAMPLE = 2  # of each of these, in the ordinary suite: test_kill has the others, by the first net
SOME = ("first save", "append", "purge")


@pytest.fixture(scope="module", autouse=True)
def _net() -> None:
    if missing := strace.what_is_missing():
        pytest.skip(missing)


def kill(rig: Rig, scenario: str, point: Point) -> list[str]:
    run = strace.kill(rig, scenario, point)
    assert was_killed(run) or SCENARIOS[scenario].varies, run.ended
    return [f"killed in {point.line}: {fault}" for fault in rig.faults(run)]


def fail(rig: Rig, scenario: str, point: Point, error: str) -> list[str]:
    run = strace.fail(rig, scenario, point, error)
    where = f"{error} in {point.line}"
    if run.ended[0].code != 0:
        return [f"{where}: {run.ended[0].words}"]
    failed = [line.split(maxsplit=2)[2] for line in run.told if line.startswith("failed")]
    unclear = [each for each in failed if not each.startswith("Unavailable: ")]
    return [f"{where}: {fault}" for fault in unclear + rig.faults(run)]


def failures(rig: Rig, scenario: str) -> list[tuple[Point, str]]:
    """Which calls can fail in which way."""
    needs_space = ("pwrite64", "fallocate", "mkdir", "mkdirat")
    return [
        (point, error)
        for point in strace.points(rig, scenario)
        for error in ("ENOSPC", "EIO")
        if error == "EIO" or point.call in needs_space or "O_CREAT" in point.line
        if point.call != "flock"
    ]


@pytest.mark.parametrize("scenario", SOME)
def test_a_process_killed_in_some_system_calls_loses_no_acknowledged_save(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    points = random.Random(scenario).sample(strace.points(rig, scenario), SAMPLE)
    assert [fault for point in points for fault in kill(rig, scenario, point)] == []
    ran("strace", kill_points=len(points))


@pytest.mark.torture
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_process_killed_in_every_system_call_loses_no_acknowledged_save(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    points = strace.points(rig, scenario)
    assert [fault for point in points for fault in kill(rig, scenario, point)] == []
    ran("strace", kill_points=len(points))


@pytest.mark.torture
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_system_call_that_fails_is_reported_and_loses_nothing(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    points = failures(rig, scenario)
    faults = [fault for point, error in points for fault in fail(rig, scenario, point, error)]
    assert faults == []
    ran("strace", failed_calls=len(points))
