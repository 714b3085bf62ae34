"""Taking the files of a workspace back, with the operation that says so.

    lock → recover → capture → plan → safety checkpoint → journal → contents staged
         → operation committed → files replaced, then removed → done

Contract. What is there is saved before anything is touched: the safety checkpoint is on the
timeline, and `undo` leads back to it. The operation's commit decides: a restore that is
interrupted before it is taken back, one that is interrupted after it is finished, by whoever
next uses the workspace or opens the store. So state and files always agree. Files that the
safety checkpoint does not have, or that changed after it, are kept and told as conflicts.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from hardsave.errors import Conflict, HardsaveError, Misuse, NotFound
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.timeline.refs import to_text
from hardsave.vault import repository, sessions
from hardsave.vault.capturing import Taken, Taking, taking
from hardsave.vault.context import Context
from hardsave.vault.operations import Entry, FilesMove
from hardsave.vault.place import Place
from hardsave.vault.saving import ANY_HEAD, Saving
from hardsave.workspace import capture, checkout, compare, directory, journal
from hardsave.workspace import plan as plans
from hardsave.workspace.content import Fetch, overlay
from hardsave.workspace.entries import DIRECTORY
from hardsave.workspace.plan import Plan
from hardsave.workspace.steps import Restored

Scope = Literal["mine", "everyone"]

_PAGE = 1_000
_SHOWN = 20
_log = logging.getLogger(__name__)


class Kept(NamedTuple):
    """A path that was left as it is, and why."""

    path: str
    reason: str


class FileChanges(NamedTuple):
    """What a restore did to files, or would do."""

    workspace: str
    created: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    bytes: int
    """Written, or to be written."""
    kept: tuple[Kept, ...]
    """Left alone: in the way, changed meanwhile, or changed by another session too."""
    git: bool = False
    """Whether the repository's position is among what changed."""

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.removed or self.git)

    def __str__(self) -> str:
        parts = [
            f"{len(paths)} {word}"
            for word in ("created", "changed", "removed", "kept")
            if (paths := getattr(self, word))
        ]
        return ", ".join(parts) or "nothing to do"


class Wanted(NamedTuple):
    """What is to be restored, and for what."""

    kind: str
    timeline: str
    target: CheckpointRecord
    paths: tuple[bytes, ...] | None = None
    scope: Scope | None = None
    only: frozenset[bytes] | None = None  # of an undo: what the operation had changed
    git: bool = False


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
    with settled(context, place) as files:
        goal = _capture(context, wanted.target)
        position = repository.wanted(context, wanted.target, goal) if wanted.git else None
        files.branches = repository.branches(position)
        taken = files.take()
        way = None if position is None else repository.way(place, taken.around, position)
        moves_git = way is not None and not way.is_empty
        paths, kept = _chosen(context, place, wanted, goal)
        plan = _plan(context, place, taken, goal, paths)
        if dry_run or not (plan.steps or moves_git):
            return Done(None, _changes(place, plan, kept, git=moves_git))
        safety = _safety(context, wanted, taken, files)
        kept += _carry_out(context, place, plan, wanted, safety, way, commit)
        return Done(safety, _changes(place, plan, kept, git=moves_git))


def turned(context: Context, entry: Entry, move: FilesMove, kind: str) -> Wanted:
    """What takes the files of an operation back to what they were before it."""
    before, after = (context.store.checkpoint(context.user, id) for id in (move.before, move.after))
    if before is None or entry.timeline is None:
        raise NotFound(
            f"the files from before this {entry.kind} are gone: their checkpoint was dropped"
        )
    only: frozenset[bytes] = frozenset()
    if after is not None:
        snapshots = [_capture(context, record).snapshot for record in (before, after)]
        only = frozenset(changed_files(context.objects.fetch, *snapshots))
    return Wanted(kind, entry.timeline, before, move.paths, only=only, git=move.git)


# Deciding


def _capture(context: Context, record: CheckpointRecord) -> capture.Capture:
    if record.snapshot is None:
        raise NotFound(
            f"checkpoint {to_text(record.id)} ({record.timeline}:{record.seq}) was saved without "
            "files; choose one that has a snapshot"
        )
    return capture.read(record.snapshot, context.objects.fetch)


def _plan(
    context: Context,
    place: Place,
    taken: Taken,
    goal: capture.Capture,
    paths: Collection[bytes] | None,
) -> Plan:
    fetch = context.objects.fetch
    return plans.plan(
        taken.snapshot,
        goal.snapshot,
        overlay(taken.objects, fetch),
        rules=taken.around.rules,
        present_tracked=taken.around.tracked,
        target_tracked=capture.tracked(goal.git, fetch),
        include=place.policy.include,
        paths=None if paths is None else sorted(paths),
    )


def _chosen(
    context: Context, place: Place, wanted: Wanted, goal: capture.Capture
) -> tuple[Collection[bytes] | None, list[Kept]]:
    """The paths to restore, None for all; and those that are left to other sessions."""
    found = _shares(context, place, wanted, goal)
    if wanted.only is not None:  # an undo: what it did, but for what others did since
        kept = {path: who for path, who in found.others.items() if path in wanted.only}
        return (wanted.only - kept.keys() if kept else wanted.paths), _kept(kept)
    if not found.others or wanted.scope == "everyone":
        return wanted.paths, []
    if wanted.scope is None:
        raise Conflict(_refusal(found.others))
    mine = [path for path in found.mine - found.both.keys() if _is_asked(path, wanted.paths)]
    return mine, _kept(found.both)


def _is_asked(path: bytes, paths: Sequence[bytes] | None) -> bool:
    return paths is None or any(path == p or path.startswith(p + b"/") for p in paths)


def _kept(paths: Mapping[bytes, str]) -> list[Kept]:
    return [
        Kept(os.fsdecode(path), f"timeline {who!r} has changed it too")
        for path, who in sorted(paths.items())
    ]


def _refusal(others: Mapping[bytes, str]) -> str:
    names = sorted(others)
    shown = ", ".join(f"{os.fsdecode(path)} ({others[path]})" for path in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        "other sessions have changed this workspace since: "
        f"{shown}{more}; scope='mine' takes back only what this timeline has changed, "
        "scope='everyone' all of it"
    )


def _shares(
    context: Context, place: Place, wanted: Wanted, goal: capture.Capture
) -> sessions.Shares:
    """Who has changed what in this workspace since the target."""
    if wanted.target.workspace != place.root:
        return sessions.Shares(frozenset(), {})
    saved: list[CheckpointRecord] = []
    before: int | None = None
    while rows := context.store.captured(context.user, place.root, before, _PAGE):
        saved += [row for row in rows if row.number > wanted.target.number]
        before = rows[-1].number
        if before <= wanted.target.number:
            break
    if all(row.timeline == wanted.timeline for row in saved):
        return sessions.Shares(frozenset(), {})
    ordered = [
        sessions.Saved(row.timeline, _capture(context, row).snapshot) for row in reversed(saved)
    ]
    return sessions.shares(goal.snapshot, ordered, wanted.timeline, _changed_in(context))


def _changed_in(context: Context) -> sessions.Changed:
    fetch = context.objects.fetch

    def changed(old: Hash, new: Hash) -> list[bytes]:
        return changed_files(fetch, old, new)

    return changed


def changed_files(fetch: Fetch, old: Hash, new: Hash) -> list[bytes]:
    """Paths that differ between two snapshots, without directories."""
    left, right = (directory.read_snapshot(root, fetch).top for root in (old, new))
    return [
        each.path
        for each in compare.differences(left, right, fetch)
        if not all(e is None or e.type == DIRECTORY for e in (each.old, each.new))
    ]


def _changes(place: Place, plan: Plan, kept: Sequence[Kept], *, git: bool) -> FileChanges:
    created: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    left = {each.path for each in kept}
    for step in plan.steps:
        path = os.fsdecode(step.path)
        if path in left:
            continue
        if step.do in ("write", "symlink", "link", "chmod"):
            (created if step.before is None else changed).append(path)
        elif step.do == "remove":
            removed.append(path)
    return FileChanges(
        os.fsdecode(place.root),
        tuple(sorted(created)),
        tuple(sorted(changed)),
        tuple(sorted(set(removed) - {*created, *changed})),
        plan.counts.bytes,
        tuple(kept),
        git and ".git" not in left,
    )


# Doing


def _safety(context: Context, wanted: Wanted, taken: Taken, files: Taking) -> CheckpointRecord:
    """The present as a checkpoint: the head, if it holds exactly that, else a new one."""
    saving = Saving(context, wanted.timeline, None)
    saving.look()
    head = context.history.head(wanted.timeline)
    if head is not None and (head.snapshot, head.workspace) == (taken.address, taken.workspace):
        return head
    goal = f"{wanted.target.timeline}:{wanted.target.seq}"
    about = saving.about(
        None,
        "automatic",
        "running" if head is None else head.status,
        f"before the {wanted.kind} to {goal}",
        None,
    )
    return saving.carry(about, ANY_HEAD, files)


def _carry_out(
    context: Context,
    place: Place,
    plan: Plan,
    wanted: Wanted,
    safety: CheckpointRecord,
    way: repository.GitWay | None,
    commit: Commit,
) -> list[Kept]:
    """Files, then git; what had to be left as it is."""
    entry = context.new_id()
    move = FilesMove(place.root, safety.id, wanted.target.id, wanted.paths, wanted.git)
    note = _Note(context.user, entry, safety.id, wanted.target.id, wanted.git)
    data = context.objects.verbatim.codec.encode(list(note))
    fetch = context.objects.fetch
    written = checkout.begin(place.root, plan, place.journal, id=entry, note=data)
    restored = checkout.carry_out(
        written, fetch, place.journal, is_fresh=True, decide=lambda: commit(entry, move)
    )
    kept = [Kept(os.fsdecode(path), why) for path, why in restored.conflicts]
    kept += [Kept(os.fsdecode(path), "not empty") for path in restored.kept]
    if way is not None and (problem := repository.go(place, way, safety)) is not None:
        kept.append(Kept(".git", problem))
    checkout.finish(place.journal)
    return kept


class _Note(NamedTuple):
    """What the journal says besides the steps: enough to settle what was interrupted."""

    user: str | None
    entry: Id
    before: Id
    after: Id
    git: bool


# Recovering


@contextmanager
def settled(context: Context, place: Place) -> Iterator[Taking]:
    """Alone with a workspace, after what was interrupted there has been dealt with."""
    with taking(context, place) as files:
        recover(context, place)
        yield files


def recover(context: Context, place: Place) -> Restored | None:
    """Finish a restore whose operation was committed, take any other back. The lock is held."""
    written = journal.read(place.journal)
    if written is None:
        return None
    note = _note(context, written)
    if note.user != context.user:
        raise Misuse(f"a restore by user {note.user!r} was interrupted here; open it as them")
    back = not _is_committed(context, note.entry)
    done = checkout.carry_out(written, context.objects.fetch, place.journal, back=back)
    if note.git and not back:
        problem = repository.again(context, place, note.before, note.after)
        if problem is not None:
            _log.error("after a restore of %s that was interrupted: %s", place.path, problem)
    checkout.finish(place.journal)
    way = "taken back" if back else "finished"
    _log.warning("a restore of %s was interrupted; it is %s now", place.path, way)
    return done


def _note(context: Context, written: journal.Journal) -> _Note:
    return _Note(*context.objects.verbatim.codec.decode(written.note))


def _is_committed(context: Context, entry: Id) -> bool:
    before: int | None = None
    while rows := context.store.log_before(context.user, before, _PAGE):
        if any(row.id == entry for row in rows):
            return True
        before = rows[-1].number
    return False


def recover_all(context: Context, journals: Sequence[str]) -> None:
    """What a store finds when it is opened. A workspace that is in use is left to its user."""
    for path in journals:
        try:
            _recover_one(context, Path(path))
        except (HardsaveError, OSError) as error:
            _log.error("a restore was interrupted, and cannot be recovered yet: %s", error)


def _recover_one(context: Context, path: Path) -> None:
    written = journal.read(path)
    if written is None:
        return
    place = context.places.at(written.root)
    if _note(context, written).user != context.user or place.journal != path or place.is_busy():
        return
    with place.locked():
        recover(context, place)
