from unittest import mock

import pytest

from hardsave.tasks import reclaim
from hardsave.tasks.ledger import desk_of
from hardsave.tasks.sweeps import ORPHAN_SECONDS, Sweeps, orphan_seconds, sweep_seconds
from tests.unit.tasks.room import SECOND, Room, TimedStore

CHANCES = (0.0, 0.5, 1.0)


class SharedTimedStore(TimedStore):
    is_shared = True


@pytest.mark.parametrize("owners", [0, 1, 8])
@pytest.mark.parametrize("chance", CHANCES)
def test_a_few_workers_look_every_second(owners: int, chance: float) -> None:
    assert sweep_seconds(owners, 25.0, chance) == 1.0


@pytest.mark.parametrize(("lease", "limit"), [(0.5, 1.5), (3.5, 5.0), (25.0, 30.0)])
def test_the_last_of_any_number_of_workers_takes_over_in_time(lease: float, limit: float) -> None:
    for owners in (1, 10, 100, 1_000, 100_000):
        assert lease + sweep_seconds(owners, lease, 1.0) <= limit


def test_many_workers_look_less_often_and_not_at_the_same_moments() -> None:
    found = [sweep_seconds(1_000, 25.0, chance) for chance in CHANCES]
    assert found == sorted(set(found))
    assert found[0] >= 2.0


@pytest.mark.parametrize("owners", [1, 10, 1_000, 10_000])
def test_all_workers_together_seldom_read_all_tasks(owners: int) -> None:
    each = [orphan_seconds(owners, chance) for chance in CHANCES]
    assert min(each) >= ORPHAN_SECONDS
    assert owners / min(each) <= 2.0


def test_a_look_reads_the_owners_alone_until_orphans_are_due() -> None:
    now, room = 0.0, Room()
    context = desk_of(room.tasks)
    room.tasks.add("left")
    room.tasks.claim("left")
    room.tasks.close()  # the lease is given back, and the task is not
    sweeps = Sweeps(context, 25.0, clock=lambda: now)

    def look() -> list[str]:
        owners = sweeps.owners()
        found = reclaim.reclaim_from_dead(context, "s", take_over=False, owners=owners)
        return [task.name for each in found for task in each.tasks]

    with mock.patch.object(type(context.store), "tasks", side_effect=AssertionError("reads tasks")):
        assert look() == []
    now = ORPHAN_SECONDS
    assert look() == ["left"]
    assert look() == []


@pytest.mark.parametrize("way", ["the server was away", "the hosts have slept"])
def test_a_worker_that_was_away_gives_others_the_time_of_a_lease_to_come_back(way: str) -> None:
    """Each lease has passed then, also those of workers that live."""
    store, now = SharedTimedStore(), 0.0
    room = Room(store)
    room.abandon()
    sweeps = Sweeps(desk_of(room.tasks), 25.0, clock=lambda: now)

    def look(seconds: float, slept: float = 0.0) -> bool:
        """Whether it looks at others, so much later."""
        nonlocal now
        sweeps.seconds()
        now += seconds
        store.since_boot += int((seconds + slept) * SECOND)
        return sweeps.owners() != ()

    assert look(1.0)
    assert not (look(26.0) if way == "the server was away" else look(1.0, slept=26.0))
    assert not any(look(1.0) for _ in range(24))  # as often as it should
    assert look(1.0)
    now += 3_600  # in which nothing was run
    store.since_boot += 3_600 * SECOND
    assert look(1.0)
