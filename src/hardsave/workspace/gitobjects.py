"""Which objects a repository has: loose, in packs, and in those that it borrows from.

Only their names are looked for. A repository that fetches objects when they are needed (a
partial clone) may lack some by right; that is for the caller to know. One tree can be written:
a list of contents that must not be lost.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from hardsave.workspace.gitdir import GitDirectory
from hardsave.workspace.gitindex import HASH_BYTES
from hardsave.workspace.reading import open_beneath, open_directory, read_beneath

_ALTERNATES = 1024 * 1024
_MOST_DATABASES = 64
_FANOUT = struct.Struct(">256I")
_VERSION_2 = b"\xfftOc\0\0\0\2"
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def missing(directory: GitDirectory, ids: Iterable[str]) -> frozenset[str]:
    """Those of the objects that the repository does not have.

    The empty ones need not be there: git knows them by heart.
    """
    wanted = {*ids} - {object_id(kind, b"", directory.hash_name) for kind in ("blob", "tree")}
    with ExitStack() as stack:
        for objects in _databases(directory.common, stack):
            wanted = {id for id in wanted if not _is_loose(objects, id)}
            wanted -= _packed(objects, wanted, HASH_BYTES[directory.hash_name])
            if not wanted:
                break
    return frozenset(wanted)


def object_id(kind: str, content: bytes, hash_name: str) -> str:
    whole = _header(kind, content) + content
    return hashlib.new(hash_name, whole, usedforsecurity=False).hexdigest()


def loose(kind: str, content: bytes) -> bytes:
    """An object as the file that it is kept in."""
    return zlib.compress(_header(kind, content) + content, 1)


def tree_of(contents: Iterable[tuple[str, bool]]) -> bytes:
    """A tree that holds objects, each under its own id: so that none of them is collected.

    With each id comes whether it is a tree.
    """
    rows = [
        b"%b %b\0%b" % (b"40000" if is_tree else b"100644", id.encode(), bytes.fromhex(id))
        for id, is_tree in sorted({*contents})
    ]
    return b"".join(rows)


def _header(kind: str, content: bytes) -> bytes:
    return b"%b %d\0" % (kind.encode(), len(content))


# Where objects lie


def _databases(common: int, stack: ExitStack) -> Iterator[int]:
    """The repository's own objects, then those of the repositories that it borrows from."""
    todo = [(common, b"objects")]
    seen: set[tuple[int, int]] = set()
    while todo and len(seen) < _MOST_DATABASES:
        parent, path = todo.pop(0)
        try:
            # Its own is no link; what it borrows from is the user's path, which may lead over one.
            opened = (
                open_directory(path, parent=parent)
                if parent == common
                else os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
            )
        except OSError:
            continue  # then it has no objects, as git sees it
        stack.callback(os.close, opened)
        status = os.fstat(opened)
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        yield opened
        text = read_beneath(opened, b"info/alternates", limit=_ALTERNATES).data or b""
        lines = text.split(b"\n")
        todo += [(opened, line) for line in lines if line and line[:1] not in (b"#", b'"')]


def _is_loose(objects: int, id: str) -> bool:
    try:
        status = os.stat(f"{id[:2]}/{id[2:]}", dir_fd=objects, follow_symlinks=False)
    except OSError:
        return False
    return status.st_size > 0  # an empty one is what a power cut left


# Packs


def _packed(objects: int, ids: Collection[str], width: int) -> set[str]:
    found: set[str] = set()
    try:
        packs = open_beneath(objects, [b"pack"])
    except OSError:
        return found
    try:
        names = {*os.listdir(packs)}
        for name in sorted(name for name in names if name.endswith(".idx")):
            if name.removesuffix("idx") + "pack" in names and len(found) < len(ids):
                with suppress(OSError), _open_index(packs, name) as index:
                    found.update(_PackIndex(index, width).those_of(ids))
    finally:
        os.close(packs)
    return found


@contextmanager
def _open_index(packs: int, name: str) -> Iterator[int]:
    opened = os.open(name, _FLAGS, dir_fd=packs)
    try:
        yield opened
    finally:
        os.close(opened)


class _PackIndex:
    """The sorted ids of a pack, searched on the disk: there may be millions."""

    def __init__(self, file: int, width: int) -> None:
        self._file = file
        is_new = os.pread(file, len(_VERSION_2), 0) == _VERSION_2
        start = len(_VERSION_2) if is_new else 0
        counts = os.pread(file, _FANOUT.size, start)
        self._counts = _FANOUT.unpack(counts) if len(counts) == _FANOUT.size else (0,) * 256
        self._width = width
        self._stride = width if is_new else 4 + width
        self._first = start + _FANOUT.size + (self._stride - width)

    def those_of(self, ids: Iterable[str]) -> Iterator[str]:
        return (id for id in ids if self._has(bytes.fromhex(id)))

    def _has(self, id: bytes) -> bool:
        low = self._counts[id[0] - 1] if id[0] else 0
        high = self._counts[id[0]]
        while low < high:
            middle = (low + high) // 2
            there = os.pread(self._file, self._width, self._first + middle * self._stride)
            if there == id:
                return True
            low, high = (middle + 1, high) if there < id else (low, middle)
        return False
