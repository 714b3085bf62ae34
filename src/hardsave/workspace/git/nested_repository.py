"""Repositories inside of a workspace, submodules among them: what they track is captured, too.

For git, only the ignore rules of the innermost repository count. For a snapshot, those of the outer
ones count as well, but they must not leave out what an inner one tracks.
"""

import os
from functools import cached_property
from pathlib import Path

from hardsave.objects.hashing import digest
from hardsave.workspace.filesystem.bounded_read import Reading, read_beneath
from hardsave.workspace.git import position
from hardsave.workspace.git.git_directory import GitDirectory, NoGitDirectory, opened

UNREADABLE = "git's index could not be read, so ignored files count as untracked: "

_LARGEST_INDEX = 64 << 20
_UNKNOWN = b"?"


class NestedRepository:
    """One of them. Its index is read once, and parsed when its paths are needed."""

    def __init__(self, top: bytes) -> None:
        self._top = Path(os.fsdecode(top))
        self.problem = ""  # why its paths are not known, once they were asked for

    @property
    def key(self) -> bytes:
        """The same key means the same paths; unknown paths have a key of their own."""
        return _UNKNOWN if self.problem else self._key

    @cached_property
    def _key(self) -> bytes:
        return b"" if self._index.data is None else digest(self._index.data)

    @cached_property
    def _index(self) -> Reading:
        with opened(self._top) as directory:
            match directory:
                case GitDirectory():
                    return read_beneath(directory.own, b"index", limit=_LARGEST_INDEX)
                case NoGitDirectory(problem):
                    return Reading(None, problem)
                case None:
                    return Reading()

    def tracked(self) -> frozenset[bytes]:
        """Paths, relative to it; none if that cannot be told."""
        data, self.problem = self._index
        if data is None:
            return frozenset()
        with opened(self._top) as directory:
            if not isinstance(directory, GitDirectory):
                return frozenset()  # it went a moment ago
            found = position.tracked_in(directory, data)
        self.problem = found.problem
        return found.paths
