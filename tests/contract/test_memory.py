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


def test_whoever_is_interrupted_to_commit_once_more_is_told_that_this_cannot_be(
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
