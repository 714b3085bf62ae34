"""Which files a checkpoint has changed: what a search for the name of a file goes by."""

import os
from collections.abc import Iterator
from typing import Literal

from hardsave.errors import Corrupt
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.workspace.entries import DIRECTORY
from hardsave.workspace.snapshot import capture, compare, directory
from hardsave.workspace.snapshot.compare import Difference
from hardsave.workspace.snapshot.content import Fetch

Change = Literal["added", "changed", "removed"]


class ChangedFile(NamedTuple):
    """A path, and what became of it."""

    path: str
    change: Change


def changed_files(context: Context, record: CheckpointRecord) -> list[ChangedFile]:
    """Against the newest checkpoint before it with files of the same directory; all of a first one.
    A damaged snapshot is for `verify` to report: nothing is known of it."""
    if record.snapshot is None or record.workspace is None:
        return []
    store, user = context.store, context.user
    before = store.captured(user, record.workspace, record.number, 1, hidden=False)
    last = before[0].snapshot if before else None
    if last == record.snapshot:
        return []
    try:
        return list(_compared(last, record.snapshot, context.objects.fetch))
    except Corrupt as error:
        log(__name__).warning("not searchable, because it cannot be read: %s", error)
        return []


def _compared(old: Hash | None, new: Hash, fetch: Fetch) -> Iterator[ChangedFile]:
    before = None if old is None else _top(old, fetch)
    for each in compare.differences(before, _top(new, fetch), fetch):
        if _is_file(each):
            yield ChangedFile(os.fsdecode(each.path), _change(each))


def _top(address: Hash, fetch: Fetch) -> Hash:
    return directory.read_snapshot(capture.read(address, fetch).snapshot, fetch).top


def _is_file(found: Difference) -> bool:
    """A directory is found by the files in it."""
    return any(entry is not None and entry.type != DIRECTORY for entry in (found.old, found.new))


def _change(found: Difference) -> Change:
    if found.old is None:
        return "added"
    return "removed" if found.new is None else "changed"
