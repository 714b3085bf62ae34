"""Carries out a plan on a real directory, so that it can be interrupted anywhere.

    journal → directories → contents staged and synced → decided → swaps → removals → sync → done

All contents are on the disk under names of ours before the first file is replaced, so a disk
that is full is noticed while nothing has changed yet. Every step first looks whether it is
done already, and whether what it would replace is what the plan expects: if it is neither,
the step is skipped and reported as a conflict. So to carry out a plan twice is the same as once,
and nothing is lost that the snapshot of the present does not have.

Nothing here follows a symlink, and nothing here is outside of the workspace but the journal.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave.errors import (
    Conflict,
    DeadlineExceeded,
    HardsaveError,
    Misuse,
    NotFound,
    Stopped,
    Unavailable,
)
from hardsave.logs import log
from hardsave.progress import meter, to_the_end
from hardsave.stores.host.boot import boot_id
from hardsave.workspace.filesystem.durable_write import sync_directory
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.restore import journal
from hardsave.workspace.restore.journal import Journal
from hardsave.workspace.restore.plan import Plan
from hardsave.workspace.restore.preconditions import IN_THE_WAY
from hardsave.workspace.restore.steps import Restored, Steps
from hardsave.workspace.snapshot.content import Fetch


def restore(
    root: bytes,
    plan: Plan,
    fetch: Fetch,
    path: Path,
    *,
    id: bytes,
    note: bytes = b"",
    made: tuple[bytes, ...] = (),
    whole: bool = False,
    decide: Callable[[], object] = lambda: None,
) -> Restored:
    """Carry out a plan. `path` is where the journal lies meanwhile, outside of the workspace.

    `decide` is called when all contents are staged and nothing has been replaced: what it
    writes down says whether a restore that is interrupted from there on is to be finished or
    taken back. If it refuses (`Conflict`, `NotFound`), nothing has happened. With `whole`, it is
    not called if some content cannot be staged: `Unavailable`. `made` are directories that are not
    there yet, the root first and then those above it: they are made, and removed again if the
    restore is taken back.
    """
    written = begin(root, plan, path, id=id, note=note, made=made)
    with prepared(written, fetch, path, whole=whole) as attempt:
        decide()
    finish(path)
    return attempt.restored


def fill(root: bytes, plan: Plan, fetch: Fetch, *, name: str) -> None:
    """Carry out a plan in a directory that is this process's alone and empty, and may be left as it
    is if that ends: without a journal and without syncs. All of it, or `Unavailable`."""
    with RootDirectory(root) as root_dir:
        steps = Steps(root_dir, plan.steps, name, fetch, lasts=False)
        steps.prepare()
        conflicts = steps.take().conflicts
    if conflicts:
        raise Unavailable(
            f"{os.fsdecode(conflicts[0].path)!r} could not be written to {os.fsdecode(root)!r}: "
            f"{conflicts[0].reason}; all but {len(conflicts)} are there"
        )


def begin(
    root: bytes,
    plan: Plan,
    path: Path,
    *,
    id: bytes,
    note: bytes = b"",
    made: tuple[bytes, ...] = (),
) -> Journal:
    """Write the journal. From here on the restore will be finished or taken back."""
    if path.exists():
        raise Unavailable(f"a restore of {os.fsdecode(root)!r} was interrupted; recover it first")
    meter("writing the journal")
    written = Journal(root, 0, 0, id, note, plan, boot_id(), made)
    try:
        if made:  # so that recovery knows of them as soon as there is one
            journal.write(path, written)
            _make(written, path)
        status = os.stat(root)
        written = written._replace(device=status.st_dev, inode=status.st_ino)
        journal.write(path, written)
    except OSError as error:
        raise _not_begun(written, path, error) from error
    return written


def _make(written: Journal, path: Path) -> None:
    """Make the directories that a restore needs, each synced before the next is made."""
    try:
        for folder in reversed(written.made):
            os.mkdir(folder)
            sync_directory(os.path.dirname(folder))
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        _unmake(written)
        journal.remove(path)
        root = os.fsdecode(written.root)
        raise Misuse(f"{root!r} cannot be made a directory: {error}") from error


def _unmake(written: Journal) -> None:
    """Remove the directories that were made, unless something was put into them."""
    for folder in written.made:
        with suppress(OSError):
            os.rmdir(folder)


def _not_begun(written: Journal, path: Path, error: OSError) -> Unavailable:
    """Remove the journal, which may not be on the disk yet, and say what went wrong."""
    _unmake(written)
    try:
        journal.remove(path)
    except OSError:
        return Unavailable(
            f"the journal {str(path)!r} fails: {error}; see to the disk, then recover"
        )
    return Unavailable(
        f"the journal {str(path)!r} could not be written: {error}; "
        "no file was changed. See to the disk, then repeat"
    )


def recover(path: Path, fetch: Fetch, *, back: bool = False) -> Restored | None:
    """Finish a restore that has begun, or take it `back`. None if there is none.

    May itself be interrupted and repeated any number of times.
    """
    written = journal.read(path)
    if written is None:
        return None
    restored = carry_out(written, fetch, path, back=back)
    finish(path)
    return restored


def finish(path: Path) -> None:
    """The restore is done, and all that belongs to it: the journal goes."""
    try:
        journal.remove(path)
    except OSError as error:
        raise Unavailable(
            f"the restore is done, but its journal {str(path)!r} could not be removed: {error}; "
            "see to the disk, then recover"
        ) from error


class Attempt:
    """A restore under way; when its block is left, it says what was done."""

    restored = Restored(0, (), ())


@contextmanager
def prepared(
    written: Journal, fetch: Fetch, path: Path, *, whole: bool = False
) -> Iterator[Attempt]:
    """Stage all contents, then run the block, then replace and remove. The journal stays, for a
    caller who has more to do before it may go.

    The block decides: what it writes down says whether a restore that is interrupted from there on
    is to be finished or taken back. If it refuses (`Conflict`, `NotFound`), or if contents cannot
    be staged, what was prepared is taken back at once, with its journal: nothing has happened then.
    """
    attempt = Attempt()
    with _workspace(written, path) as root_dir:
        steps = Steps(root_dir, written.plan.steps, written.id.hex(), fetch)
        try:
            steps.spare_what_is_not_saved()
            steps.prepare()
            if whole:
                steps.refuse_conflicts()
        except HardsaveError as error:
            raise _failed_early(steps, written, path, error) from error
        with to_the_end():
            try:
                yield attempt
            except (Conflict, NotFound) as error:
                _give_up(steps, written, path, error)
                raise
            attempt.restored = _taken(steps)


def carry_out(written: Journal, fetch: Fetch, path: Path, *, back: bool = False) -> Restored:
    """All steps of a restore that was interrupted, or of its way `back`; the journal stays."""
    if back and written.made and not _is_made(written):
        _unmake(written)
        return Restored(0, (), ())
    with to_the_end(), _workspace(written, path) as root_dir:
        plan, name = written.plan, written.id.hex()
        there = Steps(root_dir, plan.steps, name, fetch)
        home = Steps(root_dir, plan.back, f"{name}-back", fetch)
        steps, others = (home, there) if back else (there, home)
        try:
            others.tidy()
            steps.tidy(others)
            steps.prepare()
        except HardsaveError as error:
            raise type(error)(f"{error}; {_UNFINISHED}") from error
        done = _taken(steps)
        if back:
            _unmake(written)
        return done


def _taken(steps: Steps) -> Restored:
    try:
        return steps.take()
    except Unavailable as error:
        raise Unavailable(f"{error}; {_UNFINISHED}") from error


_UNFINISHED = (
    "some files are restored and some are not: see to the disk, then use the workspace or open the "
    "store again, which recovers it"
)


def _give_up(steps: Steps, written: Journal, path: Path, error: HardsaveError) -> None:
    """Take back what was prepared. What cannot be removed now is removed by recovery."""
    try:
        _take_back_preparations(steps, written, path)
    except (OSError, Unavailable) as failure:
        log(__name__).warning("what was prepared before %r is still there: %s", error, failure)


def _failed_early(
    steps: Steps, written: Journal, path: Path, error: HardsaveError
) -> HardsaveError:
    """Take back what was prepared; the error, with what to do next."""
    try:
        _take_back_preparations(steps, written, path)
    except (OSError, Unavailable) as failure:
        return type(error)(f"{error}; then: {failure}; see to the disk, then recover")
    if isinstance(error, DeadlineExceeded | Stopped):
        return type(error)(f"{error}; no file was changed")
    return type(error)(f"{error}; no file was changed. See to the disk, then repeat")


def _take_back_preparations(steps: Steps, written: Journal, path: Path) -> None:
    """The journal last: as long as it is there, recovery will look for what it names."""
    steps.abandon()
    _unmake(written)
    journal.remove(path)


def _is_made(written: Journal) -> bool:
    """Whether a root that was to be made is there: else nothing was ever written into it, or
    it was removed with all that was."""
    try:
        return written.is_about(os.stat(written.root), boot_id())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _no_workspace(written, error) from error


def _workspace(written: Journal, path: Path) -> RootDirectory:
    """The directory that the restore was begun in, and no other."""
    try:
        root_dir = RootDirectory(written.root)
    except OSError as error:
        raise _no_workspace(written, error) from error
    if not written.is_about(os.fstat(root_dir.fd), boot_id()):
        root_dir.close()
        raise Misuse(
            f"{os.fsdecode(written.root)!r} is not the directory that the restore was begun in; "
            f"bring that one back, or remove the journal {str(path)!r}"
        )
    return root_dir


def _no_workspace(written: Journal, error: OSError) -> Unavailable:
    return Unavailable(
        f"the workspace {os.fsdecode(written.root)!r} cannot be opened: {error}; "
        "bring it back, then recover"
    )
