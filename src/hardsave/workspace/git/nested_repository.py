"""Repositories inside of a workspace, submodules among them: what they track is captured, too.

For git, only the rules of the innermost repository count. For a snapshot, those of the outer ones
do as well: they say what nobody wants to have. But they must not leave out what an inner one
tracks.
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


class Inner:
    """One of them. Its index is read once, and taken apart if somebody asks what is in it."""

    def __init__(self, top: bytes) -> None:
        self._top = Path(os.fsdecode(top))
        self.problem = ""  # why it could not be told what is tracked, to somebody who asked

    @property
    def key(self) -> bytes:
        """The same key, the same paths. One of which they are not known has that of no other."""
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
