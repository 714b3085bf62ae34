"""What lies at a path right now, compared with what a snapshot says.

A restore looks here before each step: nothing is replaced or removed that is not exactly
what was captured.
"""

import os
import stat

from hardsave.objects.hashing import Hash
from hardsave.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry, kept_mode, last_name, parent
from hardsave.workspace.filesystem.lock_safe_open import reading
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.snapshot import content

_OTHER = 0


def look(name: bytes, directory: int) -> os.stat_result | None:
    """The status of a name; None if there is nothing of that name."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_entry(name: bytes, directory: int, entry: Entry | None) -> bool:
    """Whether a name is what an entry says: its kind, mode and content; None says: nothing.

    The mode of a directory does not count, and what is in it has entries of its own.
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
        and _content_of(name, directory, entry.size) == entry.hash
        and _stamps(look(name, directory)) == _stamps(status)
    )


def resembles(name: bytes, directory: int, entry: Entry | None) -> bool:
    """The same without reading the content of a file."""
    status = look(name, directory)
    if status is None or entry is None or entry.type != FILE:
        return is_entry(name, directory, entry)
    found = _type(status), status.st_size, kept_mode(status.st_mode)
    return found == (FILE, entry.size, entry.mode)


def is_at(root_dir: RootDirectory, path: bytes, entry: Entry) -> bool:
    """Whether a path is what an entry says. One that cannot be reached or read is not."""
    try:
        with root_dir.directory(parent(path)) as directory:
            return is_entry(last_name(path), directory, entry)
    except OSError:
        return False


def is_taken(root_dir: RootDirectory, path: bytes) -> bool:
    """Whether anything lies at a path. Nothing is beneath what is no directory."""
    try:
        with root_dir.directory(parent(path)) as directory:
            return look(last_name(path), directory) is not None
    except OSError:
        return False


def names(root_dir: RootDirectory, path: bytes) -> list[bytes]:
    """What is in a directory; nothing if it cannot be looked into."""
    try:
        with root_dir.directory(path) as directory:
            return [os.fsencode(name) for name in os.listdir(directory)]
    except OSError:
        return []


def _stamps(status: os.stat_result | None) -> tuple[int, ...] | None:
    """They change with the file: while a large one is read, another program may write where it was
    read already."""
    if status is None:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _content_of(name: bytes, directory: int, size: int) -> Hash:
    """The address of a file's content, which has so many bytes."""
    with reading(name, directory) as file:
        address, _ = content.of_parts(content.parts(file, size), lambda _, __: None)
    return address


def is_type(status: os.stat_result, type: int) -> bool:
    return _type(status) == type


def _type(status: os.stat_result) -> int:
    kinds = {stat.S_IFREG: FILE, stat.S_IFLNK: SYMLINK, stat.S_IFDIR: DIRECTORY}
    return kinds.get(stat.S_IFMT(status.st_mode), _OTHER)
