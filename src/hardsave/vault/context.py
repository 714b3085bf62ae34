"""What every part of an open vault is handed: the store, whose it is, how objects are read, who is
told; and clock and ids, so that a test decides about both."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hardsave.errors import NotFound
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.progress import Total
from hardsave.stores.base import Store
from hardsave.tasks import current
from hardsave.timeline.history import History
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import Checkpoint, Ref, named
from hardsave.vault.events import Events
from hardsave.vault.objects import Objects
from hardsave.vault.restore.own_moves import OwnMoves
from hardsave.vault.workspaces.places import Places

if TYPE_CHECKING:
    from hardsave.vault.search.index import SearchIndex


class Context(NamedTuple):
    """A store as one user sees it, with the clock and the source of ids."""

    store: Store
    user: str | None
    objects: Objects
    history: History
    events: Events
    clock: Callable[[], int]  # microseconds since 1970, UTC
    new_id: Callable[[], Id]
    search_index: "Callable[[], SearchIndex]"  # made by the first who asks
    places: Places
    moves: OwnMoves
    is_strict: Callable[[], bool] = lambda: False  # whether automatic saves that fail raise, too

    def find(self, ref: Ref, timeline: str | None = None) -> CheckpointRecord:
        """The checkpoint that is meant, as it is stored; `@…` and names are on `timeline`."""
        try:
            return self.history.find(named(ref), timeline)
        except NotFound:
            from hardsave.vault.history.aliases import Sources, resolve  # with all that jobs need

            sources = Sources(self.store, self.user, self.history, self.checkpoint)
            found = resolve(sources, named(ref))
            if found is None:
                raise
            return found

    def volume(self) -> Total:
        """How many objects this user has, and how long they are together; a few are garbage."""
        found = self.store.stats(self.user)
        return Total(found.objects, found.object_bytes)

    def checkpoint(self, record: CheckpointRecord) -> Checkpoint:
        """A checkpoint, for a caller to look at."""
        self.look(record.timeline)
        return Checkpoint(record, self.objects, self.user, self.places)

    def look(self, timeline: str) -> None:
        """A caller learns what is on a timeline: an attempt under way goes on from that."""
        work = current.work(self.store, self.user)
        if work is not None:
            work.look(timeline)
