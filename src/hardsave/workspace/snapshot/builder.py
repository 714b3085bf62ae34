"""Builds a snapshot from a scan: reads files that changed, writes directories above them.

`put` gets objects in batches of bounded size, none before those it refers to, so a first
snapshot of a large workspace needs little memory and no long transaction. Of a directory that
has the same names as before, only the runs are made in which something changed.
"""

import stat
import time
from collections.abc import Callable, Mapping, Sequence

from hardsave.defaults import IGNORE_FILES
from hardsave.objects.hashing import HASH_BYTES, Hash
from hardsave.progress import Total, meter
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured, joined
from hardsave.workspace.filesystem.safe_open import RootDirectory, gone, refuse_what_went
from hardsave.workspace.scan.cache import (
    NO_HASH,
    NO_STAMP,
    STAMP_BYTES,
    Cache,
    CachedDirectory,
    LastScan,
    by_directory,
)
from hardsave.workspace.scan.result import (
    FoundDirectory,
    Scan,
    bytes_of,
    has_unproven,
    sizes_and_modes,
    words,
)
from hardsave.workspace.snapshot import directory
from hardsave.workspace.snapshot.directory_runs import Runs
from hardsave.workspace.snapshot.file_reader import FileReader, Read, read_before

BATCH_BYTES = 4 << 20

Put = Callable[[Mapping[Hash, bytes]], object]

Fresh = dict[int, Read | None]
"""Files of a directory that were read, by number; None: not captured after all."""


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
    """Read what changed; `put` gets every new object, in batches.

    `Unavailable` if the root is another directory by then, or goes meanwhile: files that are gone
    are simply not there, but not all of them at once.
    """
    try:
        root_dir = RootDirectory(scan.root)
    except OSError as error:
        raise gone(scan.root) from error
    with root_dir:
        refuse_what_went(root_dir, scan.identity)
        taken = _Capture(scan, root_dir, _Batches(put, batch_bytes), clock).run()
        refuse_what_went(root_dir, scan.identity)
        return taken


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


def _to_read(scan: Scan) -> Total:
    files = sum(len(each.changed) for each in scan.found)
    return Total(files, sum(map(_bytes_to_read, scan.found)))


def _bytes_to_read(found: FoundDirectory) -> int:
    if not found.changed:
        return 0
    sizes, modes = sizes_and_modes(found.entry_stamps, len(found.files))
    return sum(sizes[at] for at in found.changed if not stat.S_ISLNK(modes[at]))


class _Capture:
    def __init__(
        self, scan: Scan, root_dir: RootDirectory, batches: _Batches, clock: Callable[[], int]
    ) -> None:
        self._scan = scan
        self._batches = batches
        self._reader = FileReader(
            root_dir,
            batches.add,
            start_ns=scan.start_ns,
            clock=clock,
            meter=meter("reading", "files", lambda: _to_read(scan)),
        )
        self._trees: dict[bytes, Hash] = {}
        self._rebuilt: dict[bytes, set[bytes]] = {}  # what has another tree now, by what is above
        self._folders: dict[bytes, CachedDirectory] = {}
        self._packed: dict[bytes, bytes] = {}
        self._unproven: set[bytes] = set()  # directories to look at again in any case
        self._gone: set[bytes] = set()  # files that are not captured after all
        self._requires: set[Hash] = set()
        self._total = scan.total_bytes

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
            tuple(sorted([*self._scan.not_captured, *self._reader.not_captured])),
            frozenset(self._requires - self._batches.made),
            self._cache(root),
            self._reader.count,
        )

    def _tree(self, path: bytes) -> Hash | None:
        """The tree of a directory; None if it is not captured."""
        tree = self._trees.get(path)
        if tree is None and self._scan.is_incremental and path not in self._scan.gone:
            return self._scan.cache.tree(path)
        return tree

    def _cache(self, root: Hash) -> Cache:
        folders: Mapping[bytes, CachedDirectory] = self._folders
        packed: Mapping[bytes, bytes] = self._packed
        if self._scan.is_incremental:
            folders, packed = self._with_what_was_kept()
        return Cache(folders, packed, root, self._last_scan())

    def _with_what_was_kept(self) -> tuple[Mapping[bytes, CachedDirectory], Mapping[bytes, bytes]]:
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

    def _last_scan(self) -> LastScan | None:
        """What the next incremental scan needs; None if it has to be a full one."""
        scan = self._scan
        if scan.is_capped:
            return None
        return LastScan(
            scan.mark,
            scan.tracked,
            scan.tracked_key,
            self._total,
            by_directory(scan.not_captured),
            scan.linked,
            frozenset(self._unproven),
            scan.nested,
        )

    def _add_root(self, address: Hash, data: bytes) -> None:
        """If nothing changed, nothing is put."""
        if address != self._scan.cache.root:
            self._batches.add(address, data)

    def _links(self) -> list[list[bytes]]:
        groups = [[path for path in each if path not in self._gone] for each in self._scan.links]
        return [group for group in groups if len(group) > 1]

    def _directory(self, found: FoundDirectory) -> None:
        known, rebuilt = found.known, self._rebuilt.get(found.path, set())
        captured = self._captured(found)
        has_same_directories = len(captured) == len(found.directories)
        if known and has_same_directories and found.is_as_known and not rebuilt:
            self._trees[found.path] = known.tree
            self._keep(found, known)
            return
        with self._reader.inside(found.path):
            fresh = self._fresh(found)
            if known and has_same_directories and _has_same_entries(found, known, fresh):
                self._rewrite(found, known, fresh, rebuilt)
            else:
                self._write(found, captured, fresh)

    def _captured(self, found: FoundDirectory) -> Sequence[bytes]:
        """The directories in it that are captured: those that could be listed."""
        known, scan = found.known, self._scan
        if (
            scan.is_incremental
            and not scan.gone
            and known
            and found.directories is known.directories
        ):
            return found.directories
        return [x for x in found.directories if self._tree(joined(found.path, x)) is not None]

    def _keep(self, found: FoundDirectory, known: CachedDirectory) -> None:
        """What the cache has as bytes stays bytes, unless its rules or left-out names changed."""
        path = found.path
        folder = _as_found(known, found)
        packed = self._scan.cache.packed.get(path)
        if folder.stamp == NO_STAMP:
            self._unproven.add(path)
        if packed is None or path in self._scan.cache.folders or folder is not known:
            self._folders[path] = folder
        else:
            self._packed[path] = packed

    def _fresh(self, found: FoundDirectory) -> Fresh:
        """The files that changed, as they are now; None for those that are not captured."""
        known = found.known
        fresh: Fresh = {}
        if not found.changed:
            return fresh
        _, modes = sizes_and_modes(found.entry_stamps, len(found.files))
        for at in found.changed:
            name = found.files[at]
            if stat.S_ISLNK(modes[at]):
                fresh[at] = self._reader.read_link(name, found.file_stamp(at))
            else:
                fresh[at] = self._reader.read(name, read_before(known, name) if known else None)
        return fresh

    # A directory that has the names that it had

    def _rewrite(
        self, found: FoundDirectory, known: CachedDirectory, fresh: Fresh, rebuilt: set[bytes]
    ) -> None:
        """Write the runs in which something changed. The others stay as they are."""
        folder = _with_read(_as_found(known, found), found.entry_stamps, fresh)
        modes = zip(known.directory_modes(), found.directory_modes(), strict=True)
        differing = {found.files[at] for at in fresh} | rebuilt
        differing |= {found.directories[at] for at, (a, b) in enumerate(modes) if a != b}
        runs, made = known.run_addresses(), self._runs(found.path, folder, {})
        self._requires.update(runs)
        for number in made.holding(differing):
            runs[number] = made.write(number, self._batches.add)
        self._list(found, folder, made.firsts(), runs)

    def _runs(self, path: bytes, folder: CachedDirectory, targets: Mapping[bytes, bytes]) -> Runs:
        return Runs(folder, lambda name: self._tree(joined(path, name)) or NO_HASH, targets)

    # A directory with other names

    def _write(self, found: FoundDirectory, below: Sequence[bytes], fresh: Fresh) -> None:
        """Make the tree of a directory from all that is in it."""
        files, targets = self._files(found, fresh)
        modes = dict(zip(found.directories, found.directory_modes(), strict=True))
        is_whole = len(files) == len(found.files) and len(below) == len(found.directories)
        folder = CachedDirectory(
            found.stamp if is_whole and not _has_other_rules(found, fresh) else NO_STAMP,
            found.inherited,
            found.rules_key,
            NO_HASH,
            tuple(files),
            tuple(below),
            tuple(found.ignored),
            tuple(found.exempt),
            tuple(found.left_out),
            b"".join([stamp for stamp, _ in files.values()])
            + words([modes[name] for name in below]),
            b"".join([address for _, address in files.values()]),
        )
        made = self._runs(found.path, folder, targets)
        self._requires.update([address for _, address in files.values()])
        self._requires.update([self._tree(joined(found.path, name)) or NO_HASH for name in below])
        self._requires.discard(NO_HASH)
        self._list(found, folder, made.firsts(), made.write_all(self._batches.add))

    def _files(
        self, found: FoundDirectory, fresh: Fresh
    ) -> tuple[dict[bytes, tuple[bytes, Hash]], dict[bytes, bytes]]:
        """The stamps and contents of all that are captured, and the targets of symlinks."""
        known = found.known
        numbers = {name: at for at, name in enumerate(known.files)} if known else {}
        files: dict[bytes, tuple[bytes, Hash]] = {}
        targets: dict[bytes, bytes] = {}
        for at, name in enumerate(found.files):
            if at in fresh:
                read = fresh[at]
            else:
                assert known is not None, "what is not known has changed"
                number = numbers[name]
                if known.file_hash(number) != NO_HASH:
                    files[name] = known.file_stamp(number), known.file_hash(number)
                    continue
                # A symlink that is as it was: where it leads, the cache does not know.
                read = self._reader.read_link(name, found.file_stamp(at))
            if read is None:
                self._gone.add(joined(found.path, name))
                continue
            files[name] = read.stamp.packed(), read.hash
            if read.hash == NO_HASH:
                targets[name] = read.target
        return files, targets

    def _list(
        self,
        found: FoundDirectory,
        folder: CachedDirectory,
        firsts: Sequence[bytes],
        runs: list[Hash],
    ) -> None:
        """Write the list of a directory's runs, and note the directory for the next cache."""
        tree = directory.write_list(firsts, runs, self._batches.add)
        self._trees[found.path] = tree
        if found.known is None or found.known.tree != tree:
            above, _, name = found.path.rpartition(b"/")
            self._rebuilt.setdefault(above, set()).add(name)
        self._folders[found.path] = folder._replace(tree=tree, runs=b"".join(runs))
        if folder.entry_stamps != found.entry_stamps:  # something changed since the scan
            self._total += bytes_of(folder.entry_stamps, len(folder.files))
            self._total -= bytes_of(found.entry_stamps, len(found.files))
        if folder.stamp == NO_STAMP or has_unproven(folder.entry_stamps, len(folder.files)):
            self._unproven.add(found.path)


# A directory for the next cache


def _has_same_entries(found: FoundDirectory, known: CachedDirectory, fresh: Fresh) -> bool:
    """Whether nothing came or went, and the cache has all that its runs need. It does not have the
    targets of symlinks; and a changed ignore file is left to the full way."""
    return (
        bool(known.runs)
        and tuple(found.files) == known.files
        and tuple(found.directories) == known.directories
        and not any(read is None or read.hash == NO_HASH for read in fresh.values())
        and not any(found.files[at] in IGNORE_FILES for at in fresh)
        and NO_HASH not in known.hashes
    )


def _with_read(folder: CachedDirectory, entry_stamps: bytes, fresh: Fresh) -> CachedDirectory:
    """A cached directory with these stamps and with what was read just now."""
    stamps, hashes = bytearray(entry_stamps), bytearray(folder.hashes)
    for at, read in fresh.items():
        assert read is not None, "then it would have other names"
        stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES] = read.stamp.packed()
        hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES] = read.hash
    return folder._replace(entry_stamps=bytes(stamps), hashes=bytes(hashes))


def _as_found(known: CachedDirectory, found: FoundDirectory) -> CachedDirectory:
    """A cached directory with the stamp, the rules and the left-out names of this scan."""
    now = (found.stamp, found.inherited, found.rules_key)
    aside = (tuple(found.ignored), tuple(found.exempt), tuple(found.left_out))
    if now == known[:3] and aside == known[6:9]:
        return known
    return CachedDirectory(*now, *known[3:6], *aside, *known[9:])


def _has_other_rules(found: FoundDirectory, fresh: Fresh) -> bool:
    """Whether an ignore file was changed after the scan had used it. If its stamp is too young to
    tell, it proves nothing to the next scan either."""
    return any(
        read is not None and read.stamp.ctime_ns and read.stamp != found.file_stamp(at)
        for at, read in fresh.items()
        if found.files[at] in IGNORE_FILES
    )
