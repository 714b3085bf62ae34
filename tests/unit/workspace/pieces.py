"""Single pieces of what a capture does, for tests that look at them alone."""

from collections.abc import Sequence
from pathlib import Path

from hardsave.objects.hashing import Hash
from hardsave.workspace.entries import NotCaptured
from hardsave.workspace.git.git_directory import GitDirectory, NoGitDirectory, opened
from hardsave.workspace.git.position import GitPosition, Tracked, exclude_in, tracked_in
from hardsave.workspace.ignore.outer_rules import OuterRules
from hardsave.workspace.snapshot import capture
from hardsave.workspace.snapshot.capture import Capture
from hardsave.workspace.snapshot.content import Put

NOTHING = OuterRules()


def tracked(root: Path) -> frozenset[bytes] | None:
    """The paths in an index; None if there is no repository, or its index cannot be read."""
    found = tracked_or_why(root)
    return None if found is None or found.problem else found.paths


def tracked_or_why(root: Path) -> Tracked | None:
    """The same, with the reason; None if there is no repository."""
    with opened(root) as directory:
        match directory:
            case None:
                return None
            case NoGitDirectory(problem):
                return Tracked(frozenset(), problem)
            case GitDirectory():
                return tracked_in(directory)


def info_exclude(root: Path) -> bytes:
    with opened(root) as directory:
        return exclude_in(directory, root) if isinstance(directory, GitDirectory) else b""


def written(
    snapshot: Hash,
    not_captured: Sequence[NotCaptured],
    position: GitPosition | None,
    put: Put,
    outside: OuterRules = NOTHING,
) -> Hash:
    """Store a capture; the contents of git's files, and of ignore files, come before it."""
    git = None if position is None else capture.write_git(position, put)
    around = capture.write_outer_rules(outside, put)
    return capture.write(Capture(snapshot, tuple(not_captured), git, around), put)
