"""Times that no change of the clock moves."""

import time

import pytest

from hardsave.stores import boot
from hardsave.stores.memory import MemoryStore

HOUR = 3_600_000_000


def test_leases_do_not_pass_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it had: the clock that goes on while it sleeps is an hour ahead."""
    real = time.clock_gettime_ns
    sleeps = getattr(time, "CLOCK_BOOTTIME", None)
    if sleeps is None:
        pytest.skip("this system has no such clock")
    store = MemoryStore()
    before = store.moment().at, boot.since_boot()
    monkeypatch.setattr(
        time, "clock_gettime_ns", lambda clock: real(clock) + HOUR * 1_000 * (clock == sleeps)
    )
    assert store.moment().at - before[0] < HOUR / 2
    assert boot.since_boot() - before[1] >= HOUR
