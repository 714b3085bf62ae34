"""What every part of the ledger works with: the store as one user sees it, codec, clock, ids."""

from collections.abc import Callable, Sequence
from typing import Any

from hardsave.objects.codec import Codec
from hardsave.objects.records import EntryRecord, Id, TaskRecord
from hardsave.stores import requests
from hardsave.stores.base import Store, of_ledger
from hardsave.stores.ledger import Work
from hardsave.stores.requests import Request
from hardsave.tasks import current
from hardsave.tuples import NamedTuple

KEPT = 1_000  # entries about the ledger as a whole: sessions, iterations, recoveries, bookmarks


class LedgerContext(NamedTuple):
    """Passed in once, by the vault."""

    store: Store
    user: str | None
    codec: Codec
    redacted: Callable[[Any], Any]  # a text that is stored as it is, without secrets
    clock: Callable[[], int]  # microseconds since 1970, UTC
    new_id: Callable[[], Id]
    random: Callable[[], float]
    tell: Callable[[str, TaskRecord], None]  # what has happened to a task, and how it stands

    def entry(self, kind: str, task: TaskRecord | None, about: Any = None) -> EntryRecord:
        """What happened to a task, or to the ledger as a whole, just now."""
        name, generation, epoch = (
            (None, 0, 0) if task is None else (task.name, task.generation, task.epoch)
        )
        data = self.codec.encode(about if about is not None else {}, kind)
        return EntryRecord(
            0, self.new_id(), name, kind, generation, epoch, self.clock(), None, data
        )

    def commit(self, event: EntryRecord, work: Work, request: Request | None = None) -> int:
        """Commit what has happened. `MadeMeanwhile` if another caller was quicker under the key of
        the request."""
        if request is None or not request.has_key:
            number = self.store.commit(of_ledger(self.user, event, work))
        else:
            batch = requests.of_task(self, request, event, work)
            number = self.store.commit(batch)
            requests.check_own(self, batch, request)
        if work.moves:
            self.told([*work.entries, event], work)
        return number

    def act(self, event: EntryRecord, work: Work, request: Request | None = None) -> int:
        """Commit what a caller does to tasks. Inside of an attempt it belongs to that: it is
        refused with `LeaseLost` once another worker has its task."""
        held = current.held(self.store, self.user)
        fences = work.fences if held is None else (*work.fences, held.fence)
        return self.commit(event, work._replace(fences=fences), request)

    def told(self, entries: Sequence[EntryRecord], work: Work) -> None:
        """Tell handlers what has happened to the tasks that a commit has moved."""
        standing = {move.become.name: move.become for move in work.moves}
        for entry in entries:
            if entry.step is None and entry.task in standing:
                self.tell(entry.kind, standing[entry.task])
