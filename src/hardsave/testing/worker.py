"""A process that opens the store of a test class and does what it is told, for `processes`.

    python -m hardsave.testing.worker FILE CLASS

One JSON object a line: `{"do": "save", …}` comes in, its answer goes out. The file is imported as
it is, so that the store that its class opens is opened here, too.
"""

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hardsave.errors import Conflict, LeaseLost
from hardsave.stores.base import Batch, Store
from hardsave.stores.host import location
from hardsave.stores.ledger import TaskMove, Work
from hardsave.testing.batches import Line, a_note, an_id, an_object
from hardsave.testing.duties import happened

_MODULE = "hardsave_store_under_test"
_MOST_TRIES = 2_000


class Worker:
    """What a test may tell it. Each method is one word of the protocol."""

    def __init__(self, open_store: Callable[[Path], Store]) -> None:
        self._open_store = open_store
        self._store: Store | None = None
        self._turns = ExitStack()

    @property
    def store(self) -> Store:
        assert self._store is not None, "tell it to open one first"
        return self._store

    def open(self, folder: str) -> None:
        self.close()
        self._store = self._open_store(Path(folder))

    def close(self) -> None:
        self._turns.close()
        if self._store is not None:
            self._store.close()
            self._store = None

    def save(
        self, timeline: str, count: int, writer: str, user: str | None = None
    ) -> list[tuple[int, str]]:
        """Save so often on a timeline that others save on, too; the numbers and ids."""
        line = Line(self.store, timeline, user=user, writer=writer)
        for _ in range(count):
            self._next(line)
        return [(record.number, record.id.hex()) for record in line.saved]

    def _next(self, line: Line) -> None:
        for _ in range(_MOST_TRIES):
            line.standing = self.store.timeline(line.user, line.name)
            try:
                line.save()
            except Conflict:
                continue
            return
        raise AssertionError(f"{_MOST_TRIES} conflicts in a row: it does not see what others save")

    def note(self, label: str, user: str | None = None) -> int:
        return self.store.commit(a_note(label, user))

    def save_and_die(self, timeline: str, writer: str) -> None:
        """Commit the first save of a timeline. Its answer is lost."""
        line = Line(self.store, timeline, writer=writer)
        self.store.commit(line.next())
        os._exit(9)

    def note_and_die(self, label: str) -> None:
        self.store.commit(a_note(label))
        os._exit(9)

    def claim_and_die(self, task: str, who: str) -> None:
        self.store.commit(a_claim(self.store, task, who))
        os._exit(9)

    def claim(self, task: str, who: str) -> bool:
        """Whether it was this process that got a task."""
        try:
            self.store.commit(a_claim(self.store, task, who))
        except LeaseLost:
            return False
        return True

    def put(self, label: str, pin: str, seconds: float) -> None:
        self.store.put(None, an_object(label), pin=pin.encode(), seconds=seconds)

    def take(self, turn: str) -> bool:
        """Whether this process has a turn now; it keeps it until `leave`."""
        return self._turns.enter_context(self.store.once(turn)) is not None

    def leave(self) -> None:
        self._turns.close()

    def moment(self) -> tuple[str, int]:
        clock, at = self.store.moment()
        return clock.hex(), at

    def here(self) -> tuple[str, str, int]:
        """Host, boot and process, as this process sees them."""
        here = location.here()
        return here.numbering.host, here.numbering.boot.hex(), here.pid


def a_claim(store: Store, task: str, who: str) -> Batch:
    """A batch that claims a task at epoch 0, the same in every process."""
    standing = store.task(None, task)
    assert standing is not None
    become = standing._replace(epoch=1, state="in_progress", owner=an_id(who))
    work = Work(moves=(TaskMove(0, become),))
    return Batch(None, happened(f"claim by {who}", task), work=work)


def answer(worker: Worker, said: Mapping[str, Any]) -> Any:
    about = dict(said)
    return getattr(worker, about.pop("do"))(**about)


def main() -> None:
    path, name = sys.argv[1:]
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[_MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    worker = Worker(getattr(module, name)().open_store)
    for line in sys.stdin:
        try:
            told = {"is": answer(worker, json.loads(line))}
        except Exception as error:  # noqa: BLE001 # raised where the answer is read
            told = {"raised": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
    worker.close()


if __name__ == "__main__":
    main()
