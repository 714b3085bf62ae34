"""What became of objects that a purge has looked at: some in memory, all of them in a scratch."""

from hardsave.objects.hashing import Hash
from hardsave.vault.scratch import Scratch

TABLES = """
    CREATE TABLE became (address BLOB PRIMARY KEY, now BLOB, size INTEGER) WITHOUT ROWID;
"""
RECENT = 50_000  # objects, twice


class Became:
    """Addresses before and after, with the size after. Grows with nothing but its scratch."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._young: dict[Hash, tuple[Hash, int]] = {}
        self._old: dict[Hash, tuple[Hash, int]] = {}

    def get(self, address: Hash) -> tuple[Hash, int] | None:
        found = self._young.get(address) or self._old.get(address)
        if found is None:
            found = self._scratch.row("SELECT now, size FROM became WHERE address = ?", address)
            if found is not None:
                self[address] = found
        return found

    def __setitem__(self, address: Hash, now: tuple[Hash, int]) -> None:
        self._young[address] = now
        if len(self._young) >= RECENT:
            rows = ((each, *self._old[each]) for each in sorted(self._old))
            self._scratch.many("INSERT OR IGNORE INTO became VALUES (?, ?, ?)", rows)
            self._old, self._young = self._young, {}
