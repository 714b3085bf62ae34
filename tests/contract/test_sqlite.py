from pathlib import Path

from hardsave.stores.sqlite import SqliteStore
from hardsave.testing import StoreContract


class TestSqliteStore(StoreContract):
    def open_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "store.db")


class TestSqliteStoreThatSurvivesItsProcessOnly(StoreContract):
    def open_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "store.db", durability="process")
