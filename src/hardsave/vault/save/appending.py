"""An append as part of an attempt at a task: made once, however often the attempt begins again."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from hardsave.errors import HardsaveError
from hardsave.objects.hashing import digest
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.tasks import current
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.save.request import About


class Own(NamedTuple):
    """An append of the attempt under way, and what an earlier attempt has made of it."""

    id: Id
    work: current.Work
    made: CheckpointRecord | None


def own(context: Context, timeline: str, about: About, delta: Mapping[str, Any]) -> Own | None:
    """None if no attempt is under way, or it goes on from what it has seen on the timeline."""
    work = current.work(context.store, context.user)
    if work is None or work.standing() is None:
        return None
    content = _content(context, about, delta)
    id = None if content is None else work.begin_append(timeline, content)
    if id is None:
        return None
    made = context.store.checkpoint(context.user, id)
    if made is not None and not _is_in_history(context, timeline, made):
        return None  # it was taken back: made again, it is another one
    return Own(id, work, made)


def _content(context: Context, about: About, delta: Mapping[str, Any]) -> bytes | None:
    """What tells an append from others; None if it cannot be stored, and the append says why."""
    said = (about.name, about.kind, about.status, about.description, about.metadata)
    try:
        return digest(context.objects.codec.encode([*said, dict(delta)]))
    except HardsaveError:
        return None


def _is_in_history(context: Context, timeline: str, made: CheckpointRecord) -> bool:
    """Whether the head of a timeline still stands on a checkpoint."""
    head = context.history.head(timeline)
    if head is None or made.is_hidden:
        return False
    for record in chain([head], context.history.ancestors(head)):
        if record.id == made.id:
            return True
        if record.timeline == made.timeline and record.seq < made.seq:
            return False
    return False
