"""The fence around what an attempt does through the vault.

All that is done while an attempt at a task is under way belongs to it, be it a save, a fork, an
undo or a purge: it is refused with `LeaseLost` once another worker has the task. An old attempt
must not move what the new one goes on from.
"""

from hardsave.errors import LeaseLost
from hardsave.stores.base import Batch
from hardsave.stores.ledger import Fence
from hardsave.tasks import current
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context


class _Held(NamedTuple):
    work: current.Work
    fence: Fence


def commit(context: Context, batch: Batch) -> int:
    """Commit what is done here, for as long as the attempt under way has its task."""
    held = _held(context)
    if held is None:
        return context.store.commit(batch)
    fences = (*batch.work.fences, held.fence)
    try:
        return context.store.commit(batch._replace(work=batch.work._replace(fences=fences)))
    except LeaseLost:
        if is_lost(context):
            held.work.lost()
        raise


def is_lost(context: Context) -> bool:
    """Whether the attempt under way has its task no longer. A batch that moves tasks may be
    refused with `LeaseLost` because of these as well."""
    held = _held(context)
    if held is None:
        return False
    task = context.store.task(context.user, held.fence.task)
    return task is None or task.epoch != held.fence.epoch


def _held(context: Context) -> _Held | None:
    work = current.work(context.store, context.user)
    standing = None if work is None else work.standing()
    if work is None or standing is None:
        return None
    return _Held(work, Fence(standing.task, standing.epoch))
