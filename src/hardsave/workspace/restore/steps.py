"""Does the steps of a plan on a real directory. `execution` is the way in.

Each step first looks whether it is done already, and whether what it would replace is what
the plan expects: if it is neither, it is skipped and reported as a conflict. So the same steps
can be done again after any interruption.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from hardsave.errors import Unavailable
from hardsave.progress import Meter, Total, meter
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import DIRECTORY, FILE, above, kept_mode, last_name, parent
from hardsave.workspace.file_names import TEMPORARY_PREFIX
from hardsave.workspace.filesystem.lock_safe_open import reading
from hardsave.workspace.filesystem.safe_open import RootDirectory, rename_to_nothing
from hardsave.workspace.restore import disk_state, stored_copies, swap
from hardsave.workspace.restore.file_writer import (
    Numbered,
    copy_attributes,
    fill,
    in_large_portions,
    in_portions,
    length,
    synced,
    with_small,
)
from hardsave.workspace.restore.plan import Step
from hardsave.workspace.restore.preconditions import (
    IN_THE_WAY,
    Preconditions,
    Unexpected,
    unless_in_the_way,
)
from hardsave.workspace.restore.swap import Change, Name
from hardsave.workspace.snapshot.content import Fetch

_NO_DIRECTORY = {errno.ENOTDIR, errno.ELOOP}
_OPENED = 0o700
_PUTS = ("write", "symlink", "link", "chmod")  # for which there may be a file in the making
_NO_COPY = "what is stored of it is damaged, and nothing could bring it back; run verify"


class Conflict(NamedTuple):
    """A path that was left as it is, and why."""

    path: bytes
    reason: str


class Restored(NamedTuple):
    """What was done. `kept` are directories that still hold something that is not ours."""

    done: int
    conflicts: tuple[Conflict, ...]
    kept: tuple[bytes, ...]


class Steps:
    """The steps of one restore; the names of its temporary files have `name` in them. With
    `lasts` what is written survives a power loss; else it may go with this process."""

    def __init__(
        self,
        root_dir: RootDirectory,
        steps: Sequence[Step],
        name: str,
        fetch: Fetch,
        *,
        lasts: bool = True,
    ) -> None:
        self._root_dir = root_dir
        self._steps = steps
        self._prefix = TEMPORARY_PREFIX + name.encode() + b"-"
        self._fetch = fetch
        self._is_lasting = lasts
        self._staged: set[int] = set()
        self._touched: set[bytes] = set()
        self._conflicts: dict[bytes, str] = {}
        self._kept: list[bytes] = []
        self._made: list[bytes] = []
        # What lies beneath these is gone when they are there.
        self._files = {step.path for step in steps if step.do in ("write", "symlink", "link")}
        self._preconditions = Preconditions(root_dir, steps)
        self._done = 0
        self._writing = Meter()
        self._verbs: dict[str, Callable[[int, Step], None]] = {
            "open": self._change_mode_of_directory,
            "mkdir": self._make_directory,
            "remove": self._remove,
            "rmdir": self._remove_directory,
            "write": self._put_staged,
            "symlink": self._put_symlink,
            "link": self._put_link,
            "chmod": self._change_mode,
            "close": self._change_mode_of_directory,
        }

    def spare_what_is_not_saved(self) -> None:
        """Leave alone what would go and has no sound copy: nothing could bring it back."""
        self._conflicts |= dict.fromkeys(
            stored_copies.without_sound_copy(self._steps, self._fetch), _NO_COPY
        )

    def prepare(self) -> None:
        """Make directories, and write all contents beside their places. Nothing is replaced yet."""
        for number, step in self._early():
            self._guarded(number, step, self._verbs[step.do])
        writes = self._writes()
        self._writing = meter("writing", "files", lambda: Total(len(writes), length(writes)))
        for some in in_portions(writes) if self._is_lasting else in_large_portions(writes):
            if self._is_lasting:
                with ExitStack() as stack:
                    self._stage_all(some, stack)
            else:
                self._stage_each(some)

    def take(self) -> Restored:
        """Replace, remove, and sync."""
        early = {number for number, _ in self._early()}
        taken = meter("putting in place", "files", lambda: Total(len(self._steps) - len(early)))
        for number, step in enumerate(self._steps):
            if number not in early and step.path not in self._conflicts:
                self._guarded(number, step, self._verbs[step.do])
                taken.add(1)
        self._sync()
        if self._conflicts:
            self.clean()  # what was staged for a path that is not ours to replace
        conflicts = [Conflict(path, why) for path, why in sorted(self._conflicts.items())]
        return Restored(self._done, tuple(conflicts), tuple(sorted(self._kept)))

    def refuse_conflicts(self) -> None:
        """Raise `Unavailable` if `prepare` found a conflict."""
        for path, why in sorted(self._conflicts.items()):
            raise Unavailable(f"{os.fsdecode(path)!r} could not be written: {why}")

    def abandon(self) -> None:
        """Take `prepare` back. A directory that something was put into stays."""
        self.clean()
        for path in reversed(self._made):
            with unless_in_the_way(path), self._root_dir.directory(parent(path)) as directory:
                os.rmdir(last_name(path), dir_fd=directory)
        for _, step in self._early():
            if step.do == "open" and step.before is not None:
                with unless_in_the_way(step.path):
                    self._set_mode_of_directory(step.path, step.before.mode)

    def clean(self) -> None:
        """Remove what an interrupted restore may have left under names of ours."""
        for number, step in enumerate(self._steps):
            if step.do in _PUTS:
                where = step.via if step.do == "write" else parent(step.path)
                self._unlink_temporary(number, where)

    def tidy(self, others: "Steps | None" = None) -> None:
        """Clean up what a process that died has left of these steps: what it had staged, and what
        it was about to replace or remove. Conflicts of `others`, of the same restore, count."""
        for number, step in enumerate(self._steps):
            if step.do in (*_PUTS, "remove") and step.before is not None:
                self._guarded(number, step, self._settle)
        self.clean()
        if others is not None:
            self._conflicts = {**others._conflicts, **self._conflicts}

    def _settle(self, number: int, step: Step) -> None:
        assert step.before is not None
        where = step.via if step.do == "write" else parent(step.path)
        with (
            unless_in_the_way(where),
            self._root_dir.directory(where) as beside,
            self._root_dir.directory(parent(step.path)) as directory,
        ):
            change = Change(Name(last_name(step.path), directory), step.before, step.after)
            swap.settle(Name(self._aside(number), beside), change)

    def _unlink_temporary(self, number: int, where: bytes) -> None:
        with unless_in_the_way(where), self._root_dir.directory(where) as directory:
            os.unlink(self._temporary(number), dir_fd=directory)

    def _early(self) -> Iterator[Numbered]:
        for number, step in enumerate(self._steps):
            if step.do not in ("open", "mkdir"):
                return
            yield number, step

    def _writes(self) -> list[Numbered]:
        return [
            (number, step)
            for number, step in enumerate(self._steps)
            if step.do == "write" and step.path not in self._conflicts
        ]

    def _temporary(self, number: int) -> bytes:
        return self._prefix + b"%d" % number

    def _aside(self, number: int) -> bytes:
        """The temporary name of a file that is replaced or removed."""
        return self._temporary(number) + b"-aside"

    def _guarded(self, number: int, step: Step, do: Callable[[int, Step], None]) -> None:
        """Do it; a path that is not as expected is noted, a disk that fails ends everything."""
        try:
            do(number, step)
        except Unexpected as error:
            self._conflicts.setdefault(step.path, str(error))
        except OSError as error:
            if error.errno not in IN_THE_WAY:
                raise Unavailable(
                    f"{os.fsdecode(step.path)!r} could not be restored: {error.strerror}"
                ) from error
            self._conflicts.setdefault(step.path, f"it cannot be restored: {error.strerror}")

    # Contents

    def _stage_all(self, some: Sequence[Numbered], stack: ExitStack) -> None:
        """Write contents beside their places, and sync them."""
        files: dict[int, int] = {}
        fetch = with_small(some, self._fetch)

        def stage(number: int, step: Step) -> None:
            if (file := self._stage(fetch, number, step, stack)) is not None:
                files[number] = file

        for number, step in some:
            self._guarded(number, step, stage)
        faults = dict(zip(files, synced([*files.values()]), strict=True))
        for number, step in some:
            if number in files:
                self._guarded(number, step, partial(self._lasts, faults[number]))
        self._writing.add(len(some))

    def _stage_each(self, some: Sequence[Numbered]) -> None:
        """The same without syncs, which would have all of them open at once."""
        fetch = with_small(some, self._fetch)

        def stage(number: int, step: Step) -> None:
            with ExitStack() as stack:
                if self._stage(fetch, number, step, stack) is not None:
                    self._staged.add(number)

        for number, step in some:
            self._guarded(number, step, stage)
        self._writing.add(len(some))

    def _lasts(self, fault: OSError | None, number: int, step: Step) -> None:
        if fault is not None:
            raise fault
        self._staged.add(number)

    def _stage(self, fetch: Fetch, number: int, step: Step, stack: ExitStack) -> int | None:
        """A file with the content of a step, open until the stack is left; None: needs none."""
        assert step.after is not None
        with self._root_dir.directory(step.via) as directory:
            if step.via == parent(step.path):  # else its own directory is not there yet
                if self._preconditions.is_done(step, directory):
                    return None
                if step.before is not None:  # else something may have to be cleared away first
                    self._preconditions.expect(step, directory)
            return self._written(fetch, number, step, directory, stack)

    def _written(
        self, fetch: Fetch, number: int, step: Step, directory: int, stack: ExitStack
    ) -> int:
        """A temporary file with its content, attributes and mode."""
        assert step.after is not None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._temporary(number), flags, 0o600, dir_fd=directory)
        stack.callback(os.close, file)
        fill(file, step.after, fetch, self._writing)
        if step.before is not None and step.before.type == FILE:
            self._copy_attributes(step.path, file)
        os.fchmod(file, step.after.mode)
        return file

    def _copy_attributes(self, path: bytes, file: int) -> None:
        name = last_name(path)
        with self._root_dir.directory(parent(path)) as directory, reading(name, directory) as old:
            copy_attributes(old, file)

    def _put_staged(self, number: int, step: Step) -> None:
        with self._root_dir.directory(parent(step.path)) as directory:
            if self._preconditions.is_done(step, directory):
                if number in self._staged:  # as can be if it had to be staged elsewhere
                    self._unlink_temporary(number, step.via)
                return
            self._preconditions.expect_stat(step, directory)
            with self._root_dir.directory(step.via) as source:
                self._move(number, source, step, directory)
            self._touched.add(step.via)

    def _move(self, number: int, source: int, step: Step, directory: int) -> None:
        """Give a temporary file its name."""
        temporary, place = self._temporary(number), Name(last_name(step.path), directory)
        if step.before is None:
            rename_to_nothing(temporary, source, *place)
        else:
            change = Change(place, step.before, step.after)
            swap.replace(Name(temporary, source), Name(self._aside(number), source), change)
        self._note(step)

    def _note(self, step: Step) -> None:
        self._done += 1
        self._touched.add(parent(step.path))
        self._preconditions.forget(parent(step.path))

    # Symlinks and links

    def _put_symlink(self, number: int, step: Step) -> None:
        assert step.after is not None
        with self._root_dir.directory(parent(step.path)) as directory:
            if self._preconditions.is_done(step, directory):
                return
            self._preconditions.expect_stat(step, directory)
            os.symlink(step.after.target, self._temporary(number), dir_fd=directory)
            self._move(number, directory, step, directory)

    def _put_link(self, number: int, step: Step) -> None:
        with self._root_dir.directory(parent(step.path)) as directory:
            if self._preconditions.is_done(step, directory):
                return
            self._preconditions.expect_stat(step, directory)
            temporary = self._temporary(number)
            with self._root_dir.directory(parent(step.to)) as source:
                if not disk_state.is_entry(last_name(step.to), source, step.after):
                    raise Unexpected(f"{os.fsdecode(step.to)!r}, its link, is not as it should be")
                os.link(
                    *(last_name(step.to), temporary),
                    src_dir_fd=source,
                    dst_dir_fd=directory,
                    follow_symlinks=False,
                )
            self._move(number, directory, step, directory)

    # Modes, directories, removals

    def _change_mode(self, number: int, step: Step) -> None:
        assert step.after is not None
        with self._root_dir.directory(parent(step.path)) as directory:
            if self._preconditions.is_done(step, directory):
                return
            self._preconditions.expect(step, directory)
            with reading(last_name(step.path), directory) as file:
                if os.fstat(file).st_nlink == 1:
                    os.fchmod(file, step.after.mode)
                    os.fsync(file)
                    self._note(step)
                    return
            # Its other names lie outside, or where nothing is captured: no mode is changed there.
            with ExitStack() as stack:
                os.fsync(self._written(self._fetch, number, step, directory, stack))
            self._move(number, directory, step, directory)

    def _change_mode_of_directory(self, number: int, step: Step) -> None:
        assert step.after is not None
        with self._still_there(step) as directory:
            status = (
                disk_state.look(last_name(step.path), directory) if directory is not None else None
            )
        if status is None or not disk_state.is_type(status, DIRECTORY):
            return  # it went, or something else came: nothing that a mode belongs to
        mode = kept_mode(status.st_mode)
        expected = step.before.mode if step.before is not None else _OPENED
        if mode not in (step.after.mode, expected, expected | _OPENED, _OPENED):
            raise Unexpected("its mode was changed after the present was saved")
        if mode != step.after.mode:
            self._set_mode_of_directory(step.path, step.after.mode)
            self._touched.add(step.path)

    def _set_mode_of_directory(self, path: bytes, mode: int) -> None:
        with self._root_dir.directory(path) as directory:
            os.fchmod(directory, mode)

    def _make_directory(self, number: int, step: Step) -> None:
        """With all rights for us; it gets its own mode in the end."""
        with self._root_dir.directory(parent(step.path)) as directory:
            if not disk_state.is_entry(last_name(step.path), directory, step.after):
                os.mkdir(last_name(step.path), _OPENED, dir_fd=directory)
                self._made.append(step.path)
                self._note(step)

    def _remove(self, number: int, step: Step) -> None:
        with self._still_there(step) as directory:
            status = (
                disk_state.look(last_name(step.path), directory) if directory is not None else None
            )
            if directory is None or status is None or disk_state.is_type(status, DIRECTORY):
                return  # done, in a restore that went on from here
            self._preconditions.expect_stat(step, directory)
            assert step.before is not None
            change = Change(Name(last_name(step.path), directory), step.before, None)
            swap.take_away(Name(self._aside(number), directory), change)
            self._note(step)

    def _remove_directory(self, number: int, step: Step) -> None:
        with self._still_there(step) as directory:
            status = (
                disk_state.look(last_name(step.path), directory) if directory is not None else None
            )
            if directory is None or status is None or not disk_state.is_type(status, DIRECTORY):
                return
            try:
                os.rmdir(last_name(step.path), dir_fd=directory)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                self._kept.append(step.path)  # what is in it is not ours to remove
            else:
                self._note(step)

    @contextmanager
    def _still_there(self, step: Step) -> Iterator[int | None]:
        """The directory that a path lies in; None if it is gone, or is a file now."""
        if not self._preconditions.is_by_its_name(step.path):
            yield None
            return
        try:
            directory = self._root_dir.open(parent(step.path), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            is_replaced = any(above in self._files for above in above(step.path))
            if error.errno == errno.ENOENT or (is_replaced and error.errno in _NO_DIRECTORY):
                yield None
                return
            raise
        try:
            yield directory
        finally:
            os.close(directory)

    def _sync(self) -> None:
        for path in sorted(self._touched) if self._is_lasting else ():
            self._sync_directory(path)

    def _sync_directory(self, path: bytes) -> None:
        try:
            with self._root_dir.directory(path) as directory:
                os.fsync(directory)
        except OSError as error:
            if error.errno not in IN_THE_WAY:
                raise Unavailable(
                    f"the directory {os.fsdecode(path)!r} could not be synced: {error.strerror}"
                ) from error
