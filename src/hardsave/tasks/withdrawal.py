"""Taking a task out of the ledger that no worker is to run any more."""

from typing import TYPE_CHECKING

from hardsave.stores.ledger import Fence

if TYPE_CHECKING:
    from hardsave.tasks.ledger import Tasks


def withdraw(tasks: "Tasks", id: str) -> bool:
    """Remove a task with its history, as if it had not been added; whether it went. One that an
    attempt holds, or takes meanwhile, stays."""
    context = tasks._context
    record = context.store.task(context.user, id)
    if record is None or record.state == "in_progress":
        return False
    return tasks._forgotten([Fence(record.name, record.epoch)]) == 1
