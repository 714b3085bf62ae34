"""Restores that were interrupted: what a journal says of one, and which way it is settled.

Contract. One whose operation was committed is finished, any other is taken back: by the next
process that uses the workspace, or opens the store. To be interrupted again does no harm.
"""

import glob
import os
import time
from collections.abc import Sequence
from pathlib import Path

from hardsave.errors import Corrupt, HardsaveError, Misuse, Unavailable
from hardsave.logs import log
from hardsave.objects.records import Id
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.workspaces.place import Place
from hardsave.vault.workspaces.places import files_of
from hardsave.workspace.restore import execution, journal
from hardsave.workspace.restore.steps import Restored


class _Note(NamedTuple):
    """What a journal says besides its steps: enough to settle what was interrupted."""

    user: str | None
    entry: Id  # what its commit is called
    git: tuple[Id, Id] | None  # from which checkpoint's position to which


def note(context: Context, entry: Id, *, git: tuple[Id, Id] | None = None) -> bytes:
    plain = [context.user, entry, None if git is None else list(git)]
    return context.objects.verbatim.codec.encode(plain)


def _note_of(context: Context, written: journal.Journal) -> _Note:
    """Also as earlier versions wrote it: without git, and with both checkpoints in any case."""
    match context.objects.verbatim.codec.decode(written.note):
        case [user, entry] | [user, entry, None] | [user, entry, _, _, False]:
            return _Note(user, entry, None)
        case [user, entry, [before, after]] | [user, entry, before, after, True]:
            return _Note(user, entry, (before, after))
    raise Unavailable(
        f"a restore of {os.fsdecode(written.root)!r} was interrupted, and its journal is from "
        "another hardsave; finish it with that one"
    )


def recover(context: Context, place: Place) -> Restored | None:
    """Finish a restore whose operation was committed, take any other back. The lock is held."""
    written = journal.read(place.journal)
    if written is None:
        return None
    said = _note_of(context, written)
    if said.user != context.user:
        raise Misuse(f"a restore by user {said.user!r} was interrupted here; open it as them")
    back = context.store.log_entry(context.user, said.entry) is None
    done = execution.carry_out(written, context.objects.fetch, place.journal, back=back)
    if said.git is not None and not back:
        from hardsave.vault.restore import git_position as repository

        problem = repository.again(context, place, *said.git)
        if problem is not None:
            log(__name__).error(
                "after a restore of %s that was interrupted: %s", place.path, problem
            )
    execution.finish(place.journal)
    way = "taken back" if back else "finished"
    log(__name__).warning("a restore of %s was interrupted; it is %s now", place.path, way)
    for path, why in done.conflicts:
        log(__name__).warning("%r was kept as it is: %s", os.fsdecode(path), why)
    return done


def recover_all(context: Context, journals: Sequence[str]) -> None:
    """What a store finds when it is opened. A workspace that is in use is left to its user."""
    for path in journals:
        try:
            _recover_one(context, Path(path))
        except (HardsaveError, OSError) as error:
            log(__name__).error("a restore was interrupted, and cannot be recovered yet: %s", error)


def _recover_one(context: Context, path: Path) -> None:
    written = journal.read(path)
    if written is None:
        return
    place = context.places.of(written.root)
    if _note_of(context, written).user != context.user or place.is_busy():
        return
    earlier = f"{files_of(written.root, context.user)}-journal"  # versions without workspace ids
    if place.journal != path and not path.name.endswith(earlier):
        return
    with place.locked():
        if place.journal != path and not place.journal.exists():
            path.rename(place.journal)
        recover(context, place)


def set_aside_damaged(store: str) -> list[str]:
    """Rename the damaged journals beside a store's file: none of them can be settled, and each
    keeps a workspace from being used. Says what that means, a sentence each."""
    said = []
    for path in sorted(Path(store).parent.glob(f"{glob.escape(Path(store).name)}-files-*-journal")):
        try:
            journal.read(path)
        except Corrupt:
            aside = path.with_name(f"{path.name}-damaged-{time.time_ns()}")
            path.rename(aside)
            said.append(
                "the journal of an interrupted restore was damaged, and every file is as it was "
                "before or after it: rewind again, the newest checkpoint has what was there; "
                f"the journal lies in {aside}"
            )
    return said
