"""Values of the ledger as a whole, which every process sees, on all hosts that share it.

The latest entry of a kind holds one, and to change it is to add the next. The latest of each kind
is never trimmed.
"""

import contextlib
from collections.abc import Callable
from typing import Any

from hardsave.errors import Conflict
from hardsave.stores.ledger import Latest, Work
from hardsave.tasks.desk import KEPT, Desk

_TRIES = 100  # of a write that others were faster with


def read(desk: Desk, kind: str) -> Any:
    """The value of a kind; None if there is none yet."""
    found = desk.store.latest_entry(desk.user, kind)
    return None if found is None else desk.codec.decode(found.data)


def change(
    desk: Desk,
    kind: str,
    how: Callable[[Any], Any],
    *,
    trims: Callable[[Any], bool] = lambda _: False,
) -> Any:
    """Put `how(value)` in the place of a value, whichever process has written that; the new one.
    Where it `trims`, old entries about the ledger as a whole go."""
    for _ in range(_TRIES):
        found = desk.store.latest_entry(desk.user, kind)
        become = how(None if found is None else desk.codec.decode(found.data))
        work = Work(
            latest=Latest(kind, None if found is None else found.id),
            keep_itself=KEPT if trims(become) else None,
        )
        with contextlib.suppress(Conflict):
            desk.commit(desk.entry(kind, None, become), work)
            return become
    raise Conflict(f"others have changed {kind!r} {_TRIES} times meanwhile; try again")
