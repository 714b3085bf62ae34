from pathlib import Path

from hardsave.testing.hosts import Hosts
from tests.contract.shared_stores import SharedStore


class TestSharedStore(Hosts):
    """The rest of the contract is tested with the store that it is made from."""

    def open_store(self, folder: Path) -> SharedStore:
        return SharedStore(folder / "store.db")
