"""How many files a timeline has changed since it began: those of its head against those that its
first checkpoint has, or the one that it was forked from."""

from hardsave.objects.records import CheckpointRecord, TimelineRecord
from hardsave.stores.base import Query
from hardsave.timeline.diff import without_folders
from hardsave.timeline.step_summary import FileCounts
from hardsave.vault.context import Context
from hardsave.vault.files import difference


def files_changed(context: Context, name: str) -> FileCounts | None:
    """None where it is not known: one of both has no files, or is gone by now."""
    line = context.store.timeline(context.user, name)
    if line is None or line.head is None:
        return None
    first, last = _first(context, line), context.store.checkpoint(context.user, line.head)
    if first is None or last is None:
        return None
    head = context.checkpoint(last)
    before, after = context.checkpoint(first).files, head.files
    if before is None or after is None:
        return None
    found = difference(before, after)
    added, changed, removed = (
        len(without_folders(paths)) for paths in (found.added, found.changed, found.removed)
    )
    kept = None if head.summary is None else head.summary.files
    total = kept.total if kept is not None else sum(1 for _ in after.list())
    return FileCounts(added, changed, removed, total)


def _first(context: Context, line: TimelineRecord) -> CheckpointRecord | None:
    if line.origin is not None:
        return context.store.checkpoint(context.user, line.origin)
    asked = Query(line.name, limit=1, seq=1)
    return next(iter(context.store.checkpoints(context.user, asked)), None)
