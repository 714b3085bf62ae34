"""What the last scan saw, so that the next one reads only what has changed.

A cache is a guess that is checked: it says which stamps go with which content, and the stamps on
the disk decide. To lose it costs time. Its file is columnar, and a directory is unpacked only when
it is asked for; a file that is cut or damaged counts as an empty cache.
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
_HEAD = struct.Struct(
    "<5s20sQQQ"
)  # magic, root, how many directories, bytes of the index and of the last scan
_CODEC = Codec(Types(), verbatim=True)

STAMP_BYTES = 5 * 8
"""A file's stamp: size, mtime_ns, ctime_ns, inode and mode, 64 bits each."""

NO_STAMP = bytes(24)
"""In the place of a directory's stamp: it has to be listed again in any case."""


NO_HASH = bytes(HASH_BYTES)
"""In the place of a content, for a symlink."""

_LENGTHS = struct.Struct("<7I")  # of names, and of keys of rules, in a packed directory
_TREE_AT = _LENGTHS.size + 24  # behind the stamp
_NAMES_AT = _TREE_AT + HASH_BYTES


class CachedDirectory(NamedTuple):
    """A directory as it was seen: the names in it, their stamps, and what they held."""

    stamp: bytes  # mtime_ns, ctime_ns and inode of the directory itself
    inherited: bytes  # the key of the rules that it was entered with
    rules_key: bytes  # of its own rules
    tree: Hash
    files: tuple[bytes, ...] = ()  # and symlinks; sorted
    directories: tuple[bytes, ...] = ()  # sorted
    ignored: tuple[bytes, ...] = ()  # left out by rules
    exempt: tuple[bytes, ...] = ()  # captured only because git tracks them
    left_out: tuple[bytes, ...] = ()  # for another reason
    entry_stamps: bytes = b""  # stamps of the files, then modes of the directories
    hashes: bytes = b""  # contents of the files; zeros for a symlink
    runs: bytes = b""  # addresses of the runs that its tree consists of

    def file_stamp(self, at: int) -> bytes:
        return self.entry_stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES]

    def file_hash(self, at: int) -> Hash:
        return self.hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES]

    def directory_modes(self) -> list[int]:
        return list(array("Q", self.entry_stamps[len(self.files) * STAMP_BYTES :]))

    def run_addresses(self) -> list[Hash]:
        return [self.runs[at : at + HASH_BYTES] for at in range(0, len(self.runs), HASH_BYTES)]


class CachedStats(NamedTuple):
    """The part of a cached directory that is compared with the disk."""

    stamp: bytes
    files: Sequence[bytes]
    directories: Sequence[bytes]
    left_out: Sequence[bytes]
    entry_stamps: bytes


class Linked(NamedTuple):
    """A file that has several names (hard links), here or elsewhere."""

    name: bytes
    inode: tuple[int, int]  # device and inode
    is_captured: bool = True  # else it is left out, too large perhaps: it may shrink


class LastScan(NamedTuple):
    """What the last scan found out about the workspace as a whole, for an incremental walk."""

    mark: Mark | None  # of the watch that asked for it; none if it was read from a file
    tracked: Callable[[], frozenset[bytes]] | None  # by git; None: only their key is known
    tracked_key: bytes
    total_bytes: int
    not_captured: Mapping[bytes, tuple[NotCaptured, ...]]  # by directory
    linked: Mapping[bytes, tuple[Linked, ...]]  # by directory
    unproven: frozenset[bytes]  # directories to be looked at again in any case
    nested: Mapping[bytes, bytes]  # repositories inside, by path: keys of what they track


class Cache(NamedTuple):
    """Directories by path, as bytes until they are asked for."""

    folders: Mapping[bytes, CachedDirectory]
    packed: Mapping[bytes, bytes]
    root: Hash = NO_HASH  # of the snapshot that it goes with
    last_scan: LastScan | None = None
    capture: tuple[Hash, ...] = ()  # that was committed with it, and what it refers to

    def get(self, path: bytes) -> CachedDirectory | None:
        folder = self.folders.get(path)
        if folder is not None:
            return folder
        packed = self.packed.get(path)
        return None if packed is None else _unpack(packed)

    def paths(self) -> Iterator[bytes]:
        yield from self.folders
        yield from self.packed

    def stats(self, path: bytes) -> "CachedStats":
        """The part that a stat check compares; the rest is not unpacked."""
        folder = self.folders.get(path)
        if folder is not None:
            return CachedStats(folder.stamp, *folder[4:6], folder.left_out, folder.entry_stamps)
        return _stats(self.packed[path])

    def tree(self, path: bytes) -> Hash | None:
        """The tree of a directory; the rest is not unpacked."""
        folder = self.folders.get(path)
        if folder is not None:
            return folder.tree
        packed = self.packed.get(path)
        return None if packed is None else packed[_TREE_AT:_NAMES_AT]

    def holding(self, inode: int) -> list[bytes]:
        """Directories in which a file may have this inode. Some do not have it."""
        needle = struct.pack("=Q", inode)
        found = [path for path, each in self.folders.items() if needle in each.entry_stamps]
        return found + [path for path, data in self.packed.items() if needle in data]


EMPTY = Cache({}, {})


def dump(cache: Cache) -> bytes:
    """The cache as the bytes of a file."""
    bodies = {**cache.packed, **{path: _pack(each) for path, each in cache.folders.items()}}
    lengths = struct.pack(f"<{len(bodies)}I", *[len(body) for body in bodies.values()])
    paths = b"\0".join(bodies)
    index = struct.pack("<Q", len(paths)) + paths + lengths
    last_scan = b"" if cache.last_scan is None else _dump_last_scan(cache.last_scan, cache.capture)
    head = _HEAD.pack(_MAGIC, cache.root, len(bodies), len(index), len(last_scan))
    data = b"".join([head, index, last_scan, *bodies.values()])
    return data + digest(data)


def _dump_last_scan(last_scan: LastScan, capture: tuple[Hash, ...]) -> bytes:
    """Without the mark and the callback, which belong to one process."""
    left_out = [list(each) for some in last_scan.not_captured.values() for each in some]
    linked = [
        [path, each.name, *each.inode, each.is_captured]
        for path, some in last_scan.linked.items()
        for each in some
    ]
    about = [last_scan.tracked_key, last_scan.total_bytes, left_out, linked, [*last_scan.unproven]]
    return _CODEC.encode([b"".join(capture), *about, dict(last_scan.nested)])


def load(data: bytes) -> Cache:
    """The cache in these bytes; an empty one if they are not a sound cache."""
    body, sum = data[:-HASH_BYTES], data[-HASH_BYTES:]
    if len(body) < _HEAD.size or not body.startswith(_MAGIC) or digest(body) != sum:
        return EMPTY
    _, root, count, index_bytes, last_scan_bytes = _HEAD.unpack_from(body)
    (paths_bytes,) = struct.unpack_from("<Q", body, _HEAD.size)
    at = _HEAD.size + 8
    paths = body[at : at + paths_bytes].split(b"\0") if count else []
    lengths = struct.unpack_from(f"<{count}I", body, at + paths_bytes)
    packed: dict[bytes, bytes] = {}
    at = _HEAD.size + index_bytes
    last_scan, capture = (
        _load_last_scan(body[at : at + last_scan_bytes]) if last_scan_bytes else (None, ())
    )
    at += last_scan_bytes
    for path, length in zip(paths, lengths, strict=True):
        packed[path] = body[at : at + length]
        at += length
    return Cache({}, packed, root, last_scan, capture)


def _load_last_scan(data: bytes) -> tuple[LastScan, tuple[Hash, ...]]:
    hashes, tracked_key, total_bytes, left_out, linked, unproven, nested = _CODEC.decode(data)
    capture = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    names: dict[bytes, list[Linked]] = {}
    for path, name, device, inode, is_captured in linked:
        names.setdefault(path, []).append(Linked(name, (device, inode), is_captured))
    last_scan = LastScan(
        None,
        None,
        tracked_key,
        total_bytes,
        by_directory(NotCaptured(*each) for each in left_out),
        {path: tuple(some) for path, some in names.items()},
        frozenset(unproven),
        nested,
    )
    return last_scan, tuple(capture)


def by_directory(left_out: Iterable[NotCaptured]) -> dict[bytes, tuple[NotCaptured, ...]]:
    reasons: dict[bytes, tuple[NotCaptured, ...]] = {}
    for each in left_out:
        above = parent(each.path)
        reasons[above] = (*reasons.get(above, ()), each)
    return reasons


def is_worth_writing(now: Cache, before: Cache) -> bool:
    """Whether `now` would save the next process work that `before` does not."""
    if (now.root, now.capture) != (before.root, before.capture):
        return True
    if len(now.folders) > len(before.folders):
        return True
    if now.last_scan is None or before.last_scan is None:
        return now.last_scan is not before.last_scan
    return now.last_scan[2:] != before.last_scan[2:]


def read_file(path: Path) -> Cache:
    try:
        return load(path.read_bytes())
    except FileNotFoundError:
        return EMPTY


def write_file(path: Path, cache: Cache) -> None:
    """Not synced: after a power loss its checksum shows whether it is whole."""
    # Named as caches are, so that the file of a process that was killed is removed with them.
    temporary = path.with_name(f"{path.name}.{os.getpid()}-cache")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(dump(cache))
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _pack(folder: CachedDirectory) -> bytes:
    columns = [
        folder.stamp,
        folder.tree,
        *[b"\0".join(each) for each in folder[4:9]],
        folder.inherited,
        folder.rules_key,
        folder.entry_stamps,
        folder.hashes,
        folder.runs,
    ]
    return b"".join([_LENGTHS.pack(*map(len, columns[2:9])), *columns])


def _unpack(packed: bytes) -> CachedDirectory:
    lengths = _LENGTHS.unpack_from(packed)
    stamp, tree = packed[_LENGTHS.size : _TREE_AT], packed[_TREE_AT:_NAMES_AT]
    at = _NAMES_AT
    columns = []
    for length in lengths:
        columns.append(packed[at : at + length])
        at += length
    files, directories, ignored, exempt, left_out = [_names(each) for each in columns[:5]]
    stamps_bytes = len(files) * STAMP_BYTES + len(directories) * 8
    hashes_bytes = len(files) * HASH_BYTES
    return CachedDirectory(
        stamp,
        columns[5],
        columns[6],
        tree,
        files,
        directories,
        ignored,
        exempt,
        left_out,
        packed[at : at + stamps_bytes],
        packed[at + stamps_bytes : at + stamps_bytes + hashes_bytes],
        packed[at + stamps_bytes + hashes_bytes :],
    )


def _stats(packed: bytes) -> CachedStats:
    files, below, ignored, exempt, left_out, inherited, rules_key = _LENGTHS.unpack_from(packed)
    end = _NAMES_AT + files
    listed = packed[_NAMES_AT:end].split(b"\0") if files else []
    directories = packed[end : end + below].split(b"\0") if below else []
    end += below + ignored + exempt + left_out
    omitted = packed[end - left_out : end].split(b"\0") if left_out else []
    end += inherited + rules_key
    stamps = packed[end : end + len(listed) * STAMP_BYTES + len(directories) * 8]
    return CachedStats(packed[_LENGTHS.size : _TREE_AT], listed, directories, omitted, stamps)


def _names(joined: bytes) -> tuple[bytes, ...]:
    return tuple(joined.split(b"\0")) if joined else ()
