"""Which objects an export has written, however many."""

import pytest

from hardsave.objects.hashing import digest
from hardsave.vault import written
from hardsave.vault.scratch import Scratch
from hardsave.vault.written import Written


class Asked(Scratch):
    """A scratch that counts what is looked up in it."""

    times = 0

    def row(self, sql: str, *values: object) -> tuple[object, ...] | None:
        self.times += 1
        return super().row(sql, *values)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "RECENT", 100)


@pytest.mark.usefixtures("few")
def test_all_that_was_written_is_known_and_nothing_else() -> None:
    addresses = [digest(str(number).encode()) for number in range(2_000)]
    with Scratch(written.TABLES) as scratch:
        known = Written(scratch)
        for address in addresses[:1_000]:
            assert address not in known
            known.add(address)
        assert all(address in known for address in addresses[:1_000])
        assert not any(address in known for address in addresses[1_000:])


@pytest.mark.usefixtures("few")
def test_of_new_and_of_recent_objects_the_scratch_is_not_asked() -> None:
    addresses = [digest(str(number).encode()) for number in range(2_000)]
    scratch = Asked(written.TABLES)
    with scratch:
        known = Written(scratch)
        for address in addresses:
            assert address not in known
            known.add(address)
            assert address in known
        assert scratch.times < 20
