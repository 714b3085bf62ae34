from pathlib import Path

from hardsave.stores.postgres import PostgresStore
from hardsave.testing import StoreContract
from tests.postgres_server import url_of


class TestPostgresStore(StoreContract):
    def open_store(self, folder: Path) -> PostgresStore:
        return PostgresStore(url_of(folder))
