"""Carrying out the plan of a restore, with the operation that says so.

    lock → recover → plan → safety checkpoint → journal → contents staged
         → operation committed → files replaced, then removed → outcome

Contract. What is there is saved before anything is touched: the safety checkpoint is on the
timeline, and `undo` leads back to it. The operation's commit decides: a restore that is
interrupted before it is taken back, one that is interrupted after it is finished, by the next
process that uses the workspace or opens the store. So state and files always agree. Files that the
safety checkpoint does not have, or that changed after it, are kept, and told as missing if the
target has something else there. What rules ignore is captured if the target has it (see 0043).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.errors import Corrupt, Unavailable
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.stores import on_disk
from hardsave.timeline.step_summary import SAFETY, StepSummary
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.operations import FilesMove
from hardsave.vault.restore import ignored
from hardsave.vault.restore.path_choice import Kept, RestoreRequest
from hardsave.vault.restore.plan import (
    FileChanges,
    RestorePlan,
    changes_of,
    missing_of,
    plan_restore,
)
from hardsave.vault.restore.recovery import note
from hardsave.vault.save.capturing import Taking
from hardsave.vault.save.request import ANY_HEAD, SaveRequest, about
from hardsave.vault.save.saving import Saving
from hardsave.vault.workspaces.place import Place
from hardsave.workspace.restore import execution
from hardsave.workspace.restore.steps import Restored


class Outcome(NamedTuple):
    """How a restore went."""

    before: CheckpointRecord | None  # what was there; None if nothing was done
    files: FileChanges


class Attempt:
    """A restore that is ready: the present is saved, and every content is staged. The block that
    gets it commits the operation, under the id `entry`; after the block there is an outcome."""

    def __init__(self, entry: Id, move: FilesMove) -> None:
        self.entry = entry
        self.move = move
        self.outcome: Outcome | None = None


@contextmanager
def attempt(
    context: Context, place: Place, plan: RestorePlan, files: Taking, entry: Id | None = None
) -> Iterator[Attempt]:
    """Make a plan ready; run the block, which decides; do the rest. The lock is held. `entry`
    is the id of the operation, if it has one already."""
    _check_room(place, plan)
    plan, safety = _saved_first(context, place, plan, files)
    entry = entry or context.new_id()
    one = Attempt(entry, _move(place, plan, safety))
    git = (one.move.before, one.move.after) if one.move.git else None
    try:
        said = note(context, entry, git=git)
        written = execution.begin(place.root, plan.files, place.journal, id=entry, note=said)
        with execution.prepared(written, context.objects.fetch, place.journal) as restore:
            yield one
            on_disk.sync(context.store)  # files that lay on the disk for long go now: a user who
            # has given up the newest saves in a power loss has not given up these
        kept = _kept(restore.restored) + _gone_by_git(context, place, plan, safety)
        execution.finish(place.journal)
    except (Unavailable, Corrupt) as error:
        if not safety.is_made:
            raise
        saved = f"{safety.record.timeline}:{safety.record.seq}"
        said_too = f"What was here is saved as {saved}, and that is the head now"
        raise type(error)(f"{error}. {said_too}") from error
    missing = missing_of(context, plan.files, kept)
    one.outcome = Outcome(safety.record, changes_of(plan, kept, missing))


def _check_room(place: Place, plan: RestorePlan) -> None:
    """All contents are written before the first file is replaced: if they cannot be, nothing is
    begun, and it is told how much is missing."""
    steps = [step for step in plan.files.steps if step.do == "write" and step.after is not None]
    needed = sum(step.after.size for step in steps if step.after is not None)
    found = os.statvfs(place.root)
    free = found.f_bavail * found.f_frsize
    if needed > free:
        raise Unavailable(
            f"no space left for the files of {str(place.path)!r}: {needed:,} bytes are to be "
            f"written, and {free:,} are free; no file was changed. Free {needed - free:,} bytes, "
            "then repeat"
        )


# The present


class _Safety(NamedTuple):
    """The checkpoint that holds the present; whether it was made for that."""

    record: CheckpointRecord
    is_made: bool


def _saved_first(
    context: Context, place: Place, plan: RestorePlan, files: Taking
) -> tuple[RestorePlan, _Safety]:
    """The plan, and the present that it starts from as a checkpoint. If objects that the capture
    relied on were collected, the present was captured anew, and may be another by now."""
    is_made = False
    while True:
        safety = _safety(context, plan.request, files)
        is_made = is_made or safety.is_made
        if files.take() is plan.taken:
            return plan, safety._replace(is_made=is_made)
        plan = plan_restore(context, place, plan.request, files)


def _safety(context: Context, request: RestoreRequest, files: Taking) -> _Safety:
    """The present as a checkpoint: the head, if it holds exactly that, else a new one."""
    taken = files.take()
    saving = Saving(context, request.timeline, None)
    saving.look()
    head = context.history.head(request.timeline)
    if head is not None and (head.snapshot, head.workspace) == (taken.address, taken.workspace):
        return _Safety(head, is_made=False)
    goal = f"{request.target.timeline}:{request.target.seq}"
    status = "running" if head is None else head.status
    said = f"before the {request.kind} to {goal}"
    step = StepSummary(phase=SAFETY)
    what = about(context, None, "automatic", status, said, None)
    made = saving.save(SaveRequest(what, "carried", expect=ANY_HEAD, step=step), files)
    is_first = made.parent is None and made.seq == 1
    before = None if is_first else (made.parent, made.seq - 1)
    context.moves.note(request.timeline, before, (made.id, made.seq), is_same_state=True)
    return _Safety(made, is_made=True)


def _move(place: Place, plan: RestorePlan, safety: _Safety) -> FilesMove:
    """What the log is to say. Directories that are made for what is chosen go with it again."""
    request, only = plan.request, plan.chosen.only
    is_listed = request.like is None and only is not None
    made = {step.path for step in plan.files.steps if step.do == "mkdir"}
    return FilesMove(
        place.id,
        safety.record.id,
        request.target.id,
        request.paths,
        request.git,
        only=tuple(sorted(made.union(only or ()))) if is_listed else None,
        like=request.like,
        made=safety.is_made,
        brought=ignored.brought(plan.files, place.policy, request.target.id, plan.besides),
        took=ignored.took(plan.besides),
    )


# What had to be left as it is


def _kept(restored: Restored) -> list[Kept]:
    kept = [Kept(os.fsdecode(path), why) for path, why in restored.conflicts]
    return kept + [Kept(os.fsdecode(path), "not empty") for path in restored.kept]


def _gone_by_git(context: Context, place: Place, plan: RestorePlan, safety: _Safety) -> list[Kept]:
    """Take git its way, which the safety checkpoint pins."""
    if plan.way is None:
        return []
    from hardsave.vault.restore import git_position as repository  # few restores are about git

    problem = repository.go(context, place, plan.way, safety.record)
    return [] if problem is None else [Kept(".git", problem)]
