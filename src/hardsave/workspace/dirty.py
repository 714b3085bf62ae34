"""Which files git would call changed or new: what lies in the worktree against the index.

Git's filters are not run, so a file whose line ends git would convert counts as changed.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from hardsave.workspace import gitindex
from hardsave.workspace.git import GitPosition
from hardsave.workspace.gitindex import BadIndex, IndexEntry

_STAGE = 0x30  # in the first byte of an entry's flags


def dirty(root: Path, position: GitPosition, captured: Iterable[bytes]) -> list[bytes]:
    """Paths relative to the repository's top `root`, sorted; `captured` are those that are there
    and not ignored."""
    entries = {entry.name: entry for entry in _entries(position)}
    new = {path for path in captured if path not in entries}
    top = os.fsencode(root)
    changed = {name for name, entry in entries.items() if not _is_same(top, entry)}
    return sorted(new | changed)


def _entries(position: GitPosition) -> Iterator[IndexEntry]:
    """Those of the index, and of what it is split from."""
    sources = [position.index]
    if position.shared_index is not None:
        sources.append(position.shared_index.data)
    seen: set[bytes] = set()
    for data in sources:
        if data is None:
            continue
        try:
            index = gitindex.parse(data, hash_name=position.hash_name)
            found = gitindex.entries(data, index, hash_name=position.hash_name)
        except BadIndex:
            return
        for entry in found:
            if entry.name and entry.name not in seen:
                seen.add(entry.name)
                yield entry


def _is_same(top: bytes, entry: IndexEntry) -> bool:
    if stat.S_IFMT(entry.mode) == 0o160000 or entry.name.endswith(b"/"):
        return True  # a submodule, or what a sparse checkout leaves out
    if entry.flags[0] & _STAGE:
        return False  # in conflict
    path = os.path.join(top, entry.name)
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode) != stat.S_ISLNK(entry.mode):
            return False
        if stat.S_ISLNK(status.st_mode):
            return _name(os.readlink(path), entry) == entry.id
        if bool(status.st_mode & stat.S_IXUSR) != bool(entry.mode & stat.S_IXUSR):
            return False
        with open(path, "rb") as file:
            return _name(file.read(), entry) == entry.id
    except OSError:
        return False


def _name(data: bytes, entry: IndexEntry) -> str:
    made = hashlib.sha256() if len(entry.id) == 64 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(data))
    made.update(data)
    return made.hexdigest()
