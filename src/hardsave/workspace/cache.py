"""What the last scan saw, so that the next one reads only what has changed.

A cache is a guess that is checked: it never decides alone that a file is as it was, it says
which stamps go with which content. To lose it costs time. In a file it is columnar, and a
directory is taken apart only when it is asked for; a file that is cut or damaged is no cache.
"""

import os
import struct
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hardsave.objects.hashing import HASH_BYTES, Hash, digest
from hardsave.workspace.changed import Mark
from hardsave.workspace.entries import NotCaptured

_MAGIC = b"HSSC\x02"
_HEAD = struct.Struct("<5s20sQQ")  # magic, root, how many directories, bytes of the index

KEY_BYTES = 5 * 8
"""A file's stamp: size, mtime_ns, ctime_ns, inode and mode, 64 bits each."""

NO_STAMP = bytes(24)
"""The stamp of a directory that has to be listed again, whatever its stamp will be."""


_NO_ROOT = bytes(HASH_BYTES)
_TREE_AT = 7 * 4 + 24  # in a packed directory: after the lengths and the stamp


class Folder(NamedTuple):
    """A directory as it was seen: the names in it, their stamps, and what they held."""

    stamp: bytes  # mtime_ns, ctime_ns and inode of the directory itself
    inherited: bytes  # the key of the rules that it was entered with
    key: bytes  # the key of its own rules
    tree: Hash
    files: tuple[bytes, ...] = ()  # and symlinks; sorted
    directories: tuple[bytes, ...] = ()  # sorted
    ignored: tuple[bytes, ...] = ()  # left out by rules
    exempt: tuple[bytes, ...] = ()  # captured only because git tracks them
    left_out: tuple[bytes, ...] = ()  # for another reason
    keys: bytes = b""  # stamps of the files, then modes of the directories
    hashes: bytes = b""  # contents of the files; zeros for a symlink
    runs: bytes = b""  # addresses of the runs that its tree consists of

    def file_key(self, at: int) -> bytes:
        return self.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]

    def file_hash(self, at: int) -> Hash:
        return self.hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES]

    def directory_modes(self) -> list[int]:
        return list(array("Q", self.keys[len(self.files) * KEY_BYTES :]))

    def run_addresses(self) -> list[Hash]:
        return [self.runs[at : at + HASH_BYTES] for at in range(0, len(self.runs), HASH_BYTES)]


class Linked(NamedTuple):
    """A file that has further names, here or elsewhere."""

    name: bytes
    inode: tuple[int, int]  # device and inode
    is_captured: bool = True  # else it is left out, too large perhaps: it may shrink


class Memory(NamedTuple):
    """What a scan has to know of directories that it need not look at, because they are
    watched. It belongs to one watch in one process, and is not written to a file."""

    mark: Mark
    tracked: frozenset[bytes]
    total_bytes: int
    not_captured: Mapping[bytes, tuple[NotCaptured, ...]]  # by directory
    linked: Mapping[bytes, tuple[Linked, ...]]  # by directory
    unproven: frozenset[bytes]  # directories to be looked at again, whatever the watch says


class Cache(NamedTuple):
    """Directories by path, as bytes until they are asked for."""

    folders: Mapping[bytes, Folder]
    packed: Mapping[bytes, bytes]
    root: Hash = _NO_ROOT  # of the snapshot that it goes with
    memory: Memory | None = None

    def get(self, path: bytes) -> Folder | None:
        folder = self.folders.get(path)
        if folder is not None:
            return folder
        packed = self.packed.get(path)
        return None if packed is None else _unpack(packed)

    def tree(self, path: bytes) -> Hash | None:
        """The tree of a directory, without taking the rest apart."""
        folder = self.folders.get(path)
        if folder is not None:
            return folder.tree
        packed = self.packed.get(path)
        return None if packed is None else packed[_TREE_AT : _TREE_AT + HASH_BYTES]

    def holding(self, inode: int) -> list[bytes]:
        """Directories in which a file may have this inode. Some do not have it."""
        needle = struct.pack("=Q", inode)
        found = [path for path, each in self.folders.items() if needle in each.keys]
        return found + [path for path, data in self.packed.items() if needle in data]


EMPTY = Cache({}, {})


def dump(cache: Cache) -> bytes:
    """The cache as the bytes of a file."""
    bodies = {**cache.packed, **{path: _pack(each) for path, each in cache.folders.items()}}
    lengths = struct.pack(f"<{len(bodies)}I", *[len(body) for body in bodies.values()])
    paths = b"\0".join(bodies)
    index = struct.pack("<Q", len(paths)) + paths + lengths
    data = b"".join(
        [_HEAD.pack(_MAGIC, cache.root, len(bodies), len(index)), index, *bodies.values()]
    )
    return data + digest(data)


def load(data: bytes) -> Cache:
    """The cache in these bytes; an empty one if they are not a sound cache."""
    body, sum = data[:-HASH_BYTES], data[-HASH_BYTES:]
    if len(body) < _HEAD.size or not body.startswith(_MAGIC) or digest(body) != sum:
        return EMPTY
    _, root, count, index_bytes = _HEAD.unpack_from(body)
    (paths_bytes,) = struct.unpack_from("<Q", body, _HEAD.size)
    at = _HEAD.size + 8
    paths = body[at : at + paths_bytes].split(b"\0") if count else []
    lengths = struct.unpack_from(f"<{count}I", body, at + paths_bytes)
    packed: dict[bytes, bytes] = {}
    at = _HEAD.size + index_bytes
    for path, length in zip(paths, lengths, strict=True):
        packed[path] = body[at : at + length]
        at += length
    return Cache({}, packed, root)


def read_file(path: Path) -> Cache:
    try:
        return load(path.read_bytes())
    except FileNotFoundError:
        return EMPTY


def write_file(path: Path, cache: Cache) -> None:
    """Not synced: after a power loss the sum says whether it is whole."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(dump(cache))
    os.replace(temporary, path)


def _pack(folder: Folder) -> bytes:
    columns = [
        folder.stamp,
        folder.tree,
        *[b"\0".join(each) for each in folder[4:9]],
        folder.inherited,
        folder.key,
        folder.keys,
        folder.hashes,
        folder.runs,
    ]
    return b"".join([struct.pack("<7I", *map(len, columns[2:9])), *columns])


def _unpack(packed: bytes) -> Folder:
    lengths = struct.unpack_from("<7I", packed)
    stamp, tree = packed[28:_TREE_AT], packed[_TREE_AT : _TREE_AT + HASH_BYTES]
    at = _TREE_AT + HASH_BYTES
    columns = []
    for length in lengths:
        columns.append(packed[at : at + length])
        at += length
    files, directories, ignored, exempt, left_out = [_names(each) for each in columns[:5]]
    keys_bytes = len(files) * KEY_BYTES + len(directories) * 8
    hashes_bytes = len(files) * HASH_BYTES
    return Folder(
        stamp,
        columns[5],
        columns[6],
        tree,
        files,
        directories,
        ignored,
        exempt,
        left_out,
        packed[at : at + keys_bytes],
        packed[at + keys_bytes : at + keys_bytes + hashes_bytes],
        packed[at + keys_bytes + hashes_bytes :],
    )


def _names(joined: bytes) -> tuple[bytes, ...]:
    return tuple(joined.split(b"\0")) if joined else ()
