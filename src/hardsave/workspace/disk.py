"""What lies at a path right now, compared with what a snapshot says.

A restore looks here before each step: nothing is replaced or removed that is not exactly
what was captured.
"""

import os
import stat

from hardsave.objects.hashing import Hash
from hardsave.workspace import content
from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry, kept_mode

_OTHER = 0


def look(name: bytes, directory: int) -> os.stat_result | None:
    """None if there is nothing of that name."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_entry(name: bytes, directory: int, entry: Entry | None) -> bool:
    """Whether a name is what an entry says: its kind, mode and content; None says: nothing.

    A directory is one whatever its mode: what is in it has entries of its own.
    """
    status = look(name, directory)
    if status is None or entry is None:
        return status is None and entry is None
    if _type(status) != entry.type:
        return False
    if entry.type == SYMLINK:
        return os.readlink(name, dir_fd=directory) == entry.target
    if entry.type == DIRECTORY:
        return True
    return (
        status.st_size == entry.size
        and kept_mode(status.st_mode) == entry.mode
        and content_of(name, directory, entry.size) == entry.hash
    )


def content_of(name: bytes, directory: int, size: int) -> Hash | None:
    """The address of a file's content; None if it is of another length after all."""
    file = os.open(
        name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
    )
    try:
        address, total = content.of_parts(content.parts(file), lambda _, __: None)
    finally:
        os.close(file)
    return address if total == size else None


def is_type(status: os.stat_result, type: int) -> bool:
    return _type(status) == type


def _type(status: os.stat_result) -> int:
    kinds = {stat.S_IFREG: FILE, stat.S_IFLNK: SYMLINK, stat.S_IFDIR: DIRECTORY}
    return kinds.get(stat.S_IFMT(status.st_mode), _OTHER)
