"""Which objects hold a text: found in one pass, and in bounded memory."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hardsave.objects.hashing import Hash
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.sqlite.store import SqliteStore
from hardsave.vault import addresses
from hardsave.vault.purge import outcomes as became
from hardsave.vault.vault import Vault
from tests.unit.vault.secrets_scanner import found

TEXT = "sesame-opens"


class Watched(SqliteStore):
    """Counts how often all objects, and single ones, are read."""

    scans = reads = 0

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        self.scans += 1
        return super().scan(user)

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        self.reads += 1
        return super().read(user, hashes)


class Disordered(MemoryStore):
    """The first pass meets objects before what they refer to: they were moved meanwhile."""

    scans = 0

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        self.scans += 1
        parts = [{each: data} for part in super().scan(user) for each, data in part.items()]
        return iter(parts[::-1] if self.scans == 1 else parts)


def state(number: int, text: str = "") -> dict[str, Any]:
    """Large enough to be cut into objects that lead to others."""
    return {"messages": [f"{n} of {number} {text} " + "x" * 400 for n in range(60)]}


def test_a_text_that_is_nowhere_is_looked_for_in_one_pass(tmp_path: Path) -> None:
    with Vault(Watched(str(tmp_path / "store.db"))) as writing:
        for number in range(20):
            writing.timeline("main").save(state(number))
    store = Watched(str(tmp_path / "store.db"))
    with Vault(store) as vault:
        assert vault.store.purge(text=TEXT).rewritten == 0
        assert (store.scans, store.reads) == (1, 0)


def test_of_states_without_the_text_no_object_is_read_again(tmp_path: Path) -> None:
    with Vault(Watched(str(tmp_path / "store.db"))) as writing:
        for number in range(20):
            writing.timeline("main").save(state(number))
        writing.timeline("other").save({"short": TEXT})
    store = Watched(str(tmp_path / "store.db"))
    with Vault(store) as vault:
        assert vault.store.purge(text=TEXT).rewritten == 1
        assert store.scans == 2  # once more at the end: it is gone
        assert store.reads <= 2


def test_what_was_moved_during_the_pass_is_found_by_the_next() -> None:
    store = Disordered()
    with Vault(store) as vault:
        vault.timeline("main").save(state(1, TEXT))
        assert vault.store.purge(text=TEXT).rewritten > 0
        assert TEXT not in str(vault.timeline("main").load())
        assert not any(TEXT.encode() in data for part in store.scan(None) for data in part.values())


def test_more_objects_than_are_kept_in_mind_are_purged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "RECENT", 3)
    monkeypatch.setattr(became, "RECENT", 3)
    work = tmp_path / "work"
    for number in range(30):
        (work / f"{number % 7}" / f"{TEXT} {number}").mkdir(parents=True)
        (work / f"{number % 7}" / f"{number}.txt").write_text(f"{number} {TEXT}")
    folder = tmp_path / "folder"
    folder.mkdir()
    with Vault(SqliteStore(str(folder / "store.db"))) as vault:
        line = vault.timeline("main")
        for number in range(10):
            line.save(state(number, TEXT if number % 2 else ""))
            (work / "0" / "0.txt").write_text(f"version {number} {TEXT}")
            line.save_files(work)
        assert found(folder, [TEXT]) == {TEXT}
        assert vault.store.purge(text=TEXT).rewritten == 5 + 10  # states, files
        assert found(folder, [TEXT]) == set()
        assert vault.store.verify().faults == ()
