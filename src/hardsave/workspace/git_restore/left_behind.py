"""Which commits a restore leaves behind: those that no branch, tag or remote leads to any more.

For the preview alone, so the walk is bounded: it says if there may be more.
"""

import heapq
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from hardsave.record import Record
from hardsave.tuples import NamedTuple
from hardsave.workspace.git import refs
from hardsave.workspace.git.git_directory import GitDirectory, repository
from hardsave.workspace.git.objects import Objects
from hardsave.workspace.git.packs import Unreadable
from hardsave.workspace.git_restore.pins import PINS
from hardsave.workspace.git_restore.plan import GitPlan
from hardsave.workspace.git_restore.worktrees import heads

_MOST_READ = 5000
_MOST_PEELED = 10
_CLOCKS_DIFFER_SECONDS = 24 * 60 * 60
_PARENT = re.compile(rb"^parent ([0-9a-f]+)$", re.MULTILINE)
_COMMITTER = re.compile(rb"^committer .*> (-?[0-9]{1,15}) ", re.MULTILINE)
_TAGGED = re.compile(rb"\Aobject ([0-9a-f]+)\n")


class GitCommit(Record):
    """A commit, as far as a walk and a person need it."""

    id: str
    parents: tuple[str, ...]
    seconds: int
    subject: str


class LeftBehind(NamedTuple):
    """Commits that are left behind, the newest first; `is_all`: there are no more."""

    commits: tuple[GitCommit, ...]
    is_all: bool


def left_behind(root: Path, plan: GitPlan) -> LeftBehind:
    """What only the pins will hold when the plan has been carried out."""
    tips = [move.before for move in plan.logs if move.before is not None]
    with repository(root) as directory, Objects(directory) as objects:
        kept = [*_kept(directory, plan), *(m.after for m in plan.logs if m.after is not None)]
        return walk(tips, kept, lambda id: read(objects, id))


def _kept(directory: GitDirectory, plan: GitPlan) -> Iterable[str]:
    """Where all other refs and worktrees stand."""
    moved = {os.fsencode(move.ref) for move in plan.refs}
    for ref in refs.below(directory, b"refs/"):
        found = refs.resolve(directory, ref).commit
        if found is not None and ref not in moved and not ref.startswith(PINS.encode()):
            yield found.decode()
    yield from heads(directory)


# Commits


def read(objects: Objects, id: str) -> GitCommit | None:
    """A commit, or the one that a tag leads to; None if it is neither or cannot be read."""
    for _ in range(_MOST_PEELED):
        try:
            kind, data = objects.read(id)
        except Unreadable:
            return None
        if kind == "commit":
            return parse(id, data)
        tagged = _TAGGED.match(data) if kind == "tag" else None
        if tagged is None:
            return None
        id = tagged[1].decode()
    return None


def parse(id: str, data: bytes) -> GitCommit:
    head, _, message = data.partition(b"\n\n")
    when = _COMMITTER.search(head)
    subject = message.lstrip().partition(b"\n")[0].decode("utf-8", "replace")
    parents = tuple(parent.decode() for parent in _PARENT.findall(head))
    return GitCommit(id, parents, int(when[1]) if when else 0, subject)


def walk(
    tips: Iterable[str],
    kept: Iterable[str],
    read: Callable[[str], GitCommit | None],
    *,
    most: int = _MOST_READ,
) -> LeftBehind:
    """Walk from the newest commit to the oldest, until no further one can be left behind."""
    is_kept: dict[str, bool] = {}
    known: dict[str, GitCommit] = {}
    queue: list[tuple[int, str]] = []  # the newest first
    left: list[tuple[int, str]] = []  # not kept, the oldest first; some are found to be later

    def see(id: str, kept: bool) -> None:
        """Note a commit, or that it is kept after all: then its parents are, too."""
        if id not in is_kept:
            commit = read(id)
            if commit is None:
                return
            id = commit.id
            known[id] = commit
        if is_kept.get(id) in (kept, True):
            return
        is_kept[id] = kept
        heapq.heappush(queue, (-known[id].seconds, id))
        if not kept:
            heapq.heappush(left, (known[id].seconds, id))

    def is_over() -> bool:
        """Whether all that is left to see is older than all that is not kept, by more than clocks
        differ."""
        while left and is_kept[left[0][1]]:
            heapq.heappop(left)
        return not queue or not left or -queue[0][0] < left[0][0] - _CLOCKS_DIFFER_SECONDS

    for some, value in ((kept, True), (tips, False)):
        for id in some:
            see(id, value)
    while len(known) < most and not is_over():
        _, id = heapq.heappop(queue)
        for parent in known[id].parents:
            see(parent, is_kept[id])
    found = [commit for id, commit in known.items() if not is_kept[id]]
    return LeftBehind(
        tuple(sorted(found, key=lambda commit: (-commit.seconds, commit.id))), is_over()
    )
