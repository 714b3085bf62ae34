"""Several sessions in one workspace: whose changes are whose. Decided over plain data.

A change is what differs between a capture and the one before it in the same workspace, by
whichever timeline: it counts as made by the timeline that saved it. What an operation brought
back counts as changed by the operation's timeline, whoever is the next to save it. What was
saved only because an operation was about to write is nobody's yet: whoever saves it next has
made it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hardsave.objects.hashing import Hash

Changed = Callable[[Hash, Hash], Iterable[bytes]]
"""The paths that differ between two snapshots."""


class Saved(NamedTuple):
    """One capture of a workspace."""

    timeline: str
    snapshot: Hash


class Brought(NamedTuple):
    """An operation: these paths became what a snapshot holds."""

    timeline: str
    paths: frozenset[bytes]
    snapshot: Hash


class Shares(NamedTuple):
    """Who has changed what since some checkpoint."""

    mine: frozenset[bytes]
    others: dict[bytes, str]  # which timeline


def shares(
    since: Hash, happened: Sequence[Saved | Brought], timeline: str, changed: Changed
) -> Shares:
    """Look at what happened in the order of commits, from a snapshot on."""
    mine: set[bytes] = set()
    others: dict[bytes, str] = {}
    before = since
    brought: list[Brought] = []  # since the last capture
    for each in happened:
        if isinstance(each, Brought):
            paths = set(each.paths)
            brought.append(each)
        else:
            paths = set(changed(before, each.snapshot)) if each.snapshot != before else set()
            for one in brought:
                paths -= one.paths.difference(changed(one.snapshot, each.snapshot))
            before, brought = each.snapshot, []
        if each.timeline == timeline:
            mine |= paths
        else:
            others.update(dict.fromkeys(paths, each.timeline))
    return Shares(frozenset(mine), others)
