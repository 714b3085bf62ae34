"""Several sessions in one workspace: whose changes are whose. Decided over plain data.

A change is what differs between a capture and the one before it in the same workspace, by
whichever timeline: it counts as made by the timeline that saved it. What an operation brought
back counts as changed by the operation's timeline, whoever is the next to save it. What was
saved only because an operation was about to write is nobody's yet: whoever saves it next has
made it.

Workspaces may lie in each other, saved by different sessions. What one of them has seen of a
directory counts for all that have it; paths begin with the workspace that they are seen from.
"""

from collections.abc import Callable, Iterable, Sequence

from hardsave.objects.hashing import Hash
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import lies_in


class Saved(NamedTuple):
    """One capture of a workspace."""

    timeline: str
    snapshot: Hash
    root: bytes = b""


class Brought(NamedTuple):
    """An operation: these paths became what a snapshot holds."""

    timeline: str
    paths: frozenset[bytes]
    snapshot: Hash
    root: bytes = b""


Changed = Callable[[Saved | Brought | None, Saved], Iterable[bytes] | None]
"""The paths that differ between two snapshots, where both see them: in the inner one of their
workspaces. None if the outer one does not have that. All paths, if there is but one snapshot."""


class Shares(NamedTuple):
    """Who has changed what since some checkpoint."""

    mine: frozenset[bytes]
    others: dict[bytes, str]  # which timeline


def shares(
    since: Saved, happened: Sequence[Saved | Brought], timeline: str, changed: Changed
) -> Shares:
    """Look at what happened in the order of commits, from a capture on."""
    mine: set[bytes] = set()
    others: dict[bytes, str] = {}
    known = [since]
    brought: list[Brought] = []  # since the last capture
    for each in happened:
        if isinstance(each, Brought):
            paths = set(each.paths)
            brought.append(each)
        else:
            paths, known = _news(known, each, since.root, changed)
            for one in brought:
                paths -= _as_brought(one, each, changed)
            brought = [one for one in brought if not lies_in(one.root, each.root)]
        if each.timeline == timeline:
            mine |= paths
        else:
            others.update(dict.fromkeys(paths, each.timeline))
    return Shares(frozenset(mine), others)


def _news(
    known: Sequence[Saved], each: Saved, root: bytes, changed: Changed
) -> tuple[set[bytes], list[Saved]]:
    """What a capture has that nobody had seen before, and what is known after it. A directory in
    the workspace at `root` that nobody had is new; one around it may have been ignored there."""
    paths, start = _against_wider(known, each, changed)
    if paths is None:
        is_new = each.root != root and lies_in(each.root, root)
        paths = set(changed(None, each) or ()) if is_new else set()
    after: list[Saved] = []
    for at, one in enumerate(known):
        if one.root == each.root:
            continue
        found = changed(one, each) if lies_in(one.root, each.root) else None
        if found is None:  # each says nothing of it, or only of a part
            after.append(one)
        elif at >= start:
            paths = {path for path in paths if not lies_in(path, one.root)} | {*found}
    return paths, [*after, each]


def _against_wider(
    known: Sequence[Saved], each: Saved, changed: Changed
) -> tuple[set[bytes] | None, int]:
    """What differs from the last capture of all that this one is of, if there is any; and from
    where on there are captures of parts."""
    for at in reversed(range(len(known))):
        if lies_in(each.root, known[at].root):
            found = changed(known[at], each)
            if found is not None:
                return set(found), at + 1
    return None, 0


def _as_brought(one: Brought, each: Saved, changed: Changed) -> set[bytes]:
    """Paths that a capture has as an operation has brought them."""
    found = changed(one, each)
    if found is None:
        return set()
    inner = max(one.root, each.root, key=len)
    return {path for path in one.paths if lies_in(path, inner)}.difference(found)
