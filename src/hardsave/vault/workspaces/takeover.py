"""A workspace gets another host or directory, or another attempt: its epoch rises.

Contract. One commit, which the log tells as `workspace`. Captures that were begun before it are
refused (`WorkspaceTaken`); those that begin after it are of the workspace as it is then. What was
captured stays as it is: checkpoints name the workspace by its id.
"""

from collections.abc import Iterator, Sequence

from hardsave.objects.records import CheckpointRecord, LogRecord, WorkspaceRecord
from hardsave.stores.base import NO_CHANGES, Batch, Changes
from hardsave.stores.workspaces import NO_HOST, WorkspaceMove
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.workspaces.place import Place
from hardsave.vault.workspaces.places import taken_by

_PAGE = 1_000


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
        _commit(context, moves)
        places.forget([place.id])


def follow_move(context: Context, old: bytes, new: bytes) -> None:
    """Have the workspaces of this host in a directory that was moved be where they are now. Where
    one is already, as a version without ids left it, the captures of both become that one's."""
    moves: list[WorkspaceMove] = []
    for one in list(_inside(context, old)):
        path = new + one.path[len(old) :]
        there = context.store.workspace_at(context.user, context.places.host, path)
        if there is None:
            moves.append(WorkspaceMove(one.epoch, taken_by(one, one.host, path)))
        else:
            _join(context, one, there)
    if moves:
        _commit(context, moves)


def _inside(context: Context, directory: bytes) -> Iterator[WorkspaceRecord]:
    """A directory of this host as a workspace, and those in it."""
    host, inside = context.places.host, directory.rstrip(b"/") + b"/"
    if (found := context.store.workspace_at(context.user, host, directory)) is not None:
        yield found
    after = (host, inside, b"")
    while rows := context.store.workspaces(context.user, after, _PAGE):
        for row in rows:
            if row.host != host or not row.path.startswith(inside):
                return
            yield row
        after = (host, rows[-1].path, rows[-1].id)


def _join(context: Context, one: WorkspaceRecord, other: WorkspaceRecord) -> None:
    """Give the captures of a workspace to another, which is at the same place."""
    while rows := context.store.captured(context.user, one.id, None, _PAGE):
        _commit(context, (), Changes(replace=[_moved(row, other) for row in rows]))
    _commit(context, (), Changes(forget_workspaces=[one.id]))
    context.places.forget([one.id])


def _moved(row: CheckpointRecord, to: WorkspaceRecord) -> CheckpointRecord:
    return row._replace(workspace=to.id)


def _commit(
    context: Context, moves: Sequence[WorkspaceMove], changes: Changes = NO_CHANGES
) -> None:
    entry = LogRecord(0, context.new_id(), None, "workspace", context.clock(), operations.note())
    fencing.commit(context, Batch(context.user, entry, changes=changes, workspaces=moves))
    context.places.forget(each.become.id for each in moves)
