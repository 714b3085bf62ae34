"""Times that no change of the clock moves."""

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hardsave.errors import Unavailable
from hardsave.stores.host import boot, processes
from hardsave.stores.memory.store import MemoryStore

HOUR = 3_600_000_000


def test_leases_do_not_pass_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it had: the clock that goes on while it sleeps is an hour ahead."""
    real = time.clock_gettime_ns
    sleeps = getattr(time, "CLOCK_BOOTTIME", None)
    if sleeps is None:
        pytest.skip("this system has no such clock")
    store = MemoryStore()
    before = store.moment().at
    monkeypatch.setattr(
        time, "clock_gettime_ns", lambda clock: real(clock) + HOUR * 1_000 * (clock == sleeps)
    )
    assert store.moment().at - before < HOUR / 2


@contextlib.contextmanager
def no_file_to_be_had() -> Iterator[None]:
    """A block in which as many files are open as may be."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0], most[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(held[0]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
        for each in held:
            os.close(each)


@pytest.mark.parametrize("asked", [boot.boot_id, processes.host])
def test_a_process_with_too_many_files_open_is_not_on_another_machine_ever_after(
    asked: Any,
) -> None:
    """It would be taken for dead by others, and take them for dead."""
    before = asked()
    asked.cache_clear()
    with no_file_to_be_had(), pytest.raises(Unavailable, match="cannot be read"):
        asked()
    assert asked() == before
