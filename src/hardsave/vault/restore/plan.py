"""What a restore is to do, decided before anything is done.

    request → the present, captured → what differs → what of it is asked for → what the disk says
            → a plan: steps there and back, what is left as it is and why, the way of git

Contract. Nothing is written into the workspace, and the timeline stays where it is: a dry run ends
here. What differs is compared once, or twice if something has to be captured that rules ignore;
steps are put in order once.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from hardsave.errors import NotFound
from hardsave.objects.hashing import Hash
from hardsave.record import Record
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.restore import ignored
from hardsave.vault.restore.ignored import Besides
from hardsave.vault.restore.not_saved import Checkout, NotSaved, checkout, not_saved
from hardsave.vault.restore.path_choice import (
    Chosen,
    Kept,
    RestoreRequest,
    Sides,
    capture_of,
    choose,
)
from hardsave.vault.save.capturing import Taken, Taking
from hardsave.vault.workspaces.place import Place
from hardsave.workspace.entries import DIRECTORY, Entry, above, joined, lies_in, parent
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.restore import disk_state
from hardsave.workspace.restore import plan as plans
from hardsave.workspace.restore.left_alone import Missed
from hardsave.workspace.restore.plan import Choice, Compared, Plan
from hardsave.workspace.restore.requested_paths import RequestedPaths, checked
from hardsave.workspace.snapshot import capture, compare, directory
from hardsave.workspace.snapshot.content import Fetch, overlay

if TYPE_CHECKING:
    from hardsave.vault.restore.git_position import GitChanges, GitWay
    from hardsave.workspace.git.position import GitPosition


class FileChanges(Record):
    """What a restore did to files, or would do."""

    workspace: str
    created: tuple[str, ...]
    """Files, and directories that come empty: these end with a slash, here and below."""
    changed: tuple[str, ...]
    """Content, kind or mode."""
    removed: tuple[str, ...]
    bytes: int
    """Written, or to be written."""
    kept: tuple[Kept, ...]
    """Left alone: in the way, changed meanwhile, or changed by another session too."""
    git: "GitChanges | None" = None
    """Where the repository goes, if that is among what changes."""
    missing: tuple[Kept, ...] = ()
    """Of `kept`: what was asked for, and is not as the checkpoint has it. Repeat the restore once
    the reasons are gone."""
    not_saved: tuple[NotSaved, ...] = ()
    """What the checkpoint did not save, such as an ignored `.env`, and is not as it was then: it
    does not come back."""
    checkout: Checkout | None = None
    """That git was on another branch then, and stays on the one it is on."""

    @property
    def is_complete(self) -> bool:
        """Whether everything that was asked for is, or would be, as the checkpoint has it."""
        return not self.missing

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.removed or self.git)

    def __str__(self) -> str:
        parts = [
            f"{len(paths)} {word}"
            for word in ("created", "changed", "removed", "kept")
            if (paths := getattr(self, word))
        ]
        return ", ".join(parts) or "nothing to do"


_IGNORED = "ignored by the rules that are here now"
_SPARED = "it is of another kind now, which the rules of that checkpoint ignore"

_PUTS = ("write", "symlink", "link", "mkdir")


class RestorePlan(NamedTuple):
    """What a restore is to do, as plain data."""

    request: RestoreRequest
    workspace: bytes
    """Its path."""
    taken: Taken
    """The present: what has to be in the safety checkpoint."""
    files: Plan
    chosen: Chosen
    besides: tuple[Besides, ...]
    kept: tuple[Kept, ...]
    """Left as it is, because it cannot be restored."""
    others: tuple[Kept, ...]
    """Left as it is, because it was not asked for: other sessions have changed it."""
    missing: tuple[Kept, ...]
    """Of what is kept, what the target has."""
    way: "GitWay | None" = None
    git: "GitChanges | None" = None
    not_saved: tuple[NotSaved, ...] = ()
    checkout: Checkout | None = None

    @property
    def is_nothing(self) -> bool:
        return not (self.files.steps or self.git)

    def changes(self) -> FileChanges:
        """The same for people: what happens to files if all of it is done."""
        return changes_of(self, ())


def plan_restore(
    context: Context, place: Place, request: RestoreRequest, files: Taking
) -> RestorePlan:
    """Decide what a request means for a workspace as it is now. Its lock is held."""
    goal = capture_of(context, request.target)
    position = _position(context, request, goal, files)
    taken = files.take()
    fetch = overlay(taken.objects, context.objects.fetch)
    sides = Sides(taken.snapshot, goal.snapshot, fetch)
    chosen = choose(context, place, request, goal.snapshot, sides)
    _check_paths(place, request, sides)
    asked = RequestedPaths(None if chosen.paths is None else checked(chosen.paths), chosen.only)
    compared, choice = _compared(context, place, taken, goal, asked)
    if differing := _differing(context, place, taken, choice):
        taken = files.take_also(differing)
        fetch = overlay(taken.objects, context.objects.fetch)
        compared, choice = _compared(context, place, taken, goal, asked)
    besides = _besides(context, place, request, taken, goal, chosen, choice)
    if besides:
        choice = choice.with_besides(each.difference for each in besides)
    plan = plans.arranged(compared, _settled(place, choice), fetch)
    kept = [*_unsaved(place, taken, plan, differing), *_left(plan)]
    way = None if position is None else _way(context, place, taken, position, goal.snapshot)
    return RestorePlan(
        request=request,
        workspace=place.root,
        taken=taken,
        files=plan,
        chosen=chosen,
        besides=tuple(besides),
        kept=tuple(kept),
        others=_others(place, request, chosen, compared, plan, fetch),
        missing=missing_of(context, plan, kept),
        way=way,
        git=None if way is None else _git_changes(place, way),
        not_saved=_not_saved(place, request, goal, asked),
        checkout=None if request.git else checkout(goal.git, taken.around),
    )


# The two sides


def _check_paths(place: Place, request: RestoreRequest, sides: Sides) -> None:
    """A path that neither side has is a mistake, not a wish that is fulfilled already."""
    if request.only is not None or not request.paths:
        return
    for path in checked(request.paths):
        if not sides.have(path):
            raise NotFound(
                f"{os.fsdecode(path)!r} is neither among the files of "
                f"{str(place.path)!r} nor in checkpoint {to_text(request.target.id)}; "
                "what is ignored is never touched"
            )


def _compared(
    context: Context, place: Place, taken: Taken, goal: capture.Capture, asked: RequestedPaths
) -> tuple[Compared, Choice]:
    """What differs, and what of it is asked for and not in the way of what lies there."""
    fetch = context.objects.fetch
    outside = capture.read_outer_rules(goal.outer_rules, fetch)
    found = plans.compared(
        taken.snapshot,
        goal.snapshot,
        overlay(taken.objects, fetch),
        rules=taken.around.rules,
        target_rules=outside.rules(),
        present_tracked=taken.around.tracked | taken.also,
        target_tracked=outside.below(capture.tracked(goal.git, fetch)) | taken.also,
        include=place.policy.include,
        paths=asked.paths,
        missed=Missed(
            now=frozenset(each.path for each in taken.not_captured),
            then=frozenset(each.path for each in goal.not_captured),
        ),
    )
    choice = plans.choose(found, asked)
    return found, choice.without(*_on_disk(place, choice, found.seen.meant))


# What only the disk can tell


def _on_disk(
    place: Place, choice: Choice, meant: Collection[bytes]
) -> tuple[set[bytes], set[bytes]]:
    """Of the places where something is to be made: those in which something else lies, which the
    present does not have because rules ignore it; and directories that are there already."""
    new, made = choice.to_make(), choice.directories_to_make()
    if not new:
        return set(), set()
    found: set[bytes] = set()
    with RootDirectory(place.root) as beneath:
        for over in {parent(path) for path in new} - (made - {*meant}):
            found.update(joined(over, name) for name in disk_state.names(beneath, over))
        there = {
            path for path in made & found if disk_state.is_at(beneath, path, Entry(DIRECTORY, 0))
        }
    return new & found - there, there.intersection(meant)


def _settled(place: Place, choice: Choice) -> Choice:
    """Without the directories that would go, and hold something that would not: what is ignored,
    a secret, another session's."""
    directories = choice.directories_to_go()
    if not directories:
        return choice
    going, held = choice.to_go(), set[bytes]()
    with RootDirectory(place.root) as beneath:
        for path in sorted(directories, reverse=True):
            inside = {joined(path, name) for name in disk_state.names(beneath, path)}
            if inside - going or inside & held:
                held.add(path)
    return choice.holding(frozenset(held))


def _differing(context: Context, place: Place, taken: Taken, choice: Choice) -> frozenset[bytes]:
    """Of what the target has, and rules of today ignore, what is not there as the target has it.
    To be replaced, what lies there has to be captured first, in spite of the rules."""
    missed = {each.path for each in taken.not_captured}
    hidden = {path: each for path, each in choice.unsaved.items() if path not in missed}
    if not hidden:
        return frozenset()
    found: set[bytes] = set()
    with RootDirectory(place.root) as beneath:
        for path, entry in hidden.items():
            for each, kept in _tree(path, entry, context.objects.fetch):
                if choice.asked.holds(each) and not disk_state.is_at(beneath, each, kept):
                    found.add(each)
    return frozenset(found)


def _tree(path: bytes, entry: Entry, fetch: Fetch) -> Iterator[tuple[bytes, Entry]]:
    """An entry, and all beneath it."""
    yield path, entry
    if entry.type == DIRECTORY:
        for each in compare.differences(None, entry.hash, fetch):
            if each.new is not None:
                yield joined(path, each.path), each.new


def _besides(
    context: Context,
    place: Place,
    request: RestoreRequest,
    taken: Taken,
    goal: capture.Capture,
    chosen: Chosen,
    choice: Choice,
) -> list[Besides]:
    """What an undo is to do that no two snapshots show (see `ignored`)."""
    found = ignored.turned(context, place, request, taken, goal.snapshot)
    touched = {each.path for each in choice.found} | {each.difference.path for each in found}
    found += ignored.overlooked(context, place, request, taken, goal.snapshot, touched)
    return [each for each in found if each.difference.path not in chosen.others]


# What is left as it is


def _left(plan: Plan) -> Iterator[Kept]:
    for path, over in sorted(plan.obstructed.items()):
        why = f"{os.fsdecode(over)!r} is in the way, and was not asked for: restore that"
        yield Kept(os.fsdecode(path), why)
    for path in sorted(plan.spared):
        yield Kept(os.fsdecode(path), _SPARED)
    for path in sorted(plan.held):
        yield Kept(os.fsdecode(path), "not empty")


def _others(
    place: Place,
    request: RestoreRequest,
    chosen: Chosen,
    compared: Compared,
    plan: Plan,
    fetch: Fetch,
) -> tuple[Kept, ...]:
    """What would be restored as well, if it were not other sessions'."""
    if chosen.only == request.only:
        return ()
    asked = RequestedPaths(None if chosen.paths is None else checked(chosen.paths), request.only)
    choice = plans.choose(compared, asked)
    choice = choice.without(*_on_disk(place, choice, compared.seen.meant))
    whole = plans.arranged(compared, _settled(place, choice), fetch)
    done = {step.path for step in plan.steps} | plan.held
    return tuple(chosen.kept({step.path for step in whole.steps if step.do != "open"} - done))


def _unsaved(place: Place, taken: Taken, plan: Plan, other: frozenset[bytes]) -> list[Kept]:
    """What is not as the checkpoint has it, and could not be saved before it is replaced. Of a
    directory that could not be looked into, that cannot be told."""
    if not plan.unsaved:
        return []
    why = {
        missed.path: f"it could not be saved first: {missed.reason}"
        for missed in taken.not_captured
    }
    with RootDirectory(place.root) as beneath:
        return [
            Kept(os.fsdecode(path), why.get(path, _IGNORED))
            for path, entry in sorted(plan.unsaved.items())
            if (entry.type == DIRECTORY or not disk_state.is_at(beneath, path, entry))
            and (path in why or any(lies_in(each, path) for each in other))
        ]


def _not_saved(
    place: Place, request: RestoreRequest, goal: capture.Capture, asked: RequestedPaths
) -> tuple[NotSaved, ...]:
    if not goal.not_captured:
        return ()
    with RootDirectory(place.root) as beneath:
        return not_saved(beneath, goal.not_captured, request.target.created_at, asked)


def missing_of(context: Context, plan: Plan, kept: Sequence[Kept]) -> tuple[Kept, ...]:
    """Of what is left as it is, what the target has. A directory that only stays is not missing."""
    if not kept:
        return ()
    target = directory.read_snapshot(plan.target, context.objects.fetch).top
    found = compare.finder(target, context.objects.fetch)
    put = {step.path for step in plan.steps if step.do in (*_PUTS, "chmod")} | {b".git"}
    paths = [(each, os.fsencode(each.path)) for each in kept]
    return tuple(each for each, path in paths if path in put or found(path) is not None)


def changes_of(
    plan: RestorePlan, kept: Sequence[Kept], missing: Sequence[Kept] = ()
) -> FileChanges:
    """What a plan does, if these are left as they are besides what it leaves itself."""
    every = (*plan.kept, *kept, *plan.others)
    left = {os.fsencode(each.path) for each in every}
    steps = [step for step in plan.files.steps if step.path not in left]
    put = [step for step in steps if step.do in ("write", "symlink", "link", "chmod")]
    created = {step.path for step in put if step.before is None}
    changed = {step.path for step in put if step.before is not None}
    removed = {step.path for step in steps if step.do == "remove"} - created - changed
    made = {step.path for step in steps if step.do == "mkdir"}
    gone = {step.path for step in steps if step.do == "rmdir"}
    modes = {step.path for step in steps if step.do == "close" and step.before != step.after}
    return FileChanges(
        os.fsdecode(plan.workspace),
        _shown(created, _lowest(made, created)),
        _shown(changed, modes),
        _shown(removed, _lowest(gone - created - changed, removed)),
        sum(step.after.size for step in put if step.do == "write" and step.after is not None),
        every,
        None if b".git" in left else plan.git,
        (*plan.missing, *missing),
        plan.not_saved,
        plan.checkout,
    )


def _lowest(directories: Collection[bytes], files: Collection[bytes]) -> set[bytes]:
    """Directories that none of these files, and no directory further down, speaks for."""
    spoken_for = {over for path in (*directories, *files) for over in above(path)}
    return {*directories} - spoken_for


def _shown(files: Collection[bytes], directories: Collection[bytes]) -> tuple[str, ...]:
    return tuple(sorted(os.fsdecode(path) for path in (*files, *(d + b"/" for d in directories))))


# Git, if it is asked for


def _position(
    context: Context, request: RestoreRequest, goal: capture.Capture, files: Taking
) -> "GitPosition | None":
    """Where git is to go; the capture of the present then knows what that would move."""
    if not request.git:
        return None
    from hardsave.vault.restore import git_position as repository

    position = repository.wanted(context, request.target, goal)
    files.branches = repository.branches(position)
    return position


def _way(
    context: Context, place: Place, taken: Taken, position: "GitPosition", snapshot: Hash
) -> "GitWay":
    from hardsave.vault.restore import git_position as repository

    return repository.way(context, place, taken.around, position, snapshot)


def _git_changes(place: Place, way: "GitWay") -> "GitChanges | None":
    from hardsave.vault.restore import git_position as repository

    return repository.changes(place, way)
