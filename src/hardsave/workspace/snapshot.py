"""From a scan to objects: files that changed are read, directories above them are written.

Objects are handed out in batches of bounded size, none before those it refers to, so a first
snapshot of a large workspace needs little memory and no long transaction. Each file is
consistent in itself: one that changes while it is read is read again, and one that does not
hold still is listed, with what it last held if that is known.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hardsave.objects.hashing import HASH_BYTES, Hash
from hardsave.workspace import content, directory, names, policy
from hardsave.workspace.beneath import Beneath
from hardsave.workspace.cache import NO_STAMP, Cache, Folder, Memory
from hardsave.workspace.entries import (
    DIRECTORY,
    FILE,
    SYMLINK,
    Entry,
    NotCaptured,
    joined,
    kept_mode,
    parent,
)
from hardsave.workspace.found import Found, Key, Scan, bytes_of, taken_apart, words

BATCH_BYTES = 4 << 20
_ATTEMPTS = 4
_NO_HASH = bytes(HASH_BYTES)

Put = Callable[[Mapping[Hash, bytes]], object]


class Snapshot(NamedTuple):
    """A captured workspace."""

    root: Hash
    not_captured: tuple[NotCaptured, ...]
    requires: frozenset[Hash]  # objects that must be stored already
    cache: Cache  # for the next scan
    read: int  # files whose content was read


def snapshot(
    scan: Scan,
    put: Put,
    *,
    batch_bytes: int = BATCH_BYTES,
    clock: Callable[[], int] = time.time_ns,
) -> Snapshot:
    """Read what changed; `put` gets every new object, in batches."""
    with Beneath(scan.root) as beneath:
        return _Capture(scan, beneath, _Batches(put, batch_bytes), clock).run()


class _Batches:
    """Gathers objects, and remembers which were made here."""

    def __init__(self, put: Put, limit: int) -> None:
        self._put = put
        self._limit = limit
        self._batch: dict[Hash, bytes] = {}
        self._bytes = 0
        self.made: set[Hash] = set()

    def add(self, address: Hash, data: bytes) -> None:
        if address in self.made:
            return
        self.made.add(address)
        self._batch[address] = data
        self._bytes += len(data)
        if self._bytes >= self._limit:
            self.flush()

    def flush(self) -> None:
        if self._batch:
            self._put(self._batch)
            self._batch = {}
            self._bytes = 0


class _Read(NamedTuple):
    """A file as it was read: what its entry says, and the stamp that goes with it."""

    entry: Entry
    key: Key


class _Capture:
    def __init__(
        self, scan: Scan, beneath: Beneath, batches: _Batches, clock: Callable[[], int]
    ) -> None:
        self._scan = scan
        self._beneath = beneath
        self._batches = batches
        self._clock = clock
        self._trees: dict[bytes, Hash] = {}
        self._rebuilt: set[bytes] = set()  # directories with another tree than last time
        self._folders: dict[bytes, Folder] = {}
        self._packed: dict[bytes, bytes] = {}
        self._unproven: set[bytes] = set()  # directories to look at again in any case
        self._gone: set[bytes] = set()  # files that are not captured after all
        self._requires: set[Hash] = set()
        self._not_captured = list(scan.not_captured)
        self._total = scan.total_bytes
        self._files_read = 0

    def run(self) -> Snapshot:
        for found in reversed(self._scan.found):  # directories before their parents
            self._directory(found)
        links = tuple(tuple(group) for group in self._links())
        tree = self._tree(b"")
        assert tree is not None, "a root that cannot be listed is an error of the scan"
        top = directory.Snapshot(tree, links)
        root = directory.write_snapshot(top, self._add_root)
        self._batches.flush()
        self._requires |= {root, top.top}
        return Snapshot(
            root,
            tuple(sorted(self._not_captured)),
            frozenset(self._requires - self._batches.made),
            self._cache(root),
            self._files_read,
        )

    def _tree(self, path: bytes) -> Hash | None:
        """Of a directory: None if it is not captured."""
        tree = self._trees.get(path)
        if tree is None and self._scan.is_narrow and path not in self._scan.gone:
            return self._scan.cache.tree(path)
        return tree

    def _cache(self, root: Hash) -> Cache:
        folders: Mapping[bytes, Folder] = self._folders
        packed: Mapping[bytes, bytes] = self._packed
        if self._scan.is_narrow:
            folders, packed = self._with_what_was_kept()
        return Cache(folders, packed, root, self._memory())

    def _with_what_was_kept(self) -> tuple[Mapping[bytes, Folder], Mapping[bytes, bytes]]:
        before, gone = self._scan.cache, self._scan.gone
        if not gone and not self._folders:
            return before.folders, before.packed
        folders = {**before.folders, **self._folders}
        packed = before.packed
        if packed:
            packed = {path: each for path, each in packed.items() if path not in self._folders}
        if gone:
            folders = {path: each for path, each in folders.items() if path not in gone}
            packed = {path: each for path, each in packed.items() if path not in gone}
        return folders, packed

    def _memory(self) -> Memory | None:
        """What the next scan has to know of directories that it does not look at."""
        scan = self._scan
        if scan.mark is None:
            return None
        reasons: dict[bytes, tuple[NotCaptured, ...]] = {}
        for each in scan.not_captured:
            above = parent(each.path)
            reasons[above] = (*reasons.get(above, ()), each)
        unproven = frozenset(self._unproven)
        return Memory(scan.mark, scan.tracked, self._total, reasons, scan.linked, unproven)

    def _add_root(self, address: Hash, data: bytes) -> None:
        """If nothing changed, nothing is handed out."""
        if address != self._scan.cache.root:
            self._batches.add(address, data)

    def _links(self) -> list[list[bytes]]:
        groups = [[path for path in each if path not in self._gone] for each in self._scan.links]
        return [group for group in groups if len(group) > 1]

    def _directory(self, found: Found) -> None:
        below = {name: joined(found.path, name) for name in found.directories}
        known = found.known
        is_same = found.is_as_known and not any(
            path in self._rebuilt or self._tree(path) is None for path in below.values()
        )
        if is_same and known is not None:
            self._trees[found.path] = known.tree
            self._keep(found, known)
            return
        self._write(found, [name for name, path in below.items() if self._tree(path) is not None])

    def _keep(self, found: Found, known: Folder) -> None:
        """What the cache has as bytes stays bytes, unless the way to it was another one."""
        path = found.path
        folder = _as_found(known, found)
        packed = self._scan.cache.packed.get(path)
        if folder.stamp == NO_STAMP:
            self._unproven.add(path)
        if packed is None or path in self._scan.cache.folders or folder is not known:
            self._folders[path] = folder
        else:
            self._packed[path] = packed

    def _write(self, found: Found, below: list[bytes]) -> None:
        """Make the tree of a directory in which something changed."""
        files = self._files(found)
        modes = dict(zip(found.directories, found.directory_modes(), strict=True))
        entries = [(name, read.entry) for name, read in files.items()]
        for name in below:
            tree = self._tree(joined(found.path, name))
            entries.append((name, Entry(DIRECTORY, kept_mode(modes[name]), 0, tree)))
        entries.sort()
        self._requires.update([entry.hash for _, entry in entries if entry.hash is not None])
        tree = directory.write(entries, self._batches.add)
        self._trees[found.path] = tree
        if found.known is None or found.known.tree != tree:
            self._rebuilt.add(found.path)
        is_whole = len(files) == len(found.files) and len(below) == len(found.directories)
        folder = Folder(
            found.stamp if is_whole and not _has_other_rules(found, files) else NO_STAMP,
            found.inherited,
            found.rules_key,
            tree,
            tuple(files),
            tuple(below),
            tuple(found.ignored),
            tuple(found.exempt),
            tuple(found.left_out),
            b"".join([read.key.packed() for read in files.values()])
            + words([modes[name] for name in below]),
            b"".join([read.entry.hash or _NO_HASH for read in files.values()]),
        )
        self._folders[found.path] = folder
        self._total += bytes_of(folder.keys, len(folder.files))
        self._total -= bytes_of(found.keys, len(found.files))
        if folder.stamp == NO_STAMP or any(not read.key.ctime_ns for read in files.values()):
            self._unproven.add(found.path)

    # Files

    def _files(self, found: Found) -> dict[bytes, _Read]:
        known = found.known
        numbers = {} if known is None else {name: at for at, name in enumerate(known.files)}
        changed = set(found.changed)
        files: dict[bytes, _Read] = {}
        for at, name in enumerate(found.files):
            path = joined(found.path, name)
            last = _last(known, numbers.get(name))
            read: _Read | None
            if stat.S_ISLNK(found.key(at).mode):
                read = self._symlink(path, found.key(at))
            elif at in changed or last is None:
                read = self._read(path, last)
            else:
                read = last
            if read is None:
                self._gone.add(path)
            else:
                files[name] = read
        return files

    def _symlink(self, path: bytes, key: Key) -> _Read | None:
        try:
            target = self._beneath.read_link(path)
        except OSError as error:
            self._not_readable(path, error)
            return None
        return _Read(Entry(SYMLINK, 0, len(target), None, target), key)

    def _read(self, path: bytes, last: _Read | None) -> _Read | None:
        """A file that holds still; else what it last held, and a word about it."""
        self._files_read += 1
        previous: Hash | None = None
        for _ in range(_ATTEMPTS):
            try:
                read, previous = self._attempt(path, last, previous)
            except OSError as error:
                self._not_readable(path, error)
                return None
            if read is not None:
                return read
        reason = "kept changing while it was read"
        if last is None:
            self._not_captured.append(NotCaptured(path, reason))
            return None
        self._not_captured.append(NotCaptured(path, reason + "; an earlier content is kept"))
        return _Read(last.entry, last.key.unproven())

    def _attempt(
        self, path: bytes, last: _Read | None, previous: Hash | None
    ) -> tuple[_Read | None, Hash | None]:
        """Read once. Stamps as young as the clock is coarse prove nothing: then the content
        has to be the `previous` one, too."""
        descriptor = self._beneath.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            now = self._clock()
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise OSError(errno.EAGAIN, "not a file any more")
            expected = last.entry.hash if last is not None else None
            address, size = self._content(descriptor, before.st_size, expected)
            key = Key.of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        if key != Key.of(before) or size != key.size:
            return None, None
        if policy.may_change_unseen(key.mtime_ns, key.ctime_ns, now) and address != previous:
            return None, address
        if policy.may_change_unseen(key.mtime_ns, key.ctime_ns, self._scan.start_ns):
            key = key.unproven()
        return _Read(Entry(FILE, kept_mode(key.mode), size, address), key), address

    def _content(self, descriptor: int, size: int, expected: Hash | None) -> tuple[Hash, int]:
        """Hand out the content's objects, except a small one that is stored already."""
        if size > content.PART_BYTES:
            return content.of_parts(content.parts(descriptor), self._batches.add)
        data = os.read(descriptor, size + 1)
        address, sealed = content.of_bytes(data)
        if address != expected:
            self._batches.add(address, sealed)
        return address, len(data)

    def _not_readable(self, path: bytes, error: OSError) -> None:
        if error.errno != errno.ENOENT:  # a file that is gone is simply not there
            reason = f"cannot be read: {error.strerror}"
            self._not_captured.append(NotCaptured(path, reason))


def _last(known: Folder | None, at: int | None) -> _Read | None:
    """What the last snapshot had."""
    if known is None or at is None:
        return None
    key = taken_apart(known.file_key(at))
    if stat.S_ISLNK(key.mode):
        return None
    return _Read(Entry(FILE, kept_mode(key.mode), key.size, known.file_hash(at)), key)


def _as_found(known: Folder, found: Found) -> Folder:
    """A directory with the same content, perhaps by other stamps or rules, or with other names
    that are left out."""
    now = (found.stamp, found.inherited, found.rules_key)
    aside = (tuple(found.ignored), tuple(found.exempt), tuple(found.left_out))
    if now == known[:3] and aside == known[6:9]:
        return known
    return Folder(*now, *known[3:6], *aside, *known[9:])


def _has_other_rules(found: Found, files: Mapping[bytes, _Read]) -> bool:
    """Whether an ignore file is not the one any more that the scan went by. If its stamps are
    too young to tell, they prove nothing to the next scan either."""
    return any(
        read.key.ctime_ns and read.key != found.key(at)
        for at, name in enumerate(found.files)
        if name in names.IGNORE_FILES and (read := files.get(name)) is not None
    )
