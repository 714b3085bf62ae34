"""A set of addresses, however many."""

import pytest

from hardsave.objects.hashing import digest
from hardsave.vault import addresses
from hardsave.vault.addresses import Addresses
from hardsave.vault.scratch import Scratch


class Asked(Scratch):
    """A scratch that counts what is looked up in it."""

    times = 0

    def row(self, sql: str, *values: object) -> tuple[object, ...] | None:
        self.times += 1
        return super().row(sql, *values)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "RECENT", 100)


@pytest.mark.usefixtures("few")
def test_all_that_was_added_is_known_and_nothing_else() -> None:
    hashes = [digest(str(number).encode()) for number in range(2_000)]
    with Scratch(addresses.TABLES) as scratch:
        known = Addresses(scratch)
        for address in hashes[:1_000]:
            assert address not in known
            known.add(address)
        assert all(address in known for address in hashes[:1_000])
        assert not any(address in known for address in hashes[1_000:])


@pytest.mark.usefixtures("few")
def test_of_new_and_of_recent_objects_the_scratch_is_not_asked() -> None:
    hashes = [digest(str(number).encode()) for number in range(2_000)]
    scratch = Asked(addresses.TABLES)
    with scratch:
        known = Addresses(scratch)
        for address in hashes:
            assert address not in known
            known.add(address)
            assert address in known
        assert scratch.times < 20
