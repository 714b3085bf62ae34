from pathlib import Path

import pytest

from hardsave.stores.sqlite import SqliteStore
from hardsave.testing import StoreContract


class TestSqliteStore(StoreContract):
    def open_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "store.db")


@pytest.mark.torture  # the same code but for one pragma and the mark, which have tests of their own
class TestSqliteStoreThatSurvivesItsProcessOnly(StoreContract):
    def open_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "store.db", durability="process")
