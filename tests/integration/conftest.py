"""What several tests with real processes begin with."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.hooked import Stage


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
