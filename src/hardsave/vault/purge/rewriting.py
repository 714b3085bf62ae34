"""Checkpoints without a text that has to be purged: their states, their files and what goes with
them, committed some at a time."""

from typing import TYPE_CHECKING

from hardsave.defaults import MAX_NAME
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, LogRecord
from hardsave.objects.rewriting import Rewriting
from hardsave.stores.base import Batch, Changes
from hardsave.timeline import step_summary
from hardsave.vault import addresses, fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.purge import REPLACEMENT
from hardsave.vault.purge import outcomes as became
from hardsave.vault.purge.outcomes import Became
from hardsave.vault.purge.text_holders import TextHolders
from hardsave.vault.save import attached
from hardsave.vault.save.pin import Pin
from hardsave.vault.scratch import Scratch

if TYPE_CHECKING:
    from hardsave.workspace.snapshot.text_removal import TextRemoval

_PAGE = 500
_BATCH_BYTES = 4 << 20
_CHUNK = 64  # checkpoints rewritten in one commit


def path_without_text(path: bytes, old: bytes) -> bytes:
    """A path from the top still, if the text was its beginning. An id that is no path is random."""
    if old not in path or not path.startswith(b"/"):
        return path
    new = path.replace(old, REPLACEMENT.encode())
    return new if new.startswith(b"/") else b"/" + new


class Rewriter:
    """Rewrites the checkpoints that hold a text."""

    def __init__(self, context: Context, wanted: str, old: bytes) -> None:
        self._context = context
        self._wanted = wanted
        self._old = old
        self._new = REPLACEMENT.encode()
        self._values = Rewriting(wanted, REPLACEMENT, context.objects.fetch)
        self._after = 0  # the last commit that was looked at
        self._are_found = True  # objects with the text, when they were last looked through

    def rewrite_all(self) -> int:
        """Rewrite what was saved before this call, and since the last one; how many had the text.
        If objects have it still or again, all checkpoints are looked at once more."""
        store, user = self._context.store, self._context.user
        upto = store.latest_number(user)
        if not self._are_found and not store.saved(user, self._after, 1):
            return 0
        with Scratch(addresses.TABLES + became.TABLES) as scratch:
            holders = TextHolders(self._context, self._old, scratch)
            self._are_found = holders.count > 0
            files = _Files(self._context, (self._old, self._new), Became(scratch))
            try:
                return self._rewrite_upto(upto, holders, files)
            finally:
                files.end()

    def _rewrite_upto(self, upto: int, holders: TextHolders, files: "_Files") -> int:
        """Rewrite what was saved up to this commit."""
        store, user = self._context.store, self._context.user
        count, after = 0, 0 if self._are_found else self._after
        while after < upto and (found := store.saved(user, after, _PAGE)):
            records = [record for record in found if record.number <= upto]
            for start in range(0, len(records), _CHUNK):
                count += self._rewrite(records[start : start + _CHUNK], holders, files)
            after = found[-1].number
        self._after = upto
        return count

    def _rewrite(
        self, records: list[CheckpointRecord], holders: TextHolders, files: "_Files"
    ) -> int:
        """Commit these checkpoints without the text; how many had it."""
        objects: dict[Hash, bytes] = {}
        changed: list[CheckpointRecord] = []
        for record in records:
            root = record.root
            if root in holders:
                root, out = self._values.root(root)
                objects |= out
            new = self._rewritten(record, files)._replace(root=root)
            if new != record:
                changed.append(new)
        context = self._context
        ids = [record.id for record in records]
        labels, notes = attached.without_text(context, ids, self._without, self._values.value)
        if changed or labels or notes:
            files.flush()
            entry = LogRecord(
                0, context.new_id(), None, "purge", context.clock(), operations.note()
            )
            changes = Changes(replace=changed, purges=True)
            requires = {each.snapshot for each in changed if each.snapshot is not None}
            batch = Batch(context.user, entry, None, objects, requires, changes)
            fencing.commit(context, batch._replace(labels=labels, notes=notes))
        return len({each.id for each in changed} | labels.keys() | notes.keys())

    def _rewritten(self, record: CheckpointRecord, files: "_Files") -> CheckpointRecord:
        """All but its state."""
        workspace = record.workspace
        return record._replace(
            snapshot=None if record.snapshot is None else files.without(record.snapshot),
            workspace=None if workspace is None else self._elsewhere(workspace),
            name=None if record.name is None else self._line(record.name),
            status=self._line(record.status),
            description=self._without(record.description),
            metadata=self._values.value(record.metadata),
            task=None if record.task is None else self._without(record.task),
            summary=None if record.summary is None else self._summary(record.summary),
        )

    def _summary(self, kept: bytes) -> bytes:
        summary = step_summary.decode(kept)
        return step_summary.encode(step_summary.without(summary, self._wanted, REPLACEMENT))

    def _elsewhere(self, workspace: bytes) -> bytes:
        """The id of a workspace; one that is older than ids is a path."""
        return path_without_text(workspace, self._old)

    def _line(self, text: str) -> str:
        """A name may be longer without the text than with it, and no longer than names are."""
        return self._without(text)[:MAX_NAME].strip()

    def _without(self, text: str) -> str:
        return text.encode().replace(self._old, self._new).decode()


class _Files:
    """Captured files without a text. What is new goes ahead of its commit, under a pin."""

    def __init__(self, context: Context, texts: tuple[bytes, bytes], known: Became) -> None:
        self._context = context
        self._pin = Pin(context, "purge")
        self._texts = texts  # the old and the new one
        self._known = known
        self._removal: TextRemoval | None = None
        self._batch: dict[Hash, bytes] = {}
        self._bytes = 0

    def without(self, address: Hash) -> Hash:
        if self._removal is None:
            # Which loads all that files need.
            from hardsave.workspace.snapshot.text_removal import TextRemoval

            fetch = self._context.objects.fetch
            self._removal = TextRemoval(*self._texts, fetch, self._put, self._known)
            self._pin.put({})  # from here on, nothing goes that is found to be there
        return self._removal.capture(address)

    def _put(self, address: Hash, data: bytes) -> None:
        self._batch[address] = data
        self._bytes += len(data)
        if self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._batch:
            self._pin.put(self._batch)
            self._batch, self._bytes = {}, 0

    def end(self) -> None:
        self._pin.give_back()
