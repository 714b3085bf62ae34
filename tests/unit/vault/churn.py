"""Writers that do everything at once: save, append, fork, hide, show and drop, at random.

States are drawn from few messages, so what was dropped is saved again before long: that is
where a collector and a writer meet.

Also a program: python -m tests.unit.vault.churn URL NUMBER, until it is terminated.
"""

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import hardsave
from hardsave.errors import Conflict, Corrupt, HardsaveError, NotFound
from hardsave.objects.records import CheckpointRecord, LogRecord
from hardsave.stores.base import Batch, Changes, Query

TIMELINES = [f"line {number}" for number in range(3)]
MESSAGES = 40
ROOM = 12  # checkpoints a timeline, about


def message(number: int) -> dict[str, Any]:
    return {"n": number, "content": f"message {number} " * (8 + number % 20)}


class Churn:
    """One writer with handles of its own."""

    def __init__(self, vault: hardsave.Vault, seed: int) -> None:
        self._vault = vault
        self._store = vault._context.store
        self._draw = random.Random(seed)
        self._lines: dict[str, hardsave.Timeline] = {}
        self.steps = 0

    def run(self, until: Callable[[], bool]) -> None:
        ways = [self.save, self.save, self.append, self.append, self.append, self.load]
        ways += [self.fork, self.hide, self.show, self.drop, self.drop]
        while not until():
            try:
                self._draw.choice(ways)()
            except (Conflict, NotFound):
                self._lines.clear()  # somebody else was faster
            self.steps += 1

    def line(self) -> hardsave.Timeline:
        name = self._draw.choice(TIMELINES)
        return self._lines.setdefault(name, self._vault.timeline(name))

    def save(self) -> None:
        some = [message(self._draw.randrange(MESSAGES)) for _ in range(self._draw.randrange(15))]
        self.line().save({"messages": some, "turn": 0}, expect=hardsave.ANY_HEAD)

    def append(self) -> None:
        some = [message(self._draw.randrange(MESSAGES)) for _ in range(self._draw.randrange(3))]
        self.line().append({"messages": some, "turn": self._draw.randrange(5)})

    def fork(self) -> None:
        self.line().fork(name=f"fork {self._draw.randrange(6)}")

    def load(self) -> None:
        record = self._any()
        if record is None:
            return
        try:
            self._vault._context.objects.reader.load(record.root)
        except Corrupt:
            if self._store.checkpoint(None, record.id) is not None:
                raise

    def hide(self) -> None:
        record = self._any()
        if record is not None:
            self._change(Changes(hide=[record.id]))

    def show(self) -> None:
        record = self._any()
        if record is not None and record.is_hidden:
            self._change(Changes(show=[record.hidden]))

    def drop(self) -> None:
        found = self._store.checkpoints(None, Query(self.line().name, 1000, hidden=True))
        if len(found) > ROOM:
            gone = self._draw.sample(found[1:], self._draw.randrange(1, len(found) - ROOM // 2))
            self._change(Changes(drop=[record.id for record in gone]))

    def _any(self) -> CheckpointRecord | None:
        found = self._store.checkpoints(None, Query(self.line().name, ROOM, hidden=True))
        return self._draw.choice(found) if found else None

    def _change(self, changes: Changes) -> None:
        event = LogRecord(0, os.urandom(12), None, "churn", 0, b"\x80")
        self._store.commit(Batch(None, event, changes=changes))


class Crowd:
    """Several writers in threads that share a vault."""

    def __init__(self, vault: hardsave.Vault, seeds: range) -> None:
        self._stopped = threading.Event()
        self.faults: list[BaseException] = []
        self.writers = [Churn(vault, seed) for seed in seeds]
        self._threads = [threading.Thread(target=self._run, args=(w,)) for w in self.writers]

    def _run(self, writer: Churn) -> None:
        try:
            writer.run(self._stopped.is_set)
        except BaseException as error:  # noqa: BLE001 # handed to the test
            self.faults.append(error)

    def __enter__(self) -> "Crowd":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def main(url: str, number: str) -> None:
    """Churn until SIGTERM; the exit status tells whether all went well."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with hardsave.open(url, durability="process") as vault:
        churn = Churn(vault, int(number))
        churn.run(stopped.is_set)
    sys.stdout.write(f"{churn.steps}\n")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except HardsaveError:
        import traceback

        traceback.print_exc()
        sys.exit(1)
