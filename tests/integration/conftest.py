"""What several tests with real processes begin with."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hardsave.daemon.election import PROCESS_NAME
from tests.integration.hooked import LIMIT, Stage


@pytest.fixture(scope="session", autouse=True)
def no_daemon_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No daemon that hooks of a test have left behind outlives the tests."""
    yield
    base = os.fsencode(tmp_path_factory.getbasetemp())
    end = time.monotonic() + LIMIT
    while left := _daemons(base):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def _daemons(base: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and (folder / "comm").read_text() == f"{PROCESS_NAME}\n":
                found += [int(folder.name)] if base in (folder / "environ").read_bytes() else []
    return found


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for agent in made.agents:
        agent.process.kill()
        agent.end()
    for pid in made.processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
