"""What the tests of the vault play with: a clock, and a store that can be watched."""

from collections.abc import Collection
from typing import Any

from hardsave.objects.hashing import Hash
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore

SECOND = 1_000_000
MOMENT = 1_700_000_000 * SECOND


class Clock:
    """One second later each time it is asked."""

    def __init__(self) -> None:
        self.now = MOMENT

    def __call__(self) -> int:
        self.now += SECOND
        return self.now


class Watched(MemoryStore):
    """Counts what is read and written, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0  # calls
        self.read_hashes: list[Hash] = []
        self.batches: list[Batch] = []
        self.before_commit: BaseException | None = None
        self.after_commit: BaseException | None = None

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        self.reads += 1
        self.read_hashes += hashes
        return super().read(user, hashes)

    def commit(self, batch: Batch) -> int:
        if self.before_commit is not None:
            error, self.before_commit = self.before_commit, None
            raise error
        number = super().commit(batch)
        self.batches.append(batch)
        if self.after_commit is not None:
            error, self.after_commit = self.after_commit, None
            raise error
        return number

    def forget_reads(self) -> None:
        self.reads = 0
        self.read_hashes = []

    @property
    def objects(self) -> dict[Hash, bytes]:
        return self._tenant(None).objects


def messages(count: int, size: int = 200, start: int = 0) -> list[dict[str, Any]]:
    """A conversation. Each message is its own, and long enough to be an object of its own."""
    return [
        {"role": "user", "n": n, "content": f"message {n} ".ljust(size, ".")}
        for n in range(start, start + count)
    ]
