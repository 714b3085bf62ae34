"""Stores that are sound within one process of one host, and broken beyond it.

Pytest does not collect this file by itself: `test_contract_catches_faults` runs it.
"""

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

from hardsave.errors import Conflict
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.stores.base import Batch, Store, Turn
from hardsave.stores.host.boot import awake
from hardsave.stores.ledger import Moment
from hardsave.stores.memory.turns import MemoryTurns
from hardsave.stores.sqlite import SqliteStore
from hardsave.stores.sqlite.write import pins
from hardsave.testing import StoreContract


class TestASoundFile(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "store.db")


class TestIsAnotherStoreInEveryProcess(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return SqliteStore(folder / f"{os.getpid()}.db")


class KnowsItsOwnRepeatsOnly(SqliteStore):
    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._committed: set[Id] = set()

    def commit(self, batch: Batch) -> int:
        latest = self.latest_number(batch.user)
        number = super().commit(batch)
        if number <= latest and batch.event.id not in self._committed:
            raise Conflict("this is there already")
        self._committed.add(batch.event.id)
        return number


class TestKnowsItsOwnRepeatsOnly(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return KnowsItsOwnRepeatsOnly(folder / "store.db")


class ShowsCommitsOfOneProcessLate(SqliteStore):
    """Gives numbers out before their commits can be seen: for a while, what one process has
    committed is not there, and what another committed after it is. Each of them has a timeline."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._since: dict[Id, float] = {}

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        time.sleep(0.01)  # so that a page has rows of both
        rows = super().saved(user, after, limit)
        now = time.monotonic()
        return [
            row
            for at, row in enumerate(rows)
            if now - self._since.setdefault(row.id, now) > 0.03
            or all(later.timeline == row.timeline for later in rows[at:])
        ]


class TestShowsCommitsOfOneProcessLate(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return ShowsCommitsOfOneProcessLate(folder / "store.db")


class TakesTurnsWithinItsProcess(SqliteStore):
    turns = MemoryTurns()

    def once(self, name: str) -> AbstractContextManager[Turn | None]:
        return self.turns.take(self.path + name)


class TestTakesTurnsWithinItsProcess(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return TakesTurnsWithinItsProcess(folder / "store.db")


class ComparesTheClocksOfTwoHosts(SqliteStore):
    def moment(self) -> Moment:
        return Moment(b"one for all", awake())


class TestComparesTheClocksOfTwoHosts(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return ComparesTheClocksOfTwoHosts(folder / "store.db")


class SaysThatItIsShared(SqliteStore):
    is_shared = True


class TestSaysThatItIsShared(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return SaysThatItIsShared(folder / "store.db")


class AsksAboutTheProcessesOfOthers(SqliteStore):
    """Takes the number of a process for one of its own numbering."""

    def _forget_pins(self, connection: Any) -> None:
        has_ended = pins.has_ended

        def asked(pin: bytes, numbering: bytes, started: Any) -> bool:
            own = pins._HOLDER.size
            return has_ended(pin[:-own] + numbering + pin[-own + 8 :], numbering, started)

        with mock.patch.object(pins, "has_ended", asked):
            super()._forget_pins(connection)


class TestAsksAboutTheProcessesOfOthers(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return AsksAboutTheProcessesOfOthers(folder / "store.db")
