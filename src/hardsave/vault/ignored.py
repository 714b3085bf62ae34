"""Files that an operation brings, or takes away, although no capture of the present has them.

It has none that rules ignore, that look secret or are too large, unless somebody asks for them. So
an operation that brings such files, because its checkpoint has them, notes which: to turn it around
means to take these away again, as long as they are, byte for byte, what that checkpoint has; and to
turn that around, to bring them once more. Whatever else is not captured is never touched.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from stat import S_IFREG
from typing import NamedTuple

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id
from hardsave.vault.choosing import Wanted, snapshot_of
from hardsave.vault.context import Context
from hardsave.vault.place import Place
from hardsave.workspace import compare, directory, disk
from hardsave.workspace.beneath import Beneath
from hardsave.workspace.compare import Difference
from hardsave.workspace.entries import FILE, Entry
from hardsave.workspace.plan import Plan, Step
from hardsave.workspace.policy import Policy

_PUTS = ("write", "symlink", "link", "mkdir")


class Besides(NamedTuple):
    """A difference that no two snapshots show, and the checkpoint that has the file."""

    checkpoint: Id
    difference: Difference


def turned(context: Context, place: Place, wanted: Wanted, goal: Hash) -> list[Besides]:
    """What turning an operation around is to do about such files, as things are."""
    if not (wanted.brought or wanted.took):
        return []
    top = directory.read_snapshot(goal, context.objects.fetch).top
    with Beneath(place.root) as beneath:
        found = [
            Besides(id, Difference(path, entry, None))
            for id, path, entry in _entries(context, wanted.brought)
            if disk.is_at(beneath, path, entry)
        ]
        found += [
            Besides(id, Difference(path, None, entry))
            for id, path, entry in _entries(context, wanted.took)
            if not disk.is_taken(beneath, path)
        ]
    fetch = context.objects.fetch
    return [each for each in found if compare.find(top, each.difference.path, fetch) is None]


def _entries(context: Context, marks: tuple[bytes, ...]) -> Iterator[tuple[Id, bytes, Entry]]:
    """What checkpoints have at these paths. One that was dropped, or is damaged, has nothing to
    say: then such a file stays, and what else there is to be done is."""
    find = cache(partial(_top, context))
    for id, path in zip(marks[::2], marks[1::2], strict=True):
        entry = None
        with suppress(Corrupt):
            top = find(id)
            entry = None if top is None else compare.find(top, path, context.objects.fetch)
        if entry is not None:
            yield id, path, entry


def _top(context: Context, id: Id) -> Hash | None:
    record = context.store.checkpoint(context.user, id)
    if record is None:
        return None
    return directory.read_snapshot(snapshot_of(context, record), context.objects.fetch).top


def brought(plan: Plan, policy: Policy, target: Id, besides: list[Besides]) -> tuple[bytes, ...]:
    """What the log is to say was brought: checkpoints and paths, by turns."""
    own = [
        (target, step.path)
        for step in plan.steps
        if step.do in _PUTS
        and step.before is None
        and (step.path in plan.meant or _is_left_out(step, policy))
    ]
    again = [(each.checkpoint, each.difference.path) for each in besides if each.difference.new]
    return tuple(part for mark in own + again for part in mark)


def _is_left_out(step: Step, policy: Policy) -> bool:
    entry = step.after
    if entry is None or entry.type != FILE:
        return False
    return policy.objection(step.path, S_IFREG | entry.mode, entry.size) is not None


def took(besides: list[Besides]) -> tuple[bytes, ...]:
    """The same, of what was taken away."""
    gone = [(each.checkpoint, each.difference.path) for each in besides if each.difference.old]
    return tuple(part for mark in gone for part in mark)
