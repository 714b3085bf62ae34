"""The objects of a repository: loose, in packs, and in the repositories that it borrows from.

A repository that fetches objects when they are needed (a partial clone) may lack some by
right; that is for the caller to know. One kind is made here: a tree that lists contents which
must not be lost.
"""

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing

from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.bounded_read import open_beneath, open_directory, read_beneath
from hardsave.workspace.git.git_directory import GitDirectory
from hardsave.workspace.git.index import HASH_BYTES
from hardsave.workspace.git.packs import LARGEST, Object, Pack, Unreadable, inflate

_ALTERNATES = 1024 * 1024
_MOST_DATABASES = 64
_MOST_PACKS = 500  # each is an open file
_HEADER = 64
_DEEPEST = 50


class Objects:
    """All objects of an open repository."""

    def __init__(self, directory: GitDirectory) -> None:
        self._stack = ExitStack()
        self._hash_name = directory.hash_name
        empty = [Object("blob", b""), Object("tree", b"")]
        self._known = {object_id(each, directory.hash_name): each for each in empty}
        try:
            self._databases = list(_databases(directory.common, self._stack))
            self._packs = list(self._all_packs())
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> "Objects":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def missing(self, ids: Iterable[str]) -> frozenset[str]:
        """Those that are not there, but for the empty ones, which can be made from nothing.

        With more packs than can be open, that is unknown, and none is called missing.
        """
        if len(self._packs) >= _MOST_PACKS:
            return frozenset()
        return frozenset(id for id in ids if id not in self._known and not self._has(id))

    def missing_empty(self, ids: Iterable[str]) -> list[Object]:
        """Those of the empty ones that are not there. Git does without the tree alone."""
        return [self._known[id] for id in {*ids} & self._known.keys() if not self._has(id)]

    def read(self, id: str) -> Object:
        """An object; `Unreadable` if it is not there, damaged or too large."""
        found = self._read(id, _DEEPEST)
        if object_id(found, self._hash_name) != id:
            raise Unreadable(f"object {id} is damaged")
        return found

    def _read(self, id: str, depth: int) -> Object:
        if not depth:
            raise Unreadable("objects are described by each other")
        for database in self._databases:
            path = f"{id[:2]}/{id[2:]}".encode()
            data = read_beneath(database, path, limit=LARGEST).data
            if data:
                return _loose(data)
        for pack in self._packs:
            place = pack.find(bytes.fromhex(id))
            if place is not None:
                return pack.read(place, lambda base: self._read(base, depth - 1))
        raise Unreadable(f"there is no object {id}")

    def _has(self, id: str) -> bool:
        return any(_is_loose(each, id) for each in self._databases) or any(
            pack.find(bytes.fromhex(id)) is not None for pack in self._packs
        )

    def _all_packs(self) -> Iterator[Pack]:
        left = _MOST_PACKS
        for database in self._databases:
            try:
                folder = open_beneath(database, [b"pack"])
            except OSError:
                continue
            self._stack.callback(os.close, folder)
            names = {*os.listdir(folder)}
            for name in sorted(name.removesuffix(".idx") for name in names if ".idx" in name):
                if {name + ".idx", name + ".pack"} <= names and left:
                    left -= 1
                    yield self._stack.enter_context(
                        closing(Pack(folder, name, HASH_BYTES[self._hash_name]))
                    )


def missing(directory: GitDirectory, ids: Iterable[str]) -> frozenset[str]:
    """Those of the objects that the repository does not have."""
    wanted = {*ids}
    if not wanted:
        return frozenset()
    with Objects(directory) as objects:
        return objects.missing(wanted)


def missing_empty(directory: GitDirectory, ids: Iterable[str]) -> list[Object]:
    """Those of the objects that are empty, and that the repository does not have."""
    with Objects(directory) as objects:
        return objects.missing_empty(ids)


# Where objects lie


class _Place(NamedTuple):
    parent: int
    path: bytes
    is_borrowed: bool

    def open(self) -> int:
        """Its own is no link; what it borrows from is the user's path, which may lead over one."""
        if self.is_borrowed:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            return os.open(self.path, flags, dir_fd=self.parent)
        return open_directory(self.path, parent=self.parent)


def _databases(common: int, stack: ExitStack) -> Iterator[int]:
    todo = [_Place(common, b"objects", is_borrowed=False)]
    seen: set[tuple[int, int]] = set()
    while todo and len(seen) < _MOST_DATABASES:
        try:
            opened = todo.pop(0).open()
        except OSError:
            continue  # then it has no objects, as git sees it
        stack.callback(os.close, opened)
        status = os.fstat(opened)
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        yield opened
        lines = (read_beneath(opened, b"info/alternates", limit=_ALTERNATES).data or b"").split(
            b"\n"
        )
        plain = [line for line in lines if line and line[:1] not in (b"#", b'"')]
        todo += [_Place(opened, line, is_borrowed=True) for line in plain]


def _is_loose(database: int, id: str) -> bool:
    try:
        status = os.stat(f"{id[:2]}/{id[2:]}", dir_fd=database, follow_symlinks=False)
    except OSError:
        return False
    return status.st_size > 0  # an empty one is what a power cut left


# Objects as bytes


def _loose(data: bytes) -> Object:
    try:
        head = zlib.decompressobj().decompress(data, _HEADER)
        words, end, _ = head.partition(b"\0")
        kind, size = words.decode("ascii").split(" ")
        length = len(words) + 1 + int(size)
    except (zlib.error, ValueError) as error:
        raise Unreadable("it is no object") from error
    if not end or length > LARGEST:
        raise Unreadable("it is no object, or too large")
    return Object(kind, inflate(data, length)[len(words) + 1 :])


def object_id(given: Object, hash_name: str) -> str:
    return hashlib.new(hash_name, _whole(given), usedforsecurity=False).hexdigest()


def as_file(given: Object) -> bytes:
    """An object as the file that it is kept in."""
    return zlib.compress(_whole(given), 1)


def _whole(given: Object) -> bytes:
    return b"%b %d\0%b" % (given.kind.encode(), len(given.data), given.data)


def tree_of(contents: Iterable[tuple[str, bool]]) -> Object:
    """A tree that holds objects, each under its own id: so that none of them is collected.

    With each id comes whether it is a tree.
    """
    rows = [
        b"%b %b\0%b" % (b"40000" if is_tree else b"100644", id.encode(), bytes.fromhex(id))
        for id, is_tree in sorted({*contents})
    ]
    return Object("tree", b"".join(rows))
