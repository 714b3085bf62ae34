"""For authors of a store: the contract as a class of pytest tests.

from hardsave.testing import StoreContract

class TestMyStore(StoreContract):
    def open_store(self, folder):
        return MyStore(folder / "my.store")
"""

import pytest

# Before they are imported: a failing assertion then shows what it compared.
pytest.register_assert_rewrite(
    *(
        f"hardsave.testing.{module}"
        for module in (
            "batches",
            "claiming",
            "collecting",
            "duties",
            "following",
            "hosts",
            "lasting",
            "operating",
            "processes",
            "queueing",
            "reading",
            "threads",
            "turns",
            "users",
            "working",
            "writing",
        )
    )
)

from hardsave.testing.contract import StoreContract  # noqa: E402 # see above

__all__ = ["StoreContract"]
