"""The repository's half of a restore: HEAD, its branch, the index, unfinished work.

It comes after the files, when the operation has been committed. What speaks against it is
asked before; what turns up later, such as a lock that somebody has taken meanwhile, does not
stop the restore of files and is told. Never runs git.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hardsave.errors import HardsaveError, Misuse, NotFound
from hardsave.objects.records import CheckpointRecord
from hardsave.timeline.refs import to_text
from hardsave.vault.context import Context
from hardsave.vault.place import Place
from hardsave.workspace import capture, gitplan
from hardsave.workspace.git import GitPosition
from hardsave.workspace.gitrestore import abandon, check_git, restore_git
from hardsave.workspace.surroundings import Surroundings


class GitWay(NamedTuple):
    """From where a repository stands to where it shall."""

    before: GitPosition
    target: GitPosition

    @property
    def is_empty(self) -> bool:
        return gitplan.plan_git(self.before, self.target).is_empty


def wanted(context: Context, target: CheckpointRecord, goal: capture.Capture) -> GitPosition:
    """The position to go to."""
    if goal.git is None:
        raise NotFound(
            f"checkpoint {to_text(target.id)} was saved where there was no repository; "
            "restore the files without git"
        )
    return capture.position(goal.git, context.objects.fetch)


def branches(position: GitPosition | None) -> Iterable[str]:
    return () if position is None else gitplan.branches(position)


def way(place: Place, around: Surroundings, target: GitPosition) -> GitWay:
    """The way there, if nothing speaks against it."""
    if around.position is None:
        raise Misuse(f"{str(place.path)!r} is in no repository; restore the files without git")
    if not around.is_top:
        raise Misuse(
            f"{str(place.path)!r} is a part of a repository, which a restore with git would change "
            "as a whole; name the repository's own directory, or restore without git"
        )
    check_git(place.path, around.position, target)
    return GitWay(around.position, target)


def go(place: Place, way: GitWay, safety: CheckpointRecord) -> str | None:
    """Bring the repository there; why not, if it could not be done. May be repeated."""
    seconds = safety.created_at // 1_000_000
    try:
        restore_git(place.path, way.before, way.target, id=to_text(safety.id), seconds=seconds)
    except HardsaveError as error:
        return f"git stays where it is: {error}"
    return None


def again(context: Context, place: Place, before: bytes, after: bytes) -> str | None:
    """Finish what was interrupted, from what the two checkpoints know."""
    records = [context.store.checkpoint(context.user, id) for id in (before, after)]
    positions: list[GitPosition] = []
    for record in records:
        if record is None or record.snapshot is None:
            abandon(place.path, id=to_text(before))
            return "git stays where it is: a checkpoint is gone"
        found = capture.read(record.snapshot, context.objects.fetch)
        positions.append(wanted(context, record, found))
    safety = records[0]
    assert safety is not None
    return go(place, GitWay(*positions), safety)
