"""What sessions offer: which work each of them can take, so that others can tell who waits in vain.

One entry of the ledger holds the offers of all that run. Two who begin at once may write over each
other, so each looks now and then whether its own still stands; who has died is left out by
whoever reads or writes. It is for people to read: nothing is decided by it.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hardsave.objects.records import Id
from hardsave.stores.ledger import Work
from hardsave.tasks.desk import Desk

if TYPE_CHECKING:
    from hardsave.tasks.executor import Runner
    from hardsave.tasks.ledger import Tasks

_KIND = "offers"


def offer(runner: "Runner", what: Any) -> None:
    """Let others know what a session can take. To be called again now and then; costs one read
    if it is known already. `what` is plain data."""
    desk, owner = runner._desk, runner._lease.held()
    if owner is None:
        return  # taken for dead, and has nothing to offer
    standing = _standing(desk)
    if owner not in standing or standing[owner] != what:
        desk.commit(desk.entry(_KIND, None, {"by": {**standing, owner: what}}), Work())


def offered(tasks: "Tasks", *, without: Collection[Id] = ()) -> list[Any]:
    """What the sessions offer that run now; `without` those that are known to have died."""
    standing = _standing(tasks._desk)
    return [what for owner, what in standing.items() if owner not in without]


def _standing(desk: Desk) -> dict[Id, Any]:
    found = desk.store.latest_entry(desk.user, _KIND)
    if found is None:
        return {}
    alive = {owner.id for owner in desk.store.owners(desk.user)}
    by = desk.codec.decode(found.data)["by"]
    return {owner: what for owner, what in by.items() if owner in alive}
