"""A workspace gets another host or directory, or another attempt: its epoch rises.

Contract. One commit, which the log tells as `workspace`. Captures that were begun before it are
refused (`WorkspaceTaken`); those that begin after it are of the workspace as it is then. What was
captured stays as it is: checkpoints name the workspace by its id.
"""

from hardsave.objects.records import LogRecord
from hardsave.stores.base import NO_HOST, Batch, WorkspaceMove
from hardsave.vault import fencing
from hardsave.vault.context import Context
from hardsave.vault.place import Place
from hardsave.vault.places import taken_by

_EMPTY = b"\x80"


def take_over(context: Context, place: Place, id: bytes | None) -> None:
    """Have a directory of this host be the workspace of this id; None: what it is already. The one
    that it was until now is left without a host."""
    places = context.places
    with place.locked():
        here = places.find(place.root)
        wanted = places.known(id or (here or place.record).id)
        standing = context.store.workspace(context.user, wanted.id)
        moves = []
        if here is not None and here.id != wanted.id:
            moves.append(WorkspaceMove(here.epoch, taken_by(here, NO_HOST, here.path)))
        expect = None if standing is None else standing.epoch
        moves.append(WorkspaceMove(expect, taken_by(wanted, places.host, place.root)))
        entry = LogRecord(0, context.new_id(), None, "workspace", context.clock(), _EMPTY)
        fencing.commit(context, Batch(context.user, entry, workspaces=moves))
        places.forget(each.become.id for each in moves)
        places.forget([place.id])
