"""What git notes down while a merge, rebase, cherry-pick, revert or bisect is unfinished.

These are small files of known names. There are bounds on each, on their number and on all
together; what goes beyond is listed, and the rest is still kept.
"""

import os
from collections.abc import Iterable

from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.bounded_read import failure, open_beneath, read_beneath

_FILES = frozenset(
    b"MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR MERGE_AUTOSTASH AUTO_MERGE SQUASH_MSG ORIG_HEAD"
    b" CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD".split()
)
_FILES_THAT_BEGIN = b"BISECT_"
OPERATION_DIRECTORIES = (b"rebase-merge", b"rebase-apply", b"sequencer")
DIRECTORIES = (*OPERATION_DIRECTORIES, b"refs/bisect", b"refs/rewritten")

# What tells that something is unfinished, the more telling first.
_OPERATIONS = (
    ("rebase-merge/", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply/", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer/", "cherry-pick or revert"),
    ("BISECT_START", "bisect"),
)

_LARGEST_FILE = 1024 * 1024
_ALL_FILES = 16 * 1024 * 1024
_MOST_FILES = 10_000
_DEEPEST = 8


class GitFile(NamedTuple):
    """A file below a git directory, as it was."""

    path: str
    data: bytes


class NotCaptured(NamedTuple):
    """A file of git that should be in the position and is not, and why."""

    path: str
    reason: str


def is_known(path: bytes) -> bool:
    """Whether a path is one of those that are kept. Nothing else is ever written."""
    name, _, below = path.partition(b"/")
    if not below:
        return name in _FILES or name.startswith(_FILES_THAT_BEGIN)
    names = path.split(b"/")
    is_plain = not any(each in (b"", b".", b"..") or b"\0" in each for each in names)
    return is_plain and any(path.startswith(each + b"/") for each in DIRECTORIES)


def operation(paths: Iterable[str]) -> str | None:
    """The operation that has these files, such as `merge`; None if none is unfinished."""
    kept = [*paths]
    for beginning, name in _OPERATIONS:
        if any(path.startswith(beginning) for path in kept):
            return name
    return None


class UnfinishedFiles:
    """Collects the files of one git directory."""

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self._room = _ALL_FILES
        self._seen = 0
        self.files: list[GitFile] = []
        self.missed: list[NotCaptured] = []
        self.names = self._names(b"")  # all that lies in the directory itself
        for name in self.names:
            if name in _FILES or name.startswith(_FILES_THAT_BEGIN):
                self._read(name)
        for path in DIRECTORIES:
            self._read_all(path, _DEEPEST)

    def _read_all(self, path: bytes, depth: int) -> None:
        """Every file below a directory, if that is what the path is."""
        for name in self._names(path):
            self._seen += 1
            if self._seen > _MOST_FILES:
                self._miss(path, f"there are more than {_MOST_FILES} such files")
                return
            below = path + b"/" + name
            if depth and self._is_directory(below):
                self._read_all(below, depth - 1)
            else:
                self._read(below)

    def _read(self, path: bytes) -> None:
        data, problem = read_beneath(self._directory, path, limit=min(_LARGEST_FILE, self._room))
        if problem:
            self._miss(path, problem)
        elif data is not None:
            self._room -= len(data)
            self.files.append(GitFile(os.fsdecode(path), data))

    def _names(self, path: bytes) -> list[bytes]:
        """The names in a directory, sorted; none if there is no such directory."""
        try:
            opened = open_beneath(self._directory, path.split(b"/") if path else [])
            try:
                return sorted(os.fsencode(name) for name in os.listdir(opened))
            finally:
                os.close(opened)
        except OSError as error:
            problem = failure(error).problem
            if problem:
                self._miss(path, problem)
            return []

    def _is_directory(self, path: bytes) -> bool:
        try:
            os.close(open_beneath(self._directory, path.split(b"/")))
        except OSError:
            return False
        return True

    def _miss(self, path: bytes, reason: str) -> None:
        self.missed.append(NotCaptured(os.fsdecode(path), reason))
