from pathlib import Path

import pytest

from hardsave.errors import Misuse
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.memory.tenant import Tenant
from hardsave.testing import StoreContract
from hardsave.testing.batches import an_entry


class TestMemoryStore(StoreContract):
    persists = False

    def open_store(self, folder: Path) -> MemoryStore:
        return MemoryStore()


def test_a_commit_inside_of_an_interrupted_commit_is_misuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, check = MemoryStore(), Tenant.check

    def interrupted(tenant: Tenant, batch: Batch) -> None:
        with pytest.raises(Misuse, match="in the middle of a save"):
            store.commit(Batch(None, an_entry("nested")))
        check(tenant, batch)

    monkeypatch.setattr(Tenant, "check", interrupted)
    assert store.commit(Batch(None, an_entry("outer"))) == 1
    assert store.commit(Batch(None, an_entry("after"))) == 2
