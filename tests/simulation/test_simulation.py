"""However workers die, stop and are cut off, no second owner of a task is ever accepted."""

from dataclasses import replace
from unittest import mock

import pytest

from hardsave.stores.memory.ledger import MemoryLedger
from hardsave.tasks import states
from tests.simulation.__main__ import run
from tests.simulation.simulation import Setting

SMALL = Setting(workers=6, jobs=60, crash_every=4, pause_every=4, cut_every=4)
WHOLE = Setting()
AT_ONCE = 10  # seeds of one test


def check(setting: Setting, seed: int) -> None:
    outcome = run(setting, seed)
    assert outcome.wrong == []
    assert outcome.finished == setting.jobs
    assert outcome.crashes > 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lease", [3.5, 25.0])
def test_each_job_is_finished_once_by_the_one_worker_that_has_it(seed: int, lease: float) -> None:
    check(replace(SMALL, lease_seconds=lease), seed)


@pytest.mark.parametrize(("lease", "limit"), [(3.5, 5.0), (25.0, 30.0)])
def test_what_a_dead_worker_had_is_put_back_in_time(lease: float, limit: float) -> None:
    """Of so many workers one always lives; while none does, none can take over."""
    for seed in range(4):
        setting = replace(WHOLE, jobs=300, lease_seconds=lease, pause_every=0, cut_every=0)
        outcome = run(setting, seed)
        assert outcome.takeovers
        assert max(outcome.takeovers) <= limit


@pytest.mark.parametrize("seed", range(4))
def test_a_server_whose_clock_leaps_by_an_hour_accepts_no_second_owner(seed: int) -> None:
    check(replace(SMALL, leap_every=10), seed)


def test_the_same_seed_leads_to_the_same() -> None:
    assert run(SMALL, 7) == run(SMALL, 7)


def test_a_store_that_does_not_compare_epochs_is_caught() -> None:
    with mock.patch.object(MemoryLedger, "_check_epoch"):
        outcomes = [run(SMALL, seed) for seed in range(4)]
    assert any(outcome.wrong for outcome in outcomes)


def test_a_claim_that_does_not_raise_the_epoch_is_caught() -> None:
    claimed = states.claimed

    def same_epoch(record, *arguments, **options):  # type: ignore[no-untyped-def] # of any shape
        return claimed(record, *arguments, **options)._replace(epoch=record.epoch)

    with mock.patch.object(states, "claimed", same_epoch):
        outcomes = [run(SMALL, seed) for seed in range(4)]
    assert any(outcome.wrong for outcome in outcomes)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(0, 300, AT_ONCE))
def test_three_hundred_seeds(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        check(replace(WHOLE, leap_every=60 if seed % 3 == 2 else 0), seed)
