"""Plain data that all of workspace shares: an entry of a directory, a path that was left out."""

import stat
from collections.abc import Iterator

from hardsave.objects.hashing import Hash
from hardsave.tuples import NamedTuple

FILE = 1
SYMLINK = 2
DIRECTORY = 3

# What is kept of a mode. Bits that hand on the owner's rights are not: a restored file, or
# one from another user's store, must not run as its owner.
FILE_BITS = 0o777
_DIRECTORY_BITS = 0o3777


class Entry(NamedTuple):
    """One entry of a directory. `hash` is that of the content, or of the directory's tree."""

    type: int
    mode: int = 0
    size: int = 0
    hash: Hash | None = None
    target: bytes = b""  # of a symlink


IGNORED = "ignored"
"""The reason of a file that rules ignore, and that is noted all the same: nothing else has it."""


class NotCaptured(NamedTuple):
    """A path that is not in a snapshot, or not as it is now, and why."""

    path: bytes
    reason: str

    @property
    def is_ignored(self) -> bool:
        return self.reason == IGNORED


def kept_mode(mode: int) -> int:
    """The part of `st_mode` that a snapshot keeps."""
    if stat.S_ISLNK(mode):
        return 0
    return mode & (_DIRECTORY_BITS if stat.S_ISDIR(mode) else FILE_BITS)


def is_kept_mode(type: int, mode: int) -> bool:
    bits = {FILE: FILE_BITS, DIRECTORY: _DIRECTORY_BITS, SYMLINK: 0}[type]
    return not mode & ~bits


def joined(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def last_name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def above(path: bytes) -> Iterator[bytes]:
    """The directories that a path lies in, the nearest first; not the root."""
    while path := parent(path):
        yield path


def lies_in(path: bytes, directory: bytes) -> bool:
    """Whether a path is a directory or lies beneath it. The root is the empty path."""
    return not directory or path == directory or path.startswith(directory + b"/")
