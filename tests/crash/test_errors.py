"""A disk that is full or fails: a clear error, nothing lost, and the store goes on afterwards.

After each failed call the process takes its next steps, as an agent would that catches
errors. In the end the disk is well again: the same process saves once more, and then a new
one opens the store and checks everything.
"""

import random
from collections.abc import Callable

import pytest

from tests.crash.injector import How, Strike
from tests.crash.rig import Rig
from tests.crash.scenarios import SCENARIOS

SAMPLE = 2  # of each scenario and kind of error, in the ordinary suite
ERRORS: tuple[How, ...] = ("ENOSPC", "EIO")


def strike(rig: Rig, scenario: str, strike: Strike, bugs: list[str] | None = None) -> list[str]:
    """What does not hold after a call has failed."""
    where = f"{strike.how} at call {strike.at}{' and later' if strike.lasting else ''}"
    run = rig.run(scenario, strike, forgiving=True, bugs=bugs)
    ended = run.ended[0]
    if ended.code != 0:  # an error that is not of our tree, or no way to save afterwards
        return [f"{where}: the process ended with {ended.code}: {ended.words}"]
    failed = [line.split(maxsplit=2)[2] for line in run.told if line.startswith("failed")]
    unclear = [error for error in failed if not error.startswith("Unavailable: ")]
    return [f"{where}: {fault}" for fault in unclear + rig.faults(run)]


def strike_all(rig: Rig, scenario: str, points: list[Strike]) -> list[str]:
    return [fault for point in points for fault in strike(rig, scenario, point)]


def points(rig: Rig, scenario: str) -> list[Strike]:
    return rig.points(scenario, *ERRORS) + rig.points(scenario, *ERRORS, lasting=True)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_some_calls_that_fail_are_reported_and_lose_nothing(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    sample = random.Random(scenario).sample(points(rig, scenario), SAMPLE)
    assert strike_all(rig, scenario, sample) == []
    ran("injector", failed_calls=len(sample))


@pytest.mark.torture
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_call_that_fails_is_reported_and_loses_nothing(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    everything = points(rig, scenario)
    assert strike_all(rig, scenario, everything) == []
    ran("injector", failed_calls=len(everything))
