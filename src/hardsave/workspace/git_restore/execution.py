"""Brings a repository back to a stored position: HEAD, its branch, the index, unfinished work.

    check → stage and sync → lock → look → pin → notes, index → branches → HEAD → reflogs → unlock

Git is not run. Its configuration could name programs, and what is written here is a handful of
small files whose locks are git's own.

*Refused*, with nothing changed: a position that is not whole or not of this repository
(`NotFound`, `Misuse`, `Corrupt`); a commit that `git gc` has removed, or a staged content that
`supply` does not have either (`NotFound`), a commit that is damaged or none (`Corrupt`); a branch
that another worktree has in use, or whose name is taken by a directory of other branches
(`Conflict`); a lock that another process holds (`Unavailable`; it is never removed); anything that
is neither as the present has it nor as the target does (`Conflict`).

*Ordered*: every new content is on the disk before the first file is replaced, and what the
present names is pinned under `refs/hardsave/ID/` before a branch moves.

*Atomic* is each file, by one rename. All of them together are not: but git's locks are held
meanwhile, so no git writes in between, and they stay if the process dies.

*Idempotent*: what is done is found by looking. The same call after any interruption takes our
own locks over and finishes. Once it has finished, to repeat it changes nothing.

Nested repositories and submodules keep a position of their own, which is not touched.
"""

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

from hardsave.errors import Conflict, Corrupt, NotFound, Unavailable
from hardsave.logs import log
from hardsave.tuples import NamedTuple
from hardsave.workspace.git import config
from hardsave.workspace.git import objects as git_objects
from hardsave.workspace.git import refs as git_refs
from hardsave.workspace.git.git_directory import GitDirectory, repository
from hardsave.workspace.git.index import HASH_BYTES
from hardsave.workspace.git.packs import Object, Unreadable
from hardsave.workspace.git.position import GitPosition, position_in
from hardsave.workspace.git_restore import pins as git_pins
from hardsave.workspace.git_restore import plan as git_plan
from hardsave.workspace.git_restore.blob_supply import Supply, nothing
from hardsave.workspace.git_restore.locks import ATTEMPTS, LOCK, Locks, Waiting, refuse_held
from hardsave.workspace.git_restore.plan import FileChange, GitPlan, RefMove
from hardsave.workspace.git_restore.worktrees import in_use_elsewhere, is_true, settings
from hardsave.workspace.git_restore.writer import GitFiles

_PACKED = b"packed-refs"
_WHO = "hardsave <hardsave@localhost>"


class GitRestored(NamedTuple):
    """What was done, and the refs that pin what is left behind."""

    plan: GitPlan
    pins: tuple[str, ...]


def check_git(
    root: Path, before: GitPosition, target: GitPosition, supply: Supply = nothing
) -> GitPlan:
    """What a restore would do; raises what would stop it. Writes nothing.

    For a preview, and before the files are restored: so that they do not come back alone.
    """
    plan = git_plan.plan_git(before, target)
    with repository(root) as directory:
        try:
            for base, path in _to_lock(directory, plan):
                refuse_held(base, path)
            _refuse(directory, plan, supply)
        except OSError as error:
            raise Unavailable(f"the repository at {str(root)!r} cannot be read: {error}") from error
    return plan


def restore_git(
    root: Path,
    before: GitPosition,
    target: GitPosition,
    *,
    id: str,
    seconds: int,
    supply: Supply = nothing,
    attempts: int = ATTEMPTS,
    sleep: Callable[[float], None] = time.sleep,
) -> GitRestored:
    """Bring the repository at `root` from `before` to the target.

    `before` is where it stood when the safety checkpoint `id` was saved, with all branches that
    the target sets (`plan.branches`), and `seconds` is when that was: the time that the reflogs
    will show. A lock that another process holds is waited for, but not long.
    """
    git_pins.check(id)
    plan = git_plan.plan_git(before, target)
    with repository(root) as directory:
        restore = _Restore(directory, plan, id, seconds, supply)
        waiting = Waiting(attempts, sleep)
        try:
            return GitRestored(plan, restore.run(before, target, waiting))
        except OSError as error:
            words = _IN_PART if restore.has_begun else _UNCHANGED
            raise Unavailable(f"the repository at {str(root)!r} {words}: {error}") from error


def abandon(root: Path, id: str) -> None:
    """Give up on a restore that was interrupted and cannot be finished: its locks go.

    What it has done stays; the pins lead back.
    """
    git_pins.check(id)
    with repository(root) as directory:
        places = [(directory.own, b"index"), (directory.own, b"HEAD"), (directory.common, _PACKED)]
        refs = git_refs.below(directory, b"refs/heads/")
        places += [(directory.common, ref.removesuffix(b".lock")) for ref in refs]
        try:
            with (
                GitFiles(directory, git_pins.staging(id)) as files,
                Locks(files.staging, id, Waiting(1, time.sleep)) as locks,
            ):
                locks.adopt(places)
        except OSError as error:
            raise Unavailable(f"the repository at {str(root)!r} {_UNCHANGED}: {error}") from error


_IN_PART = "is restored in part; see to the disk, then recover"
_UNCHANGED = "cannot be written; nothing was changed. See to it, then repeat"


# What forbids it


def _refuse(directory: GitDirectory, plan: GitPlan, supply: Supply) -> Collection[Object]:
    """Raise what forbids the restore. Returns the staged contents that git lacks and we have."""
    supplied = _refuse_lost(directory, plan, supply)
    _refuse_no_commits(directory, plan)
    _refuse_in_use(directory, plan)
    for move in plan.refs:
        other = git_refs.in_the_way(directory, os.fsencode(move.ref)) if move.after else None
        if other is not None:
            raise Conflict(
                f"{move.ref!r} cannot come back beside {os.fsdecode(other)!r}, which is named "
                "as if it lay above or below it; rename that one, then repeat"
            )
    return supplied


def _refuse_lost(directory: GitDirectory, plan: GitPlan, supply: Supply) -> Collection[Object]:
    contents = [] if _fetches(directory) else [each.id for each in plan.contents]
    lost = git_objects.missing(directory, [*plan.needs, *contents])
    supplied = supply(lost - {*plan.needs})
    lost -= supplied.keys()
    for id in sorted(lost, key=lambda id: (id not in plan.needs, id)):
        what = "the commit" if id in plan.needs else "the staged content"
        raise NotFound(
            f"{what} {id} is no longer in the repository ({len(lost)} in all are gone): git has "
            "collected it. Fetch it if it lies elsewhere, or restore the files without git"
        )
    return supplied.values()


def _refuse_no_commits(directory: GitDirectory, plan: GitPlan) -> None:
    """A branch that leads to something else is one that git cannot use, nor easily get rid of."""
    with git_objects.Objects(directory) as objects:
        for move in plan.logs:
            try:
                kind = "commit" if move.after is None else objects.read(move.after).kind
            except Unreadable as error:
                raise Corrupt(f"{move.ref!r} cannot come back to {move.after}: {error}") from error
            if kind != "commit":
                raise Corrupt(f"{move.ref!r} cannot come back to {move.after}: it is a {kind}")


def _fetches(directory: GitDirectory) -> bool:
    """Whether it is a partial clone: what it lacks, git gets when it is needed."""
    found = settings(directory)
    return any(
        key == b"extensions.partialclone" or (key.endswith(b".promisor") and is_true(value))
        for key, value in found
    )


def _refuse_in_use(directory: GitDirectory, plan: GitPlan) -> None:
    touched = {move.ref for move in plan.refs}
    for change in plan.files:
        if change.path == "HEAD" and change.after is not None:
            named = git_refs.target(change.after, directory.hash_name).ref
            touched |= {os.fsdecode(named)} if named is not None else set()
    for ref, where in in_use_elsewhere(directory).items():
        if ref in touched:
            raise Conflict(
                f"{ref!r} is in use in {where}; switch that to another branch (or "
                "'git worktree prune' if it is gone), then repeat"
            )


# Doing it


def _to_lock(directory: GitDirectory, plan: GitPlan) -> list[tuple[int, bytes]]:
    """The files whose locks are held meanwhile, and the directories that they lie beneath."""
    found = [(directory.own, b"index"), (directory.own, b"HEAD")]
    found += [(directory.common, _place(directory, move)) for move in plan.refs]
    removes = any(move.after is None for move in plan.refs)
    return [*found, (directory.common, _PACKED)] if removes else found


def _place(directory: GitDirectory, move: RefMove) -> bytes:
    """Where a branch is kept: if it is another name of one, then that one's place."""
    return git_refs.leads_to(directory, os.fsencode(move.ref))


class _Restore:
    """One restore in an open repository. `has_begun`: something may have been changed."""

    def __init__(
        self, directory: GitDirectory, plan: GitPlan, id: str, seconds: int, supply: Supply
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._supply = supply
        self._id = id
        self._seconds = seconds
        self._changes, self._moves = plan.files, plan.refs
        self._staged: dict[str, bytes] = {}
        self.has_begun = False

    def run(self, before: GitPosition, target: GitPosition, waiting: Waiting) -> tuple[str, ...]:
        with (
            GitFiles(self._directory, git_pins.staging(self._id)) as files,
            Locks(files.staging, self._id, waiting) as locks,
        ):
            places = _to_lock(self._directory, self._plan)
            locks.adopt(places)  # so that they are released if the restore is refused now
            supplied = _refuse(self._directory, self._plan, self._supply)
            files.stage(locks.words, name=LOCK)
            for base, path in places:
                locks.take(base, path)
            self._look(before, target)
            self._stage(files)
            for each in supplied:
                git_pins.write(self._directory, files, each)
            pins = git_pins.pin(self._directory, files, self._plan, self._id)
            files.sync()
            self.has_begun = True
            self._change(files, target)
            self._verify(target)
        return pins

    def _look(self, before: GitPosition, target: GitPosition) -> None:
        """What is left to do. After a crash that is less than what was planned."""
        now = position_in(self._directory, also=git_plan.branches(target))
        if others := git_plan.changed_by_others(now, before, target):
            raise Conflict(
                f"another program is at work in this repository: {', '.join(others)} changed "
                "after the present was saved. Nothing was changed; repeat"
            )
        self._changes, self._moves = git_plan.changes(now, target)

    def _stage(self, files: GitFiles) -> None:
        for change in self._changes:
            if change.after is not None:
                self._staged[change.path] = files.stage(change.after)
        for move in self._moves:
            if move.after is not None:
                self._staged[move.ref] = files.stage(move.after.encode() + b"\n")
        if "index" in self._staged:
            files.backdate(self._staged["index"])

    # Changes

    def _change(self, files: GitFiles, target: GitPosition) -> None:
        for change in self._changes:
            if change.path != "HEAD":
                self._write(files, change)
        files.remove_operations({file.path for file in target.files})
        for move in self._moves:
            self._move(files, move)
        for change in self._changes:
            if change.path == "HEAD":
                self._write(files, change)
        for move in self._plan.logs:
            self._log(files, move)
        files.sync()

    def _write(self, files: GitFiles, change: FileChange) -> None:
        path = os.fsencode(change.path)
        if change.after is None:
            files.remove(self._directory.own, path)
        else:
            files.put(self._directory.own, path, self._staged[change.path])

    def _move(self, files: GitFiles, move: RefMove) -> None:
        common, place = self._directory.common, _place(self._directory, move)
        if move.after is not None:
            files.put(common, place, self._staged[move.ref])
            return
        packed = git_refs.read_packed(self._directory)
        rest = git_refs.without(packed, place)
        if rest != packed:  # first: else the packed one would show up when the other is gone
            files.put(common, _PACKED, files.stage(rest))
        files.remove(common, place)

    def _log(self, files: GitFiles, move: RefMove) -> None:
        """A reflog is for people: if it cannot be written, the restore goes on."""
        try:
            self._write_log(files, move)
        except OSError as error:
            log(__name__).warning("the reflog of %s could not be written: %s", move.ref, error)

    def _write_log(self, files: GitFiles, move: RefMove) -> None:
        base = self._directory.own if move.ref == "HEAD" else self._directory.common
        path = b"logs/" + (b"HEAD" if move.ref == "HEAD" else _place(self._directory, move))
        if move.ref != "HEAD" and move.after is None:
            files.remove(base, path)  # as git does with a branch that goes
            return
        nothing = "0" * 2 * HASH_BYTES[self._directory.hash_name]
        old, new = move.before or nothing, move.after or nothing
        who = f"{_WHO} {self._seconds} +0000"
        lines = f"{old} {new} {who}\thardsave: rewind ({self._id})\n"
        if move.ref == "HEAD" and self._plan.switch is not None:
            # In git's own words: `git status` and `git checkout -` go by them.
            lines += f"{new} {new} {who}\tcheckout: moving from %s to %s\n" % self._plan.switch
        files.append(base, path, os.fsencode(lines), is_new=_makes_logs(self._directory))

    def _verify(self, target: GitPosition) -> None:
        now = position_in(self._directory, also=git_plan.branches(target))
        if others := git_plan.changed_by_others(now, target, target):
            raise Conflict(
                f"{', '.join(others)} of the repository did not stay as restored: another "
                "program is at work there, without git's locks; repeat"
            )


def _makes_logs(directory: GitDirectory) -> bool:
    value = config.last(settings(directory), b"core.logallrefupdates")
    return value is None or is_true(value) or value.lower() == b"always"
