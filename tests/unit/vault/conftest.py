"""A vault in memory, with a clock that a test can read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.desk import Desk
from tests.unit.vault.stage import Clock, Watched


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> Watched:
    return Watched()


@pytest.fixture
def vault(store: MemoryStore, clock: Clock) -> Iterator[Vault]:
    with Vault(store, clock=clock) as vault:
        yield vault


@pytest.fixture
def line(vault: Vault) -> Timeline:
    return vault.timeline("main")


@pytest.fixture
def desk(tmp_path: Path, store: Watched, clock: Clock) -> Iterator[Desk]:
    desk = Desk(tmp_path / "work", store, clock=clock)
    yield desk
    desk.vault.close()
