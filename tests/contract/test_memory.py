from pathlib import Path

from hardsave.stores.memory import MemoryStore
from hardsave.testing import StoreContract


class TestMemoryStore(StoreContract):
    persists = False

    def open_store(self, folder: Path) -> MemoryStore:
        return MemoryStore()
