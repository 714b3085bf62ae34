"""The files of a job that goes on: its directory is as its last save left it, or it says why not.

Contract. Conversation and files come from one checkpoint, the head of the job. A job does not go on
without its files: what is in the way is raised, with the next step.

On a store of one host a job works in the directory that it names. What differs there, by another
job, another checkout or the attempt that died, is saved before it is replaced, and `undo` brings it
back. A restore that was interrupted is finished, or begun again, by the next attempt: what it had
saved of the directory is not taken for the job's own files.

On a store that hosts share each attempt works in a new directory of its own, which gets the files.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave.errors import Conflict, Misuse
from hardsave.logs import log
from hardsave.tasks.attempt import Attempt, Paused
from hardsave.tasks.ledger import beside
from hardsave.tasks.task import Task
from hardsave.timeline.step_summary import SAFETY
from hardsave.vault.checkpoint import Checkpoint, record_of
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.spec import JobSpec
from hardsave.vault.jobs.state import Job
from hardsave.vault.line import Timeline
from hardsave.vault.restore.rewind import Rewind
from hardsave.vault.vault import Vault
from hardsave.vault.workspaces.attempt_workspace import attempt_workspace, has_own_directories

if TYPE_CHECKING:
    from hardsave.vault.restore.plan import FileChanges
    from hardsave.vault.workspace import Workspace

_LOOKED_AT = 1_000  # checkpoints, for the last one that has files
_SHOWN = 5  # paths in a message


@contextlib.contextmanager
def at_work(
    vault: Vault, attempt: Attempt, spec: JobSpec, line: Timeline, head: Checkpoint | None
) -> "Iterator[Workspace | None]":
    """The directory that an attempt works in, with the files of where it goes on: `head`; None: it
    has not begun yet."""
    goal = head.id if head is not None and head.id == spec.restore_from else None
    if spec.workspace is None:
        yield None
    elif has_own_directories(vault):
        with _own_directory(vault, attempt, spec, _target(vault, line, goal)) as workspace:
            yield workspace
    else:
        workspace = workspace_of(vault, spec.workspace, attempt.id)
        if head is not None and not spec.keep_files and head.status != "completed":
            bring_back(vault, line, workspace, attempt.task, goal)
        yield workspace


@contextlib.contextmanager
def _own_directory(
    vault: Vault, attempt: Attempt, spec: JobSpec, files: Checkpoint | None
) -> "Iterator[Workspace]":
    """It stays for a while, for people, if its attempt did not end as it should: the end of its
    work may not be saved."""
    with attempt_workspace(vault, spec.lineage, files) as at:
        try:
            yield at.workspace
        except Paused:
            at.saved()
            raise
        except Exception:
            log(__name__).info("%s stays for now, as attempt at %r left it", at, attempt.id)
            raise
        at.saved()


def workspace_of(vault: Vault, directory: str, id: str) -> "Workspace":
    """The directory of a job, made if it is not there: this may be another machine."""
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(
            f"job {id!r} cannot work in {directory!r}: {error.strerror or error}; make that a "
            "directory that its worker can write to, then resume the job"
        ) from error
    return vault.workspace(directory)


def bring_back(
    vault: Vault, line: Timeline, workspace: "Workspace", task: Task, goal: str | None
) -> None:
    """Have the files of a job in its directory, as its last save has them, or the checkpoint that
    is its `goal`."""
    target = _target(vault, line, goal)
    if target is None:
        return
    other = _earlier(vault, task, str(workspace.path))
    done = _restored(line, target, workspace, dry_run=other is not None)
    if other is None:
        _tell(done, task.id)
    elif done.files:
        raise Conflict(
            f"the files of job {task.id!r} cannot be brought back into {str(workspace.path)!r}: "
            f"job {other.id!r} works there now; resume it when that one has ended"
        )


def differing(vault: Vault, job: Job, ref: str | None = None) -> "FileChanges | None":
    """What a worker on this machine would do to the directory of a job that is resumed now; None if
    there is no directory, or no file was saved."""
    directory, line = job.spec.workspace, vault.timeline(job.lineage)
    if directory is None or has_own_directories(vault) or not os.path.isdir(directory):
        return None
    target = _target(vault, line, ref)
    if target is None:
        return None
    return _restored(line, target, vault.workspace(directory), dry_run=True).files


def _restored(
    line: Timeline, target: Checkpoint, workspace: "Workspace", *, dry_run: bool
) -> Rewind:
    return line.rewind(
        target.id, what="files", scope="everyone", workspace=workspace, dry_run=dry_run
    )


# Which files


def _target(vault: Vault, line: Timeline, ref: str | None) -> Checkpoint | None:
    """The checkpoint whose files a job goes on with; None: no file was ever saved of it."""
    found = line.get(ref) if ref is not None else _last_with_files(vault, line)
    return found if found is not None and found.files is not None else None


def _last_with_files(vault: Vault, line: Timeline) -> Checkpoint | None:
    """The newest checkpoint with files that the job is built on, but for one that was only saved
    for a restore that did not come to its end."""
    head = line.head
    if head is None:
        return None
    past = chain([head], islice(line.ancestors(), _LOOKED_AT))
    found = (each for each in past if each.files is not None)
    return next((each for each in found if not _is_aside(vault, line, each)), None)


def _is_aside(vault: Vault, line: Timeline, one: Checkpoint) -> bool:
    """Whether it was saved for a restore, and no rewind has chosen it since."""
    if one.summary is None or one.summary.phase != SAFETY:
        return False
    last = next(iter(vault.operations(line.name, limit=1)), None)
    return last is None or last.kind != "rewind" or last.about.get("to") != record_of(one).id


# Who else is there


def _earlier(vault: Vault, task: Task, directory: str) -> Task | None:
    """A job that works in the same directory, and has begun earlier: of two that begin at once, one
    goes first. The same path of another host is another directory."""
    there = _working_in(directory, beside(vault.tasks, task.id))
    return next((each for each in there if _begun(each) < _begun(task)), None)


def _working_in(directory: str, running: Iterable[Task]) -> Iterator[Task]:
    here = os.path.realpath(directory)
    for task in running:
        asked = states.queued(task)
        there = None if asked is None else asked[0].workspace
        if there is not None and shares(os.path.realpath(there), here):
            yield task


def shares(one: str, other: str) -> bool:
    """Whether two directories are one, or one lies in the other."""
    return os.path.commonpath([one, other]) in (one, other)


def _begun(task: Task) -> tuple[float, str]:
    return (0.0 if task.started_at is None else task.started_at.timestamp(), task.id)


# What is told


def _tell(done: Rewind, id: str) -> None:
    """Log what was done; raise what could not be."""
    files = done.files
    if files is None:
        return
    kept = "" if done.before is None else f"{done.before.timeline}:{done.before.seq}"
    if files:
        log(__name__).warning(
            "job %r: %s was not as its last save left it (%s); its files are back. What was there "
            "is saved as %s, and 'hardsave undo --timeline %s' brings it back",
            id,
            files.workspace,
            files,
            kept,
            done.timeline,
        )
    if files.not_saved:
        names = _listed(each.path for each in files.not_saved)
        log(__name__).warning("job %r: never saved, so not brought back: %s", id, names)
    if files.missing:
        names = _listed(f"{each.path} ({each.reason})" for each in files.missing)
        raise Conflict(
            f"the files of job {id!r} cannot be brought back into {files.workspace!r}: {names}; "
            "move away what is in the way, then resume it"
        )


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
