"""What the last scan saw, so that the next one reads only what has changed.

A cache is a guess that is checked: it never decides alone that a file is as it was, it says
which stamps go with which content. To lose it costs time. In a file it is columnar, and a
directory is taken apart only when it is asked for; a file that is cut or damaged is no cache.
"""

import os
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hardsave.objects.codec import Codec
from hardsave.objects.hashing import HASH_BYTES, Hash, digest
from hardsave.objects.types import Types
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured, parent
from hardsave.workspace.scan.changed_paths import Mark

_MAGIC = b"HSSC\x05"
_HEAD = struct.Struct("<5s20sQQQ")  # magic, root, how many directories, bytes of index and memory
_CODEC = Codec(Types(), verbatim=True)

KEY_BYTES = 5 * 8
"""A file's stamp: size, mtime_ns, ctime_ns, inode and mode, 64 bits each."""

NO_STAMP = bytes(24)
"""The stamp of a directory that has to be listed again, whatever its stamp will be."""


NO_HASH = bytes(HASH_BYTES)
"""In the place of a content, for a symlink."""

_LENGTHS = struct.Struct("<7I")  # of names, and of keys of rules, in a packed directory
_TREE_AT = _LENGTHS.size + 24  # behind the stamp
_NAMES_AT = _TREE_AT + HASH_BYTES


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


class Glimpse(NamedTuple):
    """What of a directory can be compared with the disk."""

    stamp: bytes
    files: Sequence[bytes]
    directories: Sequence[bytes]
    left_out: Sequence[bytes]
    keys: bytes


class Linked(NamedTuple):
    """A file that has further names, here or elsewhere."""

    name: bytes
    inode: tuple[int, int]  # device and inode
    is_captured: bool = True  # else it is left out, too large perhaps: it may shrink


class Memory(NamedTuple):
    """What a scan has to know of directories that it need not look at more closely."""

    mark: Mark | None  # of the watch that it belongs to; in a file there is none
    tracked: Callable[[], frozenset[bytes]] | None  # by git; None: only their key is known
    tracked_key: bytes
    total_bytes: int
    not_captured: Mapping[bytes, tuple[NotCaptured, ...]]  # by directory
    linked: Mapping[bytes, tuple[Linked, ...]]  # by directory
    unproven: frozenset[bytes]  # directories to be looked at again, whatever their stamps are
    inner: Mapping[bytes, bytes]  # repositories inside, by path: keys of what they track


class Cache(NamedTuple):
    """Directories by path, as bytes until they are asked for."""

    folders: Mapping[bytes, Folder]
    packed: Mapping[bytes, bytes]
    root: Hash = NO_HASH  # of the snapshot that it goes with
    memory: Memory | None = None
    capture: tuple[Hash, ...] = ()  # that was committed with it, and what it refers to

    def get(self, path: bytes) -> Folder | None:
        folder = self.folders.get(path)
        if folder is not None:
            return folder
        packed = self.packed.get(path)
        return None if packed is None else _unpack(packed)

    def paths(self) -> Iterator[bytes]:
        yield from self.folders
        yield from self.packed

    def glimpse(self, path: bytes) -> "Glimpse":
        """As much of a directory as a glance compares, without taking the rest apart."""
        folder = self.folders.get(path)
        if folder is not None:
            return Glimpse(folder.stamp, *folder[4:6], folder.left_out, folder.keys)
        return _glimpse(self.packed[path])

    def tree(self, path: bytes) -> Hash | None:
        """The tree of a directory, without taking the rest apart."""
        folder = self.folders.get(path)
        if folder is not None:
            return folder.tree
        packed = self.packed.get(path)
        return None if packed is None else packed[_TREE_AT:_NAMES_AT]

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
    memory = b"" if cache.memory is None else _dump_memory(cache.memory, cache.capture)
    head = _HEAD.pack(_MAGIC, cache.root, len(bodies), len(index), len(memory))
    data = b"".join([head, index, memory, *bodies.values()])
    return data + digest(data)


def _dump_memory(memory: Memory, capture: tuple[Hash, ...]) -> bytes:
    """Without what belongs to one process."""
    left_out = [list(each) for some in memory.not_captured.values() for each in some]
    linked = [
        [path, each.name, *each.inode, each.is_captured]
        for path, some in memory.linked.items()
        for each in some
    ]
    about = [memory.tracked_key, memory.total_bytes, left_out, linked, [*memory.unproven]]
    return _CODEC.encode([b"".join(capture), *about, dict(memory.inner)])


def load(data: bytes) -> Cache:
    """The cache in these bytes; an empty one if they are not a sound cache."""
    body, sum = data[:-HASH_BYTES], data[-HASH_BYTES:]
    if len(body) < _HEAD.size or not body.startswith(_MAGIC) or digest(body) != sum:
        return EMPTY
    _, root, count, index_bytes, memory_bytes = _HEAD.unpack_from(body)
    (paths_bytes,) = struct.unpack_from("<Q", body, _HEAD.size)
    at = _HEAD.size + 8
    paths = body[at : at + paths_bytes].split(b"\0") if count else []
    lengths = struct.unpack_from(f"<{count}I", body, at + paths_bytes)
    packed: dict[bytes, bytes] = {}
    at = _HEAD.size + index_bytes
    memory, capture = _load_memory(body[at : at + memory_bytes]) if memory_bytes else (None, ())
    at += memory_bytes
    for path, length in zip(paths, lengths, strict=True):
        packed[path] = body[at : at + length]
        at += length
    return Cache({}, packed, root, memory, capture)


def _load_memory(data: bytes) -> tuple[Memory, tuple[Hash, ...]]:
    hashes, tracked_key, total_bytes, left_out, linked, unproven, inner = _CODEC.decode(data)
    capture = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    names: dict[bytes, list[Linked]] = {}
    for path, name, device, inode, is_captured in linked:
        names.setdefault(path, []).append(Linked(name, (device, inode), is_captured))
    memory = Memory(
        None,
        None,
        tracked_key,
        total_bytes,
        by_directory(NotCaptured(*each) for each in left_out),
        {path: tuple(some) for path, some in names.items()},
        frozenset(unproven),
        inner,
    )
    return memory, tuple(capture)


def by_directory(left_out: Iterable[NotCaptured]) -> dict[bytes, tuple[NotCaptured, ...]]:
    reasons: dict[bytes, tuple[NotCaptured, ...]] = {}
    for each in left_out:
        above = parent(each.path)
        reasons[above] = (*reasons.get(above, ()), each)
    return reasons


def is_news(now: Cache, before: Cache) -> bool:
    """Whether the next process would be spared something by `now`."""
    if (now.root, now.capture) != (before.root, before.capture):
        return True
    if len(now.folders) > len(before.folders):
        return True
    if now.memory is None or before.memory is None:
        return now.memory is not before.memory
    return now.memory[2:] != before.memory[2:]


def read_file(path: Path) -> Cache:
    try:
        return load(path.read_bytes())
    except FileNotFoundError:
        return EMPTY


def write_file(path: Path, cache: Cache) -> None:
    """Not synced: after a power loss the sum says whether it is whole."""
    # It ends as a cache does: what a process has left that was killed goes when caches have to.
    temporary = path.with_name(f"{path.name}.{os.getpid()}-cache")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(dump(cache))
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


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
    return b"".join([_LENGTHS.pack(*map(len, columns[2:9])), *columns])


def _unpack(packed: bytes) -> Folder:
    lengths = _LENGTHS.unpack_from(packed)
    stamp, tree = packed[_LENGTHS.size : _TREE_AT], packed[_TREE_AT:_NAMES_AT]
    at = _NAMES_AT
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


def _glimpse(packed: bytes) -> Glimpse:
    files, below, ignored, exempt, left_out, inherited, key = _LENGTHS.unpack_from(packed)
    end = _NAMES_AT + files
    listed = packed[_NAMES_AT:end].split(b"\0") if files else []
    directories = packed[end : end + below].split(b"\0") if below else []
    end += below + ignored + exempt + left_out
    omitted = packed[end - left_out : end].split(b"\0") if left_out else []
    end += inherited + key
    keys = packed[end : end + len(listed) * KEY_BYTES + len(directories) * 8]
    return Glimpse(packed[_LENGTHS.size : _TREE_AT], listed, directories, omitted, keys)


def _names(joined: bytes) -> tuple[bytes, ...]:
    return tuple(joined.split(b"\0")) if joined else ()
