"""How often a server's loop has gone round, in all sessions and processes together."""

import contextlib

from hardsave.errors import Conflict
from hardsave.objects.records import EntryRecord
from hardsave.stores.ledger import Latest, Work
from hardsave.tasks.desk import KEPT, Desk

_KIND = "iterated"
_TRIES = 100  # of a write that others were faster with


def so_far(desk: Desk) -> int:
    return _count(desk, desk.store.latest_entry(desk.user, _KIND))


def one_more(desk: Desk) -> int:
    """Count one on top of the latest count, whichever process has written that; the new one."""
    for _ in range(_TRIES):
        found = desk.store.latest_entry(desk.user, _KIND)
        count = _count(desk, found) + 1
        work = Work(
            latest=Latest(_KIND, None if found is None else found.id),
            keep_itself=KEPT if count % KEPT == 0 else None,
        )
        with contextlib.suppress(Conflict):
            desk.commit(desk.entry(_KIND, None, {"count": count}), work)
            return count
    raise Conflict(f"others have counted {_TRIES} times meanwhile; try again")


def _count(desk: Desk, entry: EntryRecord | None) -> int:
    return 0 if entry is None else int(desk.codec.decode(entry.data)["count"])
