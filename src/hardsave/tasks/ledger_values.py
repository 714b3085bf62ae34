"""Values of the ledger as a whole, which every process sees, on all hosts that share it.

The latest entry of a kind holds one, and to change it is to add the next. The latest of each kind
is never trimmed.
"""

from collections.abc import Callable
from typing import Any

from hardsave.errors import Conflict
from hardsave.stores.ledger import Latest, Work
from hardsave.tasks import current
from hardsave.tasks.context import KEPT, LedgerContext

_TRIES = 100  # of a write that others were faster with


def read(context: LedgerContext, kind: str) -> Any:
    """The value of a kind; None if there is none yet."""
    found = context.store.latest_entry(context.user, kind)
    return None if found is None else context.codec.decode(found.data)


def change(
    context: LedgerContext,
    kind: str,
    how: Callable[[Any], Any],
    *,
    trims: Callable[[Any], bool] = lambda _: False,
) -> Any:
    """Put `how(value)` in the place of a value, whichever process has written that; the new one.
    Where it `trims`, old entries about the ledger as a whole go."""
    for _ in range(_TRIES):
        found = context.store.latest_entry(context.user, kind)
        become = how(None if found is None else context.codec.decode(found.data))
        work = Work(
            latest=Latest(kind, None if found is None else found.id),
            keep_itself=KEPT if trims(become) else None,
        )
        try:
            context.act(context.entry(kind, None, become), work)
        except Conflict:
            current.check(context.store, context.user)
        else:
            return become
    raise Conflict(f"others have changed {kind!r} {_TRIES} times meanwhile; try again")
