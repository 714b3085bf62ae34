"""What a restore does not bring back, and says so: files that the checkpoint did not save, and the
branch that git was on. Reads names, times and what was captured; writes nothing."""

import os
from collections.abc import Iterable, Iterator

from hardsave.record import Record
from hardsave.vault.files import GitState, git_state
from hardsave.workspace.entries import FILE, NotCaptured, last_name, parent
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.restore import disk_state
from hardsave.workspace.restore.requested_paths import RequestedPaths
from hardsave.workspace.scan.git_context import GitContext
from hardsave.workspace.scan.newly_ignored import WHOLE
from hardsave.workspace.snapshot import capture

# Left out by their nature: their processes make them anew, or they are ours.
_NO_LOSS = frozenset(
    (
        "a FIFO",
        "a socket",
        "a device",
        "a file of the store",
        "left by a restore that was interrupted",
    )
)
_INDEX = (b".git", b"index")


class NotSaved(Record):
    """A file that was there when a checkpoint was saved, is not in it, and is gone or has been
    written since: a restore does not bring it back."""

    path: str
    reason: str
    """Why it was not saved: `ignored`, or as `LeftOut` has it."""
    is_gone: bool
    """Not: it lies there as it was written since, and stays so."""


class Checkout(Record):
    """That git was on another branch then than it is on now, and stays there."""

    then: GitState
    now: GitState
    can_return: bool
    """Whether a restore with `git=True` brings it back: not in a part of a repository."""


def not_saved(
    beneath: RootDirectory, missed: Iterable[NotCaptured], saved_at: int, asked: RequestedPaths
) -> tuple[NotSaved, ...]:
    """Of what a checkpoint left out, what is not as it was then, as far as times can tell.
    `saved_at` in microseconds."""
    return tuple(
        NotSaved(os.fsdecode(each.path), each.reason, written is None)
        for each in sorted(_worth_naming(missed, asked))
        if (written := _written(beneath, each.path)) is None or written > saved_at * 1000
    )


def _worth_naming(missed: Iterable[NotCaptured], asked: RequestedPaths) -> Iterator[NotCaptured]:
    for each in missed:
        is_index = (last_name(parent(each.path)), last_name(each.path)) == _INDEX
        is_loss = each.path != WHOLE and not is_index and each.reason not in _NO_LOSS
        if is_loss and asked.holds(each.path):
            yield each


def _written(beneath: RootDirectory, path: bytes) -> int | None:
    """When what lies at a path was last written, in nanoseconds; None: nothing lies there. What a
    directory holds is not told by its own time: it counts as it was."""
    try:
        with beneath.directory(parent(path)) as directory:
            found = disk_state.look(last_name(path), directory)
    except OSError:
        return None
    if found is None:
        return None
    return found.st_mtime_ns if disk_state.is_type(found, FILE) else 0


def checkout(goal: capture.Git | None, around: GitContext) -> Checkout | None:
    """Where git stood then and stands now, if that is not the same branch."""
    now = around.position
    if goal is None or now is None or _place(goal.ref, goal.commit) == _place(now.ref, now.commit):
        return None
    return Checkout(git_state(goal), git_state(now), around.is_top)


def _place(ref: str | None, commit: str | None) -> str | None:
    """The branch; without one, the commit that is checked out."""
    return ref or commit
