"""What is wrong with one checkpoint: everything that it leads to is read, as it leads there."""

from collections.abc import Iterator

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord
from hardsave.progress import Meter
from hardsave.timeline.refs import to_text
from hardsave.vault.context import Context
from hardsave.vault.verify.history import is_accounted_for

_PAGE = 500
_BATCH = 256
_MOST_IN_MIND = 1_000_000  # hashes; past it, what states share is looked at again


def every(context: Context) -> Iterator[CheckpointRecord]:
    """All checkpoints, hidden ones too, in the order of their commits."""
    after = 0
    while rows := context.store.saved(context.user, after, _PAGE):
        yield from rows
        after = rows[-1].number


class Walk:
    """Over one checkpoint after the other. What they share is looked at once."""

    def __init__(self, context: Context, read: Meter) -> None:
        self._context = context
        self._read = read
        self._seen: set[Hash] = set()
        self.objects = 0
        """So many were looked at."""

    def faults(self, record: CheckpointRecord | None) -> list[str]:
        """What is wrong with a checkpoint that is as it was, or as it has become meanwhile."""
        store, user = self._context.store, self._context.user
        while record is not None:
            fresh: set[Hash] = set()
            found = [*self._faults(record, fresh)]
            now = store.checkpoint(user, record.id) if found else record
            if now == record or (now is None and store.tombstone(user, record.id) is None):
                self._note(fresh)
                return found
            record = now  # another one, after a purge, or none; what it shared is looked at anew
        return []

    def _note(self, fresh: set[Hash]) -> None:
        self.objects += len(fresh)
        self._seen |= fresh
        if len(self._seen) > _MOST_IN_MIND:
            self._seen.clear()

    def _faults(self, record: CheckpointRecord, fresh: set[Hash]) -> Iterator[str]:
        where = f"checkpoint {to_text(record.id)} ({record.timeline}:{record.seq})"
        parent = record.parent
        if parent is not None and not is_accounted_for(self._context, parent):
            yield f"{where}: its parent {to_text(parent)} is missing"
        roots: tuple[object, ...] = record.roots
        frontier = [root for root in roots if isinstance(root, bytes)]
        if len(frontier) < len(roots):
            yield f"{where}: the address of its state or of its files is damaged"
        while frontier:
            wanted = [
                address
                for address in dict.fromkeys(frontier)
                if address not in self._seen and address not in fresh
            ]
            frontier = []
            for start in range(0, len(wanted), _BATCH):
                batch = wanted[start : start + _BATCH]
                fresh.update(batch)
                for fault_or_refs in self._refs(batch):
                    if isinstance(fault_or_refs, str):
                        yield f"{where}: {fault_or_refs}"
                    else:
                        frontier += fault_or_refs

    def _refs(self, batch: list[Hash]) -> Iterator[str | tuple[Hash, ...]]:
        """What each object refers to, or what is wrong with it."""
        found = self._objects(batch)
        self._read.add(
            len(batch), sum(len(found[address]) for address in batch if address in found)
        )
        for address in batch:
            try:
                data = envelope.checked(address, found[address])
                yield envelope.refs(data)
            except KeyError:
                yield f"object {address.hex()} is missing or cannot be read"
            except Corrupt as error:
                yield str(error)

    def _objects(self, batch: list[Hash]) -> dict[Hash, bytes]:
        """All of a batch that can be read: one damaged pack does not hide its neighbours."""
        store, user = self._context.store, self._context.user
        try:
            return store.read(user, batch)
        except Corrupt:
            found: dict[Hash, bytes] = {}
            for address in batch:
                try:
                    found.update(store.read(user, [address]))
                except Corrupt:
                    continue  # reported by the caller as not readable
            return found
