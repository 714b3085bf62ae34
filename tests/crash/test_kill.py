"""A process that is killed at any call on the disk leaves a store that has lost nothing."""

import random
from collections.abc import Callable

import pytest

from tests.crash.injector import How, Strike
from tests.crash.rig import Rig
from tests.crash.scenarios import SCENARIOS

WAYS: tuple[How, ...] = ("before", "middle", "after")
SAMPLE = 4  # of each scenario, in the ordinary suite


def kill_at(rig: Rig, scenario: str, points: list[Strike]) -> list[str]:
    return [fault for point in points for fault in rig.kill(scenario, point)]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_process_killed_at_some_calls_loses_no_acknowledged_save(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    points = random.Random(scenario).sample(rig.points(scenario, *WAYS), SAMPLE)
    assert kill_at(rig, scenario, points) == []
    ran("injector", kill_points=len(points))


@pytest.mark.torture
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_process_killed_at_every_call_loses_no_acknowledged_save(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    points = rig.points(scenario, *WAYS)
    assert kill_at(rig, scenario, points) == []
    ran("injector", kill_points=len(points))


def test_the_scenarios_offer_enough_calls_to_be_killed_at(rig: Rig) -> None:
    """Counted as calls, not as ways to die at them."""
    assert sum(len(rig.points(scenario, "before")) for scenario in SCENARIOS) >= 300


@pytest.mark.torture  # a fault that is always found would be found in every test above
def test_an_undisturbed_run_passes_the_same_checks(rig: Rig) -> None:
    faults = {scenario: rig.faults(rig.run(scenario)) for scenario in SCENARIOS}
    assert faults == {scenario: [] for scenario in SCENARIOS}
