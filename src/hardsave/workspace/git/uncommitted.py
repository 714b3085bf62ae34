"""Which files git would call changed or new: what lies in the worktree against the index.

Git's filters are not run, so a file whose line ends git would convert counts as changed.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from hardsave.workspace.entries import last_name, parent
from hardsave.workspace.filesystem.bounded_read import chunks
from hardsave.workspace.filesystem.lock_safe_open import reading
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.git import index as git_index
from hardsave.workspace.git.index import BadIndex, IndexEntry
from hardsave.workspace.git.position import GitPosition

_CHUNK_BYTES = 128 * 1024
_STAGE = 0x30  # in the first byte of an entry's flags


def dirty(root: Path, position: GitPosition, captured: Iterable[bytes]) -> list[bytes]:
    """Paths relative to the repository's top `root`, sorted; `captured` are those that are there
    and not ignored."""
    entries = {entry.name: entry for entry in _entries(position)}
    new = {path for path in captured if path not in entries}
    with RootDirectory(os.fsencode(root)) as root_dir:
        changed = {name for name, entry in entries.items() if not _is_same(root_dir, entry)}
    return sorted(new | changed)


def _entries(position: GitPosition) -> Iterator[IndexEntry]:
    """Those of the index, and of what it is split from."""
    sources = [position.own_index]
    if position.shared_index is not None:
        sources.append(position.shared_index.data)
    seen: set[bytes] = set()
    for data in sources:
        if data is None:
            continue
        try:
            index = git_index.parse(data, hash_name=position.hash_name)
            found = git_index.entries(data, index, hash_name=position.hash_name)
        except BadIndex:
            return
        for entry in found:
            if entry.name and entry.name not in seen:
                seen.add(entry.name)
                yield entry


def _is_same(root_dir: RootDirectory, entry: IndexEntry) -> bool:
    if stat.S_IFMT(entry.mode) == 0o160000 or entry.name.endswith(b"/"):
        return True  # a submodule, or what a sparse checkout leaves out
    if entry.flags[0] & _STAGE:
        return False  # in conflict
    try:
        with root_dir.directory(parent(entry.name)) as directory:
            if stat.S_ISLNK(entry.mode):
                target = os.readlink(last_name(entry.name), dir_fd=directory)
                return _id([target], len(target), entry) == entry.id
            with reading(last_name(entry.name), directory) as file:
                return _is_same_file(file, entry)
    except OSError as error:
        return error.errno == errno.EXDEV  # what is mounted there does not count as changed


def _is_same_file(file: int, entry: IndexEntry) -> bool:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        return False
    if bool(status.st_mode & stat.S_IXUSR) != bool(entry.mode & stat.S_IXUSR):
        return False
    return _id(chunks(file, status.st_size, _CHUNK_BYTES), status.st_size, entry) == entry.id


def _id(parts: Iterable[bytes], size: int, entry: IndexEntry) -> str:
    """The id that git has for a content, by the hash that the entry's id is made with."""
    made = hashlib.sha256() if len(entry.id) == 64 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % size)
    for part in parts:
        made.update(part)
    return made.hexdigest()
