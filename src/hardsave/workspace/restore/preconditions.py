"""Checks before each step of a restore: whether it is done already, and whether it may be done.

And which errors about a path are no reason to end a restore.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hardsave.errors import Unavailable
from hardsave.workspace.entries import above, last_name, parent
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.restore import disk_state
from hardsave.workspace.restore.name_collisions import collisions
from hardsave.workspace.restore.plan import Step

# Another program changed the path in the meantime, or we lack the rights; or this file system
# cannot hold such a name, so long a file, a symlink, so many links.
IN_THE_WAY = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EXDEV, errno.EEXIST),
    *(errno.ENOTEMPTY, errno.EACCES, errno.EPERM, errno.EBUSY, errno.ETXTBSY, errno.ENAMETOOLONG),
    *(errno.EILSEQ, errno.EINVAL, errno.EFBIG, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK),
}


class Unexpected(Exception):
    """What is at a path is neither what the plan expects nor what it leaves."""


class Preconditions:
    """The checks of one restore, for all of its steps."""

    def __init__(self, root_dir: RootDirectory, steps: Sequence[Step]) -> None:
        self._root_dir = root_dir
        self._colliding = collisions(
            [step.path for step in steps if step.do in ("remove", "rmdir")],
            [step.path for step in steps if step.before is None and step.after is not None],
        )
        self._names: dict[bytes, frozenset[str]] = {}

    def is_done(self, step: Step, directory: int) -> bool:
        """Whether a step has been done already."""
        if not disk_state.is_entry(last_name(step.path), directory, step.after):
            return False
        if not self.is_by_its_name(step.path):
            return False
        if step.to:
            return self._is_one_file(step.path, step.to)
        return not any(self._is_one_file(step.path, other) for other in step.apart)

    def expect(self, step: Step, directory: int) -> None:
        """Raise `Unexpected` if what a step would replace is not what the plan expects."""
        if not disk_state.is_entry(last_name(step.path), directory, step.before):
            raise _unexpected(step)

    def expect_stat(self, step: Step, directory: int) -> None:
        """The same without reading contents, for a step that compares them when it is done."""
        if not disk_state.resembles(last_name(step.path), directory, step.before):
            raise _unexpected(step)

    def is_by_its_name(self, path: bytes) -> bool:
        """Whether what is found at a path lies there, and not under a name that this file system
        takes for the same."""
        if not self._colliding:
            return True
        return all(
            self._is_listed(each) for each in (path, *above(path)) if each in self._colliding
        )

    def forget(self, directory: bytes) -> None:
        """What lies in a directory is no longer what was seen."""
        self._names.pop(directory, None)

    def _is_listed(self, path: bytes) -> bool:
        directory = parent(path)
        if directory not in self._names:
            try:
                with self._root_dir.directory(directory) as opened:
                    self._names[directory] = frozenset(os.listdir(opened))
            except OSError:
                return False
        return os.fsdecode(last_name(path)) in self._names[directory]

    def _is_one_file(self, path: bytes, other: bytes) -> bool:
        one, two = self._inode(path), self._inode(other)
        return one is not None and one == two

    def _inode(self, path: bytes) -> tuple[int, int] | None:
        try:
            with self._root_dir.directory(parent(path)) as directory:
                status = disk_state.look(last_name(path), directory)
        except OSError:
            return None
        return None if status is None else (status.st_dev, status.st_ino)


def _unexpected(step: Step) -> Unexpected:
    what = "appeared" if step.before is None else "changed"
    return Unexpected(f"{what} after the present was saved")


@contextmanager
def unless_in_the_way(path: bytes) -> Iterator[None]:
    """Clean up; a path that another program changed, or that we have no rights to, is left."""
    try:
        yield
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise Unavailable(
                f"{os.fsdecode(path)!r} cannot be cleaned up: {error.strerror}"
            ) from error
