"""The repository's half of a restore: HEAD, its branch, the index, unfinished work.

It comes after the files, when the operation has been committed. What speaks against it is
asked before; what turns up later, such as a lock that git has taken meanwhile, does not
stop the restore of files and is told. Never runs git.

What a restore leaves behind is pinned under the safety checkpoint's id. Pins of checkpoints
that were dropped since go at the next restore of the same repository: a `.git` is written to
when a caller asks for that, and never otherwise.
"""

from collections.abc import Iterable

from hardsave.errors import HardsaveError, Misuse, NotFound
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord
from hardsave.record import Record
from hardsave.timeline.names import is_full_id
from hardsave.timeline.refs import from_text, to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.files import GitState, git_state
from hardsave.vault.workspaces.place import Place
from hardsave.workspace.git.position import GitPosition
from hardsave.workspace.git_restore import blob_supply, pins
from hardsave.workspace.git_restore import plan as gitplan
from hardsave.workspace.git_restore.execution import abandon, check_git, restore_git
from hardsave.workspace.git_restore.left_behind import GitCommit, left_behind
from hardsave.workspace.scan.git_context import GitContext
from hardsave.workspace.snapshot import capture


class GitChanges(Record):
    """What a restore does to where a repository stands, or would do."""

    before: GitState
    after: GitState
    left_behind: tuple[GitCommit, ...]
    """That no branch, tag or remote leads to any more; pins of ours hold them."""
    is_all: bool
    """Not: there may be more of these."""


class GitWay(NamedTuple):
    """From where a repository stands to where it shall."""

    before: GitPosition
    target: GitPosition
    snapshot: Hash
    """The files that were captured with the target: what is staged may be among them."""


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


def way(
    context: Context, place: Place, around: GitContext, target: GitPosition, snapshot: Hash
) -> GitWay:
    """The way there, if nothing speaks against it."""
    if around.position is None:
        raise Misuse(f"{str(place.path)!r} is in no repository; restore the files without git")
    if not around.is_top:
        raise Misuse(
            f"{str(place.path)!r} is a part of a repository, which a restore with git would change "
            "as a whole; name the repository's own directory, or restore without git"
        )
    found = GitWay(around.position, target, snapshot)
    check_git(place.path, around.position, target, _supply(context, found))
    return found


def _supply(context: Context, way: GitWay) -> blob_supply.Supply:
    return blob_supply.of_snapshot(way.target, way.snapshot, context.objects.fetch)


def changes(place: Place, way: GitWay) -> GitChanges | None:
    """What going that way would do; None if the repository stands there already."""
    plan = gitplan.plan_git(way.before, way.target)
    if plan.is_empty:
        return None
    left = left_behind(place.path, plan)
    states = git_state(way.before), git_state(way.target)
    return GitChanges(*states, left.commits, left.is_all)


def go(context: Context, place: Place, way: GitWay, safety: CheckpointRecord) -> str | None:
    """Bring the repository there; why not, if it could not be done. May be repeated."""
    seconds = safety.created_at // 1_000_000
    try:
        restore_git(
            place.path,
            way.before,
            way.target,
            id=to_text(safety.id),
            seconds=seconds,
            supply=_supply(context, way),
        )
        _unpin_dropped(context, place)
    except HardsaveError as error:
        return f"git stays where it is: {error}"
    return None


def _unpin_dropped(context: Context, place: Place) -> None:
    """Let go of what was pinned for checkpoints of this store that were dropped."""
    for text in pins.pinned(place.path):
        if not is_full_id(text):
            continue  # made by another program
        if context.store.tombstone(context.user, from_text(text)) is not None:
            try:
                pins.unpin(place.path, text)
            except HardsaveError as error:
                log(__name__).warning("old pins stay: %s", error)


def again(context: Context, place: Place, before: bytes, after: bytes) -> str | None:
    """Finish what was interrupted, from what the two checkpoints know."""
    records = [context.store.checkpoint(context.user, id) for id in (before, after)]
    positions: list[GitPosition] = []
    snapshots: list[Hash] = []
    for record in records:
        if record is None or record.snapshot is None:
            abandon(place.path, id=to_text(before))
            return "git stays where it is: a checkpoint is gone"
        found = capture.read(record.snapshot, context.objects.fetch)
        positions.append(wanted(context, record, found))
        snapshots.append(found.snapshot)
    safety = records[0]
    assert safety is not None
    from_there, to_there = positions
    return go(context, place, GitWay(from_there, to_there, snapshots[-1]), safety)
