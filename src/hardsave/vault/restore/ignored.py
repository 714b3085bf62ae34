"""Files that an operation brings, or takes away, although no capture of the present has them.

It has none that rules ignore, that look secret or are too large, unless they are asked for. So an
operation that brings such files, because its checkpoint has them, notes which: to turn it around
means to take these away again, as long as they are, byte for byte, what that checkpoint has; and to
turn that around, to bring them once more. Anything else that is not captured is never touched.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from stat import S_IFREG

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.restore.path_choice import RestoreRequest, snapshot_of
from hardsave.vault.save.capturing import Taken
from hardsave.vault.workspaces.place import Place
from hardsave.workspace.entries import DIRECTORY, FILE, Entry
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.restore import disk_state
from hardsave.workspace.restore.plan import Plan, Step
from hardsave.workspace.scan.capture_policy import Policy
from hardsave.workspace.snapshot import compare, directory
from hardsave.workspace.snapshot.compare import Difference
from hardsave.workspace.snapshot.content import overlay

_PUTS = ("write", "symlink", "link", "mkdir")


class Besides(NamedTuple):
    """A difference that no two snapshots show, and the checkpoint that has the file."""

    checkpoint: Id
    difference: Difference
    is_brought: bool  # else it is taken away, or what was there before takes its place


def turned(
    context: Context, place: Place, request: RestoreRequest, taken: Taken, goal: Hash
) -> list[Besides]:
    """What turning an operation around is to do about such files, as things are."""
    if not (request.brought or request.took):
        return []
    fetch = overlay(taken.objects, context.objects.fetch)
    tops = [directory.read_snapshot(each, fetch).top for each in (taken.snapshot, goal)]
    found: list[Besides] = []
    with RootDirectory(place.root) as beneath:
        for id, path, entry in _entries(context, request.brought):
            if disk_state.is_at(beneath, path, entry):
                became = compare.find(tops[1], path, fetch)
                found.append(Besides(id, Difference(path, entry, became), is_brought=False))
        for id, path, entry in _entries(context, request.took):
            there, became = (compare.find(top, path, fetch) for top in tops)
            if became is None and (there or not disk_state.is_taken(beneath, path)):
                found.append(Besides(id, Difference(path, there, entry), is_brought=True))
    return [each for each in found if not _is_same(each.difference)]


def overlooked(
    context: Context,
    place: Place,
    request: RestoreRequest,
    taken: Taken,
    goal: Hash,
    touched: Collection[bytes],
) -> list[Besides]:
    """Of what an operation has changed, and turning it around would leave alone because nothing
    captures it any more, as with the rules that came with the operation: what is, byte for
    byte, as it was left. That is stored, and what was there before is: so nothing is lost."""
    left = (request.only or frozenset()).difference(touched)
    after = None if request.after is None else _top(context, request.after)
    if not left or request.after is None or after is None:
        return []
    took = {path: entry for _, path, entry in _entries(context, request.took)}
    fetch = overlay(taken.objects, context.objects.fetch)
    now, before = (directory.read_snapshot(each, fetch).top for each in (taken.snapshot, goal))
    present, as_left, target = (compare.finder(top, fetch) for top in (now, after, before))
    found: list[Besides] = []
    with RootDirectory(place.root) as beneath:
        for path in sorted(left):
            became = None if present(path) else target(path) or took.get(path)
            if became is None:
                continue
            was = as_left(path)
            if was is None and not disk_state.is_taken(beneath, path):
                difference = Difference(path, None, became)
                found.append(Besides(request.target.id, difference, is_brought=True))
            if was is not None and disk_state.is_at(beneath, path, was):
                difference = Difference(path, was, became)
                found.append(Besides(request.after, difference, is_brought=False))
    return [each for each in found if not _is_same(each.difference)]


def _is_same(each: Difference) -> bool:
    """A directory is one, with anything in it."""
    if each.old is None or each.new is None or each.old.type != DIRECTORY:
        return each.old == each.new
    return each.new.type == DIRECTORY and each.old.mode == each.new.mode


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


def brought(
    plan: Plan, policy: Policy, target: Id, besides: Sequence[Besides]
) -> tuple[bytes, ...]:
    """What the log is to say was brought: checkpoints and paths, by turns."""
    uncaptured = plan.meant | plan.matched
    again = [(each.checkpoint, each.difference.path) for each in besides if each.is_brought]
    told = {each.difference.path for each in besides}
    own = [
        (target, step.path)
        for step in plan.steps
        if step.do in _PUTS and (step.path in uncaptured or _is_left_out(step, policy))
    ]
    marks = [mark for mark in own if mark[1] not in told] + again
    return tuple(part for mark in marks for part in mark)


def _is_left_out(step: Step, policy: Policy) -> bool:
    entry = step.after
    if entry is None or entry.type != FILE:
        return False
    return policy.objection(step.path, S_IFREG | entry.mode, entry.size) is not None


def took(besides: Sequence[Besides]) -> tuple[bytes, ...]:
    """The same, of what was taken away."""
    gone = [(each.checkpoint, each.difference.path) for each in besides if not each.is_brought]
    return tuple(part for mark in gone for part in mark)
