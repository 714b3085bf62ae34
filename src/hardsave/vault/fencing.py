"""The fence around what an attempt does through the vault.

All that is done while an attempt at a task is under way belongs to it, be it a save, a fork, an
undo or a purge: it is refused with `LeaseLost` once another worker has the task. An old attempt
must not move what the new one goes on from.
"""

from hardsave.errors import LeaseLost
from hardsave.stores.base import Batch
from hardsave.tasks import current
from hardsave.vault.context import Context


def commit(context: Context, batch: Batch) -> int:
    """Commit what is done here, for as long as the attempt under way has its task."""
    held = current.held(context.store, context.user)
    if held is None:
        return context.store.commit(batch)
    fences = (*batch.work.fences, held.fence)
    try:
        return context.store.commit(batch._replace(work=batch.work._replace(fences=fences)))
    except LeaseLost:
        check(context)
        raise


def check(context: Context) -> None:
    """`LeaseLost` if the attempt under way has lost its task: before a write without a fence."""
    current.check(context.store, context.user)


def is_lost(context: Context) -> bool:
    """Whether the attempt under way has its task no longer. A batch that moves tasks may be
    refused with `LeaseLost` because of these as well."""
    try:
        check(context)
    except LeaseLost:
        return True
    return False
