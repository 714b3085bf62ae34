"""Whatever a power loss leaves of what was not synced, no acknowledged save is lost.

A scenario is recorded once, with every write, sync, name and acknowledgement in order. Then,
for a power loss after each event, disks are built as `disk` describes, and each is opened.
"""

import random
from collections.abc import Callable

import pytest

from tests.crash import disk, outage
from tests.crash.disk import Disk
from tests.crash.events import Event
from tests.crash.outage import State
from tests.crash.rig import KILLED, Rig

# Events of two processes cannot be put in one order from outside.
SCENARIOS = (
    *("first save", "append", "fork", "merge", "gather", "checkpoint", "threads"),
    *("gc", "compact", "export", "import", "purge"),
)
SAMPLE = 3  # states of each scenario, in the ordinary suite
SLOW = {"purge": 1}  # each of which is looked through, byte by byte


def states_of(rig: Rig, scenario: str, often: int) -> list[State]:
    start = disk.files(rig.prepared(scenario) / "disk")
    ways = outage.all_ways(random.Random(scenario), often)
    return outage.states(rig.recorded(scenario), start, ways)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_some_power_losses_lose_no_acknowledged_save(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    count = SLOW.get(scenario, SAMPLE)
    sample = random.Random(scenario).sample(states_of(rig, scenario, often=1), count)
    assert outage.faults(rig, sample) == []
    ran("injector", power_losses=len(sample))


@pytest.mark.torture
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_power_loss_loses_an_acknowledged_save(
    rig: Rig, scenario: str, ran: Callable[..., None]
) -> None:
    everything = states_of(rig, scenario, often=3)
    assert outage.faults(rig, everything) == []
    ran("injector", power_losses=len(everything))


@pytest.mark.torture
def test_there_are_enough_ways_to_lose_power(rig: Rig) -> None:
    assert sum(len(states_of(rig, scenario, often=3)) for scenario in SCENARIOS) >= 1000


@pytest.mark.parametrize("scenario", ["append", "checkpoint"])
def test_with_durability_process_a_power_loss_costs_the_newest_saves_and_nothing_else(
    rig: Rig, scenario: str
) -> None:
    """What is left is whole, opens, and goes on. (It is an error only in the same boot.)"""
    run = rig.run(scenario, durability="process", bugs=["earlier_boot"])
    assert run.ended[0].code == 0, run.ended[0].words
    start = disk.files(rig.prepared(scenario) / "disk")
    dice = random.Random(scenario)
    found = outage.states(run, start, outage.all_ways(dice, often=1))
    unsure = [
        (moment, image, [line for line in told if not line.startswith("done")])
        for moment, image, told in dice.sample(found, SAMPLE)
    ]
    assert outage.faults(rig, unsure) == []


@pytest.mark.torture
def test_a_store_whose_creator_was_killed_is_safe_once_another_process_has_saved(rig: Rig) -> None:
    """The names that the first process made must not stay unsafe for the second."""
    for point in rig.points("first save", "before"):
        begun = rig.run("first save", point)
        assert begun.ended[0].code == KILLED
        finished = rig.go_on("first save", begun.folder)
        assert finished.ended[0].code == 0, finished.ended[0].words
        last = outage.states(finished, {}, outage.only_lost)[-1]
        assert outage.faults(rig, [last]) == [], point


# The model of the disk


def write(offset: int, data: bytes) -> Event:
    return Event("write", "file", offset=offset, data=data)


def test_what_was_synced_is_there_and_the_rest_may_be_lost_or_kept() -> None:
    now = Disk({"file": b"....."})
    for event in (write(0, b"a"), Event("sync", "file"), write(1, b"b"), write(6, b"c")):
        now.happen(event)
    assert disk.lost(now) == {"file": b"a...."}
    assert disk.kept(now) == {"file": b"ab...\0c"}
    subsets = {disk.reordered(now, random.Random(at))["file"] for at in range(50)}
    assert subsets == {b"a....", b"ab...", b"a....\0c", b"ab...\0c"}


def test_a_torn_write_ends_at_a_sector() -> None:
    now = Disk({"file": b""})
    now.happen(write(100, b"x" * 2000))
    lengths = {len(disk.torn(now, random.Random(at))["file"] or b"") for at in range(100)}
    assert lengths == {0, 512, 1024, 1536, 2048, 2100}


def test_a_name_is_safe_once_its_folder_was_synced() -> None:
    now = Disk({})
    now.happen(Event("mkdir", "new"))
    now.happen(Event("create", "new/file"))
    now.happen(Event("sync", "new/file"))
    assert disk.lost(now) == {}
    assert disk.kept(now) == {"new": None, "new/file": b""}
    now.happen(Event("sync folder", "new"))
    assert disk.lost(now) == {}
    now.happen(Event("sync folder", ""))
    assert disk.lost(now) == {"new": None, "new/file": b""}


def test_a_deleted_file_may_come_back_until_its_folder_was_synced() -> None:
    now = Disk({"file": b"old"})
    now.happen(Event("delete", "file"))
    assert disk.lost(now) == {"file": b"old"}
    assert disk.kept(now) == {}
    now.happen(Event("create", "file"))
    assert disk.lost(now) == {"file": b"old"}
    assert disk.kept(now) == {"file": b""}
    now.happen(Event("sync folder", ""))
    assert disk.lost(now) == {"file": b""}
