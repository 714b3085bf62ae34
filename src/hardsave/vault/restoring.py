"""Taking the files of a workspace back, with the operation that says so.

    lock → recover → capture → plan → safety checkpoint → journal → contents staged
         → operation committed → files replaced, then removed → done

Contract. What is there is saved before anything is touched: the safety checkpoint is on the
timeline, and `undo` leads back to it. The operation's commit decides: a restore that is
interrupted before it is taken back, one that is interrupted after it is finished, by whoever
next uses the workspace or opens the store. So state and files always agree. Files that the
safety checkpoint does not have, or that changed after it, are kept, and told as missing if the
target has something else there. What rules ignore is captured if the target has it (see 0043).
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hardsave.errors import Corrupt, NotFound, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.record import Record
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault import ignored
from hardsave.vault.capturing import Taken, Taking, taking
from hardsave.vault.choosing import Chosen, Kept, Wanted, capture_of, choose
from hardsave.vault.context import Context
from hardsave.vault.ignored import Besides
from hardsave.vault.operations import FilesMove
from hardsave.vault.place import Place
from hardsave.vault.recovering import note, recover
from hardsave.vault.saving import ANY_HEAD, SaveRequest, Saving
from hardsave.workspace import capture, checkout, compare, directory, disk
from hardsave.workspace import plan as plans
from hardsave.workspace.asked import Asked, checked
from hardsave.workspace.beneath import Beneath
from hardsave.workspace.content import Fetch, overlay
from hardsave.workspace.entries import DIRECTORY, Entry, above, joined, lies_in, parent
from hardsave.workspace.left_alone import Missed
from hardsave.workspace.plan import Plan

if TYPE_CHECKING:
    from hardsave.vault.repository import GitChanges, GitWay
    from hardsave.workspace.git import GitPosition


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

Commit = Callable[[Id, FilesMove], object]
"""Commits the operation, under this id."""


class Done(NamedTuple):
    """How a restore went."""

    before: CheckpointRecord | None  # what was there; None in a dry run
    files: FileChanges


def restore(
    context: Context, place: Place, wanted: Wanted, commit: Commit, *, dry_run: bool = False
) -> Done:
    """Restore files; `commit` is called when everything is ready, unless nothing is to do."""
    with taking(context, place) as files:
        recover(context, place)
        goal = capture_of(context, wanted.target)
        position = _position(context, wanted, goal, files)
        chosen = choose(
            context,
            place.root,
            wanted,
            goal.snapshot,
            lambda path: _has(context, files.take(), goal, path),
        )
        taken = files.take()
        _check_paths(context, wanted, taken, goal)
        way = None if position is None else _way(context, place, taken, position, goal.snapshot)
        git = None if way is None else _git_changes(place, way)
        plan = _plan(context, place, taken, goal, chosen)
        if other := _other(context, place, taken, chosen, plan):
            taken = files.take_also(other)
            plan = _plan(context, place, taken, goal, chosen)
        turned = ignored.turned(context, place, wanted, taken, goal.snapshot)
        if besides := [each for each in turned if each.difference.path not in chosen.others]:
            plan = _plan(context, place, taken, goal, chosen, besides)
        more = ignored.overlooked(context, place, wanted, taken, plan)
        if more := [each for each in more if each.difference.path not in chosen.others]:
            besides += more
            plan = _plan(context, place, taken, goal, chosen, besides)
        left = _left(context, place, taken, goal, wanted, chosen, plan, other)
        if dry_run or not (plan.steps or git):
            return Done(None, _changes(context, place, plan, left, git))
        safety = _safety(context, wanted, taken, files)
        if files.take() is not taken:  # it had to be captured anew, and may be another by now
            plan = _plan(context, place, files.take(), goal, chosen, besides)
        move = _move(place, wanted, chosen, safety, plan)._replace(
            brought=ignored.brought(plan, place.policy, wanted.target.id, besides),
            took=ignored.took(besides),
        )
        try:
            kept = _carry_out(context, place, plan, move, _ByGit(way, safety.record), commit)
        except (Unavailable, Corrupt) as error:
            raise _after_the_save(error, safety) from error
        left = left._replace(kept=left.kept + kept)
        return Done(safety.record, _changes(context, place, plan, left, git))


def _has(context: Context, taken: Taken, goal: capture.Capture, path: bytes) -> bool:
    """Whether the present or the target has a path: nobody restores what is ignored in both."""
    fetch = overlay(taken.objects, context.objects.fetch)
    tops = [directory.read_snapshot(each.snapshot, fetch).top for each in (taken, goal)]
    return any(compare.find(top, path, fetch) is not None for top in tops)


# Git, if it is asked for


def _position(
    context: Context, wanted: Wanted, goal: capture.Capture, files: Taking
) -> "GitPosition | None":
    """Where git is to go; the capture of the present then knows what that would move."""
    if not wanted.git:
        return None
    from hardsave.vault import repository

    position = repository.wanted(context, wanted.target, goal)
    files.branches = repository.branches(position)
    return position


def _way(
    context: Context, place: Place, taken: Taken, position: "GitPosition", snapshot: Hash
) -> "GitWay":
    from hardsave.vault import repository

    return repository.way(context, place, taken.around, position, snapshot)


def _git_changes(place: Place, way: "GitWay") -> "GitChanges | None":
    from hardsave.vault import repository

    return repository.changes(place, way)


# Deciding


def _other(
    context: Context, place: Place, taken: Taken, chosen: Chosen, plan: Plan
) -> frozenset[bytes]:
    """Of what the target has, and rules of today ignore, what is not there as the target has it.
    To be replaced, what lies there has to be captured first, whatever the rules say."""
    asked = Asked(None if chosen.paths is None else checked(chosen.paths), chosen.only)
    missed = {each.path for each in taken.not_captured}
    found: set[bytes] = set()
    with Beneath(place.root) as beneath:
        for path, entry in plan.unsaved.items():
            if path in missed:
                continue
            for each, kept in _tree(path, entry, context.objects.fetch):
                if asked.holds(each) and not disk.is_at(beneath, each, kept):
                    found.add(each)
    return frozenset(found)


def _tree(path: bytes, entry: Entry, fetch: Fetch) -> Iterator[tuple[bytes, Entry]]:
    """An entry, and all beneath it."""
    yield path, entry
    if entry.type == DIRECTORY:
        for each in compare.differences(None, entry.hash, fetch):
            if each.new is not None:
                yield joined(path, each.path), each.new


def _plan(
    context: Context,
    place: Place,
    taken: Taken,
    goal: capture.Capture,
    chosen: Chosen,
    besides: Sequence[Besides] = (),
) -> Plan:
    """What was saved comes back though rules ignore it today, if nothing lies there, or if what
    lies there was captured first."""
    fetch = context.objects.fetch
    outside = capture.outside(goal.around, fetch)
    decide = partial(
        plans.plan,
        taken.snapshot,
        goal.snapshot,
        overlay(taken.objects, fetch),
        rules=taken.around.rules,
        target_rules=outside.rules(),
        present_tracked=taken.around.tracked | taken.also,
        target_tracked=outside.below(capture.tracked(goal.git, fetch)),
        include=place.policy.include,
        paths=chosen.paths,
        only=chosen.only,
        besides=[each.difference for each in besides],
    )
    missed = Missed(
        now=frozenset(each.path for each in taken.not_captured),
        then=frozenset(each.path for each in goal.not_captured),
    )
    plan = decide(missed=missed)
    if there := _there(place, plan):
        missed = missed._replace(now=missed.now | there)
        plan = decide(missed=missed)
    plan = _as_it_stands(place, plan)
    if held := _held(place, plan):
        plan = _as_it_stands(place, decide(missed=missed, held=held))
    return plan


def _there(place: Place, plan: Plan) -> frozenset[bytes]:
    """Of what a plan would make, that in whose place something else is: the present does not have
    it, because rules ignore it, perhaps as a directory while a file would be saved."""
    cleared = {step.path for step in plan.steps if step.do in ("remove", "rmdir")}
    made = {step.path for step in plan.steps if step.do == "mkdir"}
    new = {step.path for step in plan.steps if step.do in _PUTS and step.before is None} - cleared
    found: set[bytes] = set()
    with Beneath(place.root) as beneath:
        for over in {parent(path) for path in new} - (made - plan.meant):
            found.update(joined(over, name) for name in disk.names(beneath, over))
        there = {path for path in made & found if disk.is_at(beneath, path, Entry(DIRECTORY, 0))}
    return frozenset(new & found - there)


def _as_it_stands(place: Place, plan: Plan) -> Plan:
    """Without making the directories that are there: ignored, and so the present has none."""
    made = [step.path for step in plan.steps if step.do == "mkdir" and step.path in plan.meant]
    with Beneath(place.root) as beneath:
        there = {path for path in made if disk.is_at(beneath, path, Entry(DIRECTORY, 0))}
    return plan._replace(
        steps=tuple(step for step in plan.steps if step.path not in there),
        back=tuple(step for step in plan.back if step.path not in there),
    )


def _held(place: Place, plan: Plan) -> frozenset[bytes]:
    """Directories that are to go, and hold something that is not: what is ignored, a secret,
    another session's."""
    going = {step.path for step in plan.steps if step.do in ("remove", "rmdir")}
    held: set[bytes] = set()
    with Beneath(place.root) as beneath:
        for path in sorted({step.path for step in plan.steps if step.do == "rmdir"}, reverse=True):
            inside = {joined(path, name) for name in disk.names(beneath, path)}
            if inside - going or inside & held:
                held.add(path)
    return frozenset(held)


class _Left(NamedTuple):
    """What is left as it is: what could not be restored, and what was not asked for."""

    kept: list[Kept]
    others: list[Kept]


def _left(
    context: Context,
    place: Place,
    taken: Taken,
    goal: capture.Capture,
    wanted: Wanted,
    chosen: Chosen,
    plan: Plan,
    other: frozenset[bytes],
) -> _Left:
    """What would be restored as well, if it could be saved first, or were not other sessions'."""
    kept = _unsaved(place, taken, plan, other) + _obstructed(plan)
    kept += [Kept(os.fsdecode(path), _SPARED) for path in sorted(plan.spared)]
    kept += [Kept(os.fsdecode(path), "not empty") for path in sorted(plan.held)]
    if chosen.only == wanted.only:
        return _Left(kept, [])
    everything = chosen._replace(only=wanted.only)
    whole = _plan(context, place, taken, goal, everything)
    done = {step.path for step in plan.steps} | plan.held
    others = {step.path for step in whole.steps if step.do != "open"} - done
    return _Left(kept, chosen.kept(others))


def _unsaved(place: Place, taken: Taken, plan: Plan, other: frozenset[bytes]) -> list[Kept]:
    """What is not as the checkpoint has it, and could not be saved before it is replaced. Of a
    directory that could not be looked into, that cannot be told."""
    why = {
        missed.path: f"it could not be saved first: {missed.reason}"
        for missed in taken.not_captured
    }
    with Beneath(place.root) as beneath:
        return [
            Kept(os.fsdecode(path), why.get(path, _IGNORED))
            for path, entry in sorted(plan.unsaved.items())
            if (entry.type == DIRECTORY or not disk.is_at(beneath, path, entry))
            and (path in why or any(lies_in(each, path) for each in other))
        ]


def _obstructed(plan: Plan) -> list[Kept]:
    return [
        Kept(
            os.fsdecode(path),
            f"{os.fsdecode(over)!r} is in the way, and was not asked for: restore that",
        )
        for path, over in sorted(plan.obstructed.items())
    ]


def _check_paths(context: Context, wanted: Wanted, taken: Taken, goal: capture.Capture) -> None:
    """A path that neither side has is a mistake, not a wish that is fulfilled already."""
    if wanted.only is not None:
        return
    fetch = overlay(taken.objects, context.objects.fetch)
    tops = [directory.read_snapshot(root, fetch).top for root in (taken.snapshot, goal.snapshot)]
    for path in checked(wanted.paths or ()):
        if not any(compare.find(top, path, fetch) for top in tops):
            raise NotFound(
                f"{os.fsdecode(path)!r} is neither among the files of "
                f"{os.fsdecode(taken.workspace)!r} nor in checkpoint {to_text(wanted.target.id)}; "
                "what is ignored is never touched"
            )


def _missing(context: Context, plan: Plan, kept: Sequence[Kept]) -> tuple[Kept, ...]:
    """Of what is left as it is, what the target has. A directory that only stays is not missing."""
    if not kept:
        return ()
    target = directory.read_snapshot(plan.target, context.objects.fetch).top
    found = compare.finder(target, context.objects.fetch)
    put = {step.path for step in plan.steps if step.do in (*_PUTS, "chmod")} | {b".git"}
    paths = [(each, os.fsencode(each.path)) for each in kept]
    return tuple(each for each, path in paths if path in put or found(path) is not None)


def _changes(
    context: Context, place: Place, plan: Plan, left_alone: _Left, git: "GitChanges | None"
) -> FileChanges:
    kept = [*left_alone.kept, *left_alone.others]
    left = {os.fsencode(each.path) for each in kept}
    steps = [step for step in plan.steps if step.path not in left]
    put = [step for step in steps if step.do in ("write", "symlink", "link", "chmod")]
    created = {step.path for step in put if step.before is None}
    changed = {step.path for step in put if step.before is not None}
    removed = {step.path for step in steps if step.do == "remove"} - created - changed
    made = {step.path for step in steps if step.do == "mkdir"}
    gone = {step.path for step in steps if step.do == "rmdir"}
    modes = {step.path for step in steps if step.do == "close" and step.before != step.after}
    return FileChanges(
        os.fsdecode(place.root),
        _shown(created, _lowest(made, created)),
        _shown(changed, modes),
        _shown(removed, _lowest(gone - created - changed, removed)),
        sum(step.after.size for step in put if step.do == "write" and step.after is not None),
        tuple(kept),
        None if b".git" in left else git,
        _missing(context, plan, left_alone.kept),
    )


def _lowest(directories: Collection[bytes], files: Collection[bytes]) -> set[bytes]:
    """Directories that none of these files, and no directory further down, speaks for."""
    spoken_for = {over for path in (*directories, *files) for over in above(path)}
    return {*directories} - spoken_for


def _shown(files: Collection[bytes], directories: Collection[bytes]) -> tuple[str, ...]:
    return tuple(sorted(os.fsdecode(path) for path in (*files, *(d + b"/" for d in directories))))


# Doing


class _Safety(NamedTuple):
    """The checkpoint that holds the present; whether it was made for that."""

    record: CheckpointRecord
    is_made: bool


def _safety(context: Context, wanted: Wanted, taken: Taken, files: Taking) -> _Safety:
    """The present as a checkpoint: the head, if it holds exactly that, else a new one."""
    saving = Saving(context, wanted.timeline, None)
    saving.look()
    head = context.history.head(wanted.timeline)
    if head is not None and (head.snapshot, head.workspace) == (taken.address, taken.workspace):
        return _Safety(head, is_made=False)
    goal = f"{wanted.target.timeline}:{wanted.target.seq}"
    about = saving.about(
        None,
        "automatic",
        "running" if head is None else head.status,
        f"before the {wanted.kind} to {goal}",
        None,
    )
    made = saving.save(SaveRequest(about, "carried", expect=ANY_HEAD), files)
    is_first = made.parent is None and made.seq == 1
    before = None if is_first else (made.parent, made.seq - 1)
    context.moves.note(wanted.timeline, before, (made.id, made.seq), is_same_state=True)
    return _Safety(made, is_made=True)


def _after_the_save(error: Unavailable | Corrupt, safety: _Safety) -> Unavailable | Corrupt:
    """The error, with what was done before it."""
    if not safety.is_made:
        return error
    saved = f"{safety.record.timeline}:{safety.record.seq}"
    return type(error)(f"{error}. What was here is saved as {saved}, and that is the head now")


def _move(place: Place, wanted: Wanted, chosen: Chosen, safety: _Safety, plan: Plan) -> FilesMove:
    """What the log is to say. Directories that are made for what is chosen go with it again."""
    is_listed = wanted.like is None and chosen.only is not None
    made = {step.path for step in plan.steps if step.do == "mkdir"}
    return FilesMove(
        place.root,
        safety.record.id,
        wanted.target.id,
        wanted.paths,
        wanted.git,
        only=tuple(sorted(made.union(chosen.only or ()))) if is_listed else None,
        like=wanted.like,
        made=safety.is_made,
    )


class _ByGit(NamedTuple):
    """What is to be done about git: nothing, or a way that the safety checkpoint pins."""

    way: "GitWay | None"
    safety: CheckpointRecord


def _carry_out(
    context: Context, place: Place, plan: Plan, move: FilesMove, git: _ByGit, commit: Commit
) -> list[Kept]:
    """Files, then git; what had to be left as it is."""
    entry = context.new_id()
    said = note(context, entry, git=(move.before, move.after) if move.git else None)
    written = checkout.begin(place.root, plan, place.journal, id=entry, note=said)

    def decide() -> None:
        commit(entry, move)
        context.store.sync()  # files that lay on the disk for long go now: who has given up the
        # newest saves in a power loss has not given up these

    restored = checkout.carry_out(
        written, context.objects.fetch, place.journal, is_fresh=True, decide=decide
    )
    kept = [Kept(os.fsdecode(path), why) for path, why in restored.conflicts]
    kept += [Kept(os.fsdecode(path), "not empty") for path in restored.kept]
    if git.way is not None:
        from hardsave.vault import repository  # few restores are about git

        problem = repository.go(context, place, git.way, git.safety)
        kept += [] if problem is None else [Kept(".git", problem)]
    checkout.finish(place.journal)
    return kept
