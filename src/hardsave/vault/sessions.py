"""Several sessions in one workspace: whose changes are whose. Decided over plain data.

A change is what differs between a checkpoint and the one before it in the same workspace, by
whichever timeline. It counts as made by the timeline that saved it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hardsave.objects.hashing import Hash

Changed = Callable[[Hash, Hash], Iterable[bytes]]
"""The paths that differ between two snapshots; directories are not among them."""


class Saved(NamedTuple):
    """One capture of a workspace."""

    timeline: str
    snapshot: Hash


class Shares(NamedTuple):
    """Who has changed what since some checkpoint."""

    mine: frozenset[bytes]
    others: dict[bytes, str]  # which timeline

    @property
    def both(self) -> dict[bytes, str]:
        """What others have changed too."""
        return {path: who for path, who in self.others.items() if path in self.mine}


def shares(since: Hash, saved: Sequence[Saved], timeline: str, changed: Changed) -> Shares:
    """Look at captures in the order of their commits, from a snapshot on."""
    if all(each.timeline == timeline for each in saved):
        return Shares(frozenset(), {})  # nobody else: nothing has to be compared
    mine: set[bytes] = set()
    others: dict[bytes, str] = {}
    before = since
    for each in saved:
        paths = changed(before, each.snapshot) if each.snapshot != before else ()
        if each.timeline == timeline:
            mine.update(paths)
        else:
            others.update(dict.fromkeys(paths, each.timeline))
        before = each.snapshot
    return Shares(frozenset(mine), others)
