"""What sessions offer: which work each of them can take, so that others can tell who waits in vain.

One entry of the ledger holds the offers of all that run. Two who begin at once may write over each
other, so each looks now and then whether its own still stands; a process that reads or writes
them leaves out those that have died. They are for people to read: nothing is decided by them.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hardsave.objects.records import Id
from hardsave.stores.ledger import Work
from hardsave.tasks.context import LedgerContext

if TYPE_CHECKING:
    from hardsave.tasks.executor import Runner
    from hardsave.tasks.ledger import Tasks

_KIND = "offers"


def offer(runner: "Runner", what: Any) -> None:
    """Let others know what a session can take. To be called again now and then; costs one read
    if it is known already. `what` is plain data."""
    context, owner = runner._context, runner._lease.held()
    if owner is None:
        return  # taken for dead, and has nothing to offer
    standing = _standing(context)
    if owner not in standing or standing[owner] != what:
        context.commit(context.entry(_KIND, None, {"by": {**standing, owner: what}}), Work())


def offered(tasks: "Tasks", *, without: Collection[Id] = ()) -> list[Any]:
    """What the sessions offer that run now; `without` those that are known to have died."""
    standing = _standing(tasks._context)
    return [what for owner, what in standing.items() if owner not in without]


def _standing(context: LedgerContext) -> dict[Id, Any]:
    found = context.store.latest_entry(context.user, _KIND)
    if found is None:
        return {}
    alive = {owner.id for owner in context.store.owners(context.user)}
    by = context.codec.decode(found.data)["by"]
    return {owner: what for owner, what in by.items() if owner in alive}
