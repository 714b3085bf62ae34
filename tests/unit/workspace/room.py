"""A workspace on a real disk, objects in memory, and rules that are as simple as can be."""

import os
import stat
import time
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from hardsave.objects import envelope
from hardsave.objects.hashing import Hash, digest
from hardsave.workspace.restore import execution
from hardsave.workspace.restore.plan import Plan, plan
from hardsave.workspace.restore.steps import Restored
from hardsave.workspace.scan import cache as caches
from hardsave.workspace.scan.cache import NO_STAMP, STAMP_BYTES, Cache, CachedDirectory
from hardsave.workspace.scan.capture_policy import DEFAULT_POLICY, Policy
from hardsave.workspace.scan.changed_paths import Changed
from hardsave.workspace.scan.result import Scan
from hardsave.workspace.scan.scanner import scan
from hardsave.workspace.snapshot.builder import Snapshot, snapshot
from hardsave.workspace.watch.watcher import watch


def rules(patterns: Sequence[bytes]) -> "Names":
    """Those of a top directory with such ignore files."""
    return Names().enter(b"", patterns)


class Names:
    """Rules without patterns: each line of an ignore file is a name, here and further down."""

    def __init__(self, ignored: frozenset[bytes] = frozenset()) -> None:
        self.ignored = ignored

    @property
    def key(self) -> bytes:
        return digest(b"\0".join(sorted(self.ignored)))

    def enter(self, name: bytes, patterns: Sequence[bytes]) -> "Names":
        lines = {line for text in patterns for line in text.split(b"\n") if line}
        return Names(self.ignored | lines)

    def match(self, name: bytes, is_dir: bool) -> bool:
        return name in self.ignored or (is_dir and name + b"/" in self.ignored)


CachedDirectories = dict[bytes, CachedDirectory | None]


class Room:
    """A workspace directory and the objects of its snapshots."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.objects: dict[Hash, bytes] = {}
        self.cache = caches.EMPTY
        self.put_bytes = 0
        self.batches = 0
        self.fetched = 0
        self.now_ns = 0  # how far the clock is ahead of the disk's
        self.frozen: dict[bytes, os.stat_result] = {}  # its status, also after a change

    def clock(self) -> int:
        return time.time_ns() + self.now_ns

    def put(self, batch: Mapping[Hash, bytes]) -> None:
        self.batches += 1
        for address, data in batch.items():
            assert digest(data) == address
            for ref in envelope.unseal(data).refs:
                assert ref in self.objects or ref in batch, "stored before what it refers to"
            if address not in self.objects:
                self.put_bytes += len(data)
                self.objects[address] = data

    def fetch(self, wanted: Collection[Hash]) -> Mapping[Hash, bytes]:
        self.fetched += len(wanted)
        return {address: self.objects[address] for address in wanted}

    def snapshot(
        self,
        *,
        tracked: frozenset[bytes] = frozenset(),
        policy: Policy = DEFAULT_POLICY,
    ) -> Snapshot:
        """With the cache of the last one, as a process that starts anew would have it."""
        with self._frozen():
            found = scan(
                self.root,
                rules=rules,
                tracked=lambda: tracked,
                cache=self.cache,
                policy=policy,
                clock=self.clock,
                changed=self.changed(),
            )
        self.scanned(found)
        made = snapshot(found, self.put, clock=self.clock)
        self.cache = self.kept(made.cache)
        assert made.requires <= self.objects.keys()
        return made

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        """For each way to look at a path."""
        lstat, real, frozen = os.lstat, os.stat, self.frozen

        def look(path: Any, *, dir_fd: int | None = None, **how: Any) -> os.stat_result:
            for each, status in frozen.items() if dir_fd is not None else ():
                above, name = os.path.split(each)
                if path == name and os.path.samestat(os.fstat(dir_fd or 0), real(above)):
                    return status
            return real(path, dir_fd=dir_fd, **how)

        def frozen_lstat(path: bytes, *, dir_fd: int | None = None) -> os.stat_result:
            whole = path if dir_fd is None else os.path.join(os.fsencode(self.root), path)
            return frozen.get(whole) or lstat(path, dir_fd=dir_fd)

        with (
            mock.patch.object(os, "lstat", frozen_lstat),
            mock.patch.object(os, "stat", look),
        ):
            yield

    def changed(self) -> Changed | None:
        return None

    def scanned(self, found: Scan) -> None:
        """For those who want to know."""

    def kept(self, cache: Cache) -> Cache:
        return caches.load(caches.dump(cache))

    # Restoring

    @property
    def journal(self) -> Path:
        return self.root.parent / "journal"

    def plan(self, target: Hash, present: Hash | None = None, **options: Any) -> Plan:
        """Against the present, which is saved first."""
        if present is None:
            present = self.snapshot(tracked=options.get("present_tracked", frozenset())).root
        return plan(present, target, self.fetch, rules=rules, **options)

    def carry_out(self, made: Plan) -> Restored:
        return execution.restore(
            os.fsencode(self.root), made, self.fetch, self.journal, id=b"\1\2\3"
        )

    def restore(self, target: Hash, **options: Any) -> Restored:
        restored = self.carry_out(self.plan(target, **options))
        assert not self.journal.exists()
        assert leftovers(self.root) == []
        return restored

    def contents(self, made: Snapshot) -> set[bytes]:
        """The contents of all small files beneath a snapshot."""
        found, todo = set(), [made.root]
        while todo:
            kind, refs, payload = envelope.unseal(self.objects[todo.pop()])
            todo += refs
            if kind == envelope.CONTENT:
                found.add(payload)
        return found

    def anew(
        self, *, tracked: frozenset[bytes] = frozenset(), policy: Policy = DEFAULT_POLICY
    ) -> Snapshot:
        """Without any cache: what a snapshot must be equal to."""
        room = _with_objects(self.root, self.objects)
        room.now_ns = self.now_ns
        return room.snapshot(tracked=tracked, policy=policy)


class WatchedRoom(Room):
    """A workspace in a process that stays: it has a watch, and its cache is never written."""

    def __init__(self, root: Path, cookies: Path, **options: Any) -> None:
        super().__init__(root)
        self.watch = watch(root, cookies=cookies, **options)
        self.reasons: list[str] = []  # of scans that looked at everything
        self.incremental = 0  # scans that did not
        self.looked_at: list[bytes] = []  # directories, by the last scan

    def __enter__(self) -> "WatchedRoom":
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()

    def changed(self) -> Changed:
        return self.watch.changed(self.cache)

    def scanned(self, found: Scan) -> None:
        self.looked_at = [each.path for each in found.found]
        if found.is_incremental:
            self.incremental += 1
        else:
            self.reasons.append(found.full_scan_reason)

    def kept(self, cache: Cache) -> Cache:
        return cache


def folders(made: Snapshot) -> CachedDirectories:
    """The cache that comes with a snapshot, without what only says how old it is."""
    return {path: made.cache.get(path) for path in made.cache.paths()}


def agree(made: CachedDirectories, later: CachedDirectories) -> bool:
    """Whether two scans have seen the same. The earlier may have come too soon after a change
    to rely on the stamp of a directory or of a file, where the later one can."""
    if made.keys() != later.keys():
        return False
    return all(_as_soon(later[path], one) == one for path, one in made.items())


def _as_soon(
    folder: CachedDirectory | None, made: CachedDirectory | None
) -> CachedDirectory | None:
    """A folder without those stamps that `made` came too soon for."""
    if folder is None or made is None or len(folder.entry_stamps) != len(made.entry_stamps):
        return folder
    keys, too_soon = array("Q", folder.entry_stamps), array("Q", made.entry_stamps)
    width = STAMP_BYTES // 8
    for at in range(0, width * len(made.files), width):
        if too_soon[at + 2] == 0:
            keys[at : at + width] = too_soon[at : at + width]
    stamp = NO_STAMP if made.stamp == NO_STAMP else folder.stamp
    return folder._replace(stamp=stamp, entry_stamps=keys.tobytes())


def _with_objects(root: Path, objects: dict[Hash, bytes]) -> Room:
    room = Room(root)
    room.objects = objects
    return room


def picture(root: Path) -> dict[bytes, object]:
    """Everything that a snapshot keeps, read plainly: kind, mode, content, which are one file."""
    seen: dict[bytes, object] = {}
    firsts: dict[int, bytes] = {}
    top = os.fsencode(root)
    for directory, below, files in os.walk(top):
        below.sort()
        for name in sorted(below + files):
            path = directory + b"/" + name
            short = path[len(top) + 1 :]
            at = os.lstat(path)
            if stat.S_ISLNK(at.st_mode):
                seen[short] = ("link", os.readlink(path))
            elif stat.S_ISDIR(at.st_mode):
                seen[short] = ("directory", at.st_mode & 0o3777)
            elif stat.S_ISREG(at.st_mode):
                first = firsts.setdefault(at.st_ino, short) if at.st_nlink > 1 else short
                content = Path(os.fsdecode(path)).read_bytes()
                seen[short] = ("file", at.st_mode & 0o777, content, first)
            else:
                seen[short] = ("other",)
    return seen


def leftovers(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.name.startswith(".hardsave-tmp-")]


def paths_of(made: Snapshot) -> list[bytes]:
    return [each.path for each in made.not_captured]
