"""From a scan to objects: files that changed are read, directories above them are written.

Objects are handed out in batches of bounded size, none before those it refers to, so a first
snapshot of a large workspace needs little memory and no long transaction. Of a directory that
has the same names as before, only the runs are made in which something changed.
"""

import stat
import time
from collections.abc import Callable, Mapping, Sequence

from hardsave.defaults import IGNORE_FILES
from hardsave.objects.hashing import HASH_BYTES, Hash
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured, joined
from hardsave.workspace.filesystem.safe_open import Beneath, gone, refuse_what_went
from hardsave.workspace.scan.cache import (
    KEY_BYTES,
    NO_HASH,
    NO_STAMP,
    Cache,
    Folder,
    Memory,
    by_directory,
)
from hardsave.workspace.scan.result import (
    Found,
    Scan,
    bytes_of,
    has_unproven,
    sizes_and_modes,
    words,
)
from hardsave.workspace.snapshot import directory
from hardsave.workspace.snapshot.directory_runs import Runs
from hardsave.workspace.snapshot.file_reader import Files, Read, read_before

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
        beneath = Beneath(scan.root)
    except OSError as error:
        raise gone(scan.root) from error
    with beneath:
        refuse_what_went(beneath, scan.identity)
        taken = _Capture(scan, beneath, _Batches(put, batch_bytes), clock).run()
        refuse_what_went(beneath, scan.identity)
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


class _Capture:
    def __init__(
        self, scan: Scan, beneath: Beneath, batches: _Batches, clock: Callable[[], int]
    ) -> None:
        self._scan = scan
        self._batches = batches
        self._reader = Files(beneath, batches.add, start_ns=scan.start_ns, clock=clock)
        self._trees: dict[bytes, Hash] = {}
        self._rebuilt: dict[bytes, set[bytes]] = {}  # what has another tree now, by what is above
        self._folders: dict[bytes, Folder] = {}
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
        if scan.is_capped:
            return None
        return Memory(
            scan.mark,
            scan.tracked,
            scan.tracked_key,
            self._total,
            by_directory(scan.not_captured),
            scan.linked,
            frozenset(self._unproven),
            scan.inner,
        )

    def _add_root(self, address: Hash, data: bytes) -> None:
        """If nothing changed, nothing is handed out."""
        if address != self._scan.cache.root:
            self._batches.add(address, data)

    def _links(self) -> list[list[bytes]]:
        groups = [[path for path in each if path not in self._gone] for each in self._scan.links]
        return [group for group in groups if len(group) > 1]

    def _directory(self, found: Found) -> None:
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

    def _captured(self, found: Found) -> Sequence[bytes]:
        """The directories in it that are captured: those that could be listed."""
        known, scan = found.known, self._scan
        if scan.is_narrow and not scan.gone and known and found.directories is known.directories:
            return found.directories
        return [x for x in found.directories if self._tree(joined(found.path, x)) is not None]

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

    def _fresh(self, found: Found) -> Fresh:
        """The files that changed, as they are now; None for those that are not captured."""
        known = found.known
        fresh: Fresh = {}
        if not found.changed:
            return fresh
        _, modes = sizes_and_modes(found.keys, len(found.files))
        for at in found.changed:
            name = found.files[at]
            if stat.S_ISLNK(modes[at]):
                fresh[at] = self._reader.read_link(name, found.key(at))
            else:
                fresh[at] = self._reader.read(name, read_before(known, name) if known else None)
        return fresh

    # A directory that has the names that it had

    def _rewrite(self, found: Found, known: Folder, fresh: Fresh, rebuilt: set[bytes]) -> None:
        """Make the runs that hold what changed. All else stands in the runs that there were."""
        folder = _with_read(_as_found(known, found), found.keys, fresh)
        modes = zip(known.directory_modes(), found.directory_modes(), strict=True)
        differing = {found.files[at] for at in fresh} | rebuilt
        differing |= {found.directories[at] for at, (a, b) in enumerate(modes) if a != b}
        runs, made = known.run_addresses(), self._runs(found.path, folder, {})
        self._requires.update(runs)
        for number in made.holding(differing):
            runs[number] = made.write(number, self._batches.add)
        self._list(found, folder, made.firsts(), runs)

    def _runs(self, path: bytes, folder: Folder, targets: Mapping[bytes, bytes]) -> Runs:
        return Runs(folder, lambda name: self._tree(joined(path, name)) or NO_HASH, targets)

    # Any other

    def _write(self, found: Found, below: Sequence[bytes], fresh: Fresh) -> None:
        """Make the tree of a directory from all that is in it."""
        files, targets = self._files(found, fresh)
        modes = dict(zip(found.directories, found.directory_modes(), strict=True))
        is_whole = len(files) == len(found.files) and len(below) == len(found.directories)
        folder = Folder(
            found.stamp if is_whole and not _has_other_rules(found, fresh) else NO_STAMP,
            found.inherited,
            found.rules_key,
            NO_HASH,
            tuple(files),
            tuple(below),
            tuple(found.ignored),
            tuple(found.exempt),
            tuple(found.left_out),
            b"".join([key for key, _ in files.values()]) + words([modes[name] for name in below]),
            b"".join([address for _, address in files.values()]),
        )
        made = self._runs(found.path, folder, targets)
        self._requires.update([address for _, address in files.values()])
        self._requires.update([self._tree(joined(found.path, name)) or NO_HASH for name in below])
        self._requires.discard(NO_HASH)
        self._list(found, folder, made.firsts(), made.write_all(self._batches.add))

    def _files(
        self, found: Found, fresh: Fresh
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
                    files[name] = known.file_key(number), known.file_hash(number)
                    continue
                # A symlink that is as it was: where it leads, the cache does not know.
                read = self._reader.read_link(name, found.key(at))
            if read is None:
                self._gone.add(joined(found.path, name))
                continue
            files[name] = read.key.packed(), read.hash
            if read.hash == NO_HASH:
                targets[name] = read.target
        return files, targets

    def _list(
        self, found: Found, folder: Folder, firsts: Sequence[bytes], runs: list[Hash]
    ) -> None:
        """A directory whose runs are made: its tree, and what the next scan has to know."""
        tree = directory.write_list(firsts, runs, self._batches.add)
        self._trees[found.path] = tree
        if found.known is None or found.known.tree != tree:
            above, _, name = found.path.rpartition(b"/")
            self._rebuilt.setdefault(above, set()).add(name)
        self._folders[found.path] = folder._replace(tree=tree, runs=b"".join(runs))
        if folder.keys != found.keys:  # something changed since the scan
            self._total += bytes_of(folder.keys, len(folder.files))
            self._total -= bytes_of(found.keys, len(found.files))
        if folder.stamp == NO_STAMP or has_unproven(folder.keys, len(folder.files)):
            self._unproven.add(found.path)


# What is remembered of a directory


def _has_same_entries(found: Found, known: Folder, fresh: Fresh) -> bool:
    """Whether nothing came or went, and all that is needed to write its runs is known: a cache
    does not know where symlinks lead, and rules are looked at more closely."""
    return (
        bool(known.runs)
        and tuple(found.files) == known.files
        and tuple(found.directories) == known.directories
        and not any(read is None or read.hash == NO_HASH for read in fresh.values())
        and not any(found.files[at] in IGNORE_FILES for at in fresh)
        and NO_HASH not in known.hashes
    )


def _with_read(folder: Folder, keys: bytes, fresh: Fresh) -> Folder:
    """A directory as it is remembered, with these stamps and with what was read just now."""
    stamps, hashes = bytearray(keys), bytearray(folder.hashes)
    for at, read in fresh.items():
        assert read is not None, "then it would have other names"
        stamps[at * KEY_BYTES : (at + 1) * KEY_BYTES] = read.key.packed()
        hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES] = read.hash
    return folder._replace(keys=bytes(stamps), hashes=bytes(hashes))


def _as_found(known: Folder, found: Found) -> Folder:
    """A directory with the same content, perhaps by other stamps or rules, or with other names
    that are left out."""
    now = (found.stamp, found.inherited, found.rules_key)
    aside = (tuple(found.ignored), tuple(found.exempt), tuple(found.left_out))
    if now == known[:3] and aside == known[6:9]:
        return known
    return Folder(*now, *known[3:6], *aside, *known[9:])


def _has_other_rules(found: Found, fresh: Fresh) -> bool:
    """Whether an ignore file is not the one any more that the scan went by. If its stamps are
    too young to tell, they prove nothing to the next scan either."""
    return any(
        read is not None and read.key.ctime_ns and read.key != found.key(at)
        for at, read in fresh.items()
        if found.files[at] in IGNORE_FILES
    )
