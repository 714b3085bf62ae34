"""What a scan returns: directories as they were found, with the stamps of what is in them."""

import os
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from stat import S_ISREG, ST_INO, ST_MODE, ST_NLINK, ST_SIZE
from types import MappingProxyType

from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured, joined
from hardsave.workspace.filesystem.stamps import may_change_unseen
from hardsave.workspace.scan.cache import NO_STAMP, STAMP_BYTES, Cache, CachedDirectory, Linked
from hardsave.workspace.scan.capture_policy import Policy
from hardsave.workspace.scan.changed_paths import Mark

_WORD = (1 << 64) - 1
_FILE_STAMP = struct.Struct("=5Q")
_DIRECTORY_STAMP = struct.Struct("=3Q")
fields_of = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")


class FileStamp(NamedTuple):
    """A file's stamp: while it is the same, so is the content."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    def packed(self) -> bytes:
        try:
            return _FILE_STAMP.pack(*self)
        except struct.error:  # a time before 1970
            return words(list(self))

    def unproven(self) -> "FileStamp":
        """A stamp that no file has, so that the file is read again."""
        return self._replace(ctime_ns=0)


def unpacked(stamp: bytes) -> FileStamp:
    return FileStamp(*_FILE_STAMP.unpack(stamp))


class FoundDirectory:
    """A directory as a scan found it. `changed` are the numbers of the files to read."""

    __slots__ = (
        "changed",
        "directories",
        "entry_stamps",
        "exempt",
        "files",
        "ignored",
        "inherited",
        "known",
        "left_out",
        "path",
        "rules_key",
        "stamp",
    )

    def __init__(
        self,
        path: bytes,
        known: CachedDirectory | None,  # as the last scan saw it
        stamp: bytes,
        inherited: bytes,
        rules_key: bytes,
        files: Sequence[bytes],
        directories: Sequence[bytes],
        ignored: Sequence[bytes],
        exempt: Sequence[bytes],
        left_out: Sequence[bytes],
        entry_stamps: bytes,
        changed: list[int],
    ) -> None:
        self.path = path
        self.known = known
        self.stamp = stamp
        self.inherited = inherited
        self.rules_key = rules_key
        self.files = files
        self.directories = directories
        self.ignored = ignored
        self.exempt = exempt
        self.left_out = left_out
        self.entry_stamps = entry_stamps
        self.changed = changed

    def file_stamp(self, at: int) -> FileStamp:
        return unpacked(self.entry_stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES])

    def directory_modes(self) -> list[int]:
        return list(array("Q", self.entry_stamps[len(self.files) * STAMP_BYTES :]))

    @property
    def is_as_known(self) -> bool:
        known = self.known
        return known is not None and not self.changed and self.entry_stamps == known.entry_stamps


def as_known(path: bytes, known: CachedDirectory) -> FoundDirectory:
    """A directory that is as the last scan saw it."""
    return FoundDirectory(
        path,
        known,
        known.stamp,
        known.inherited,
        known.rules_key,
        known.files,
        known.directories,
        known.ignored,
        known.exempt,
        known.left_out,
        known.entry_stamps,
        [],
    )


class Scan(NamedTuple):
    """What lies in a workspace, as plain data. Parents come before their directories.

    An incremental one has looked only where something may have changed: directories that are
    neither in `found` nor in `gone` are as the cache has them. `full_scan_reason` says why a scan
    that was told what changed has looked at all of it.
    """

    root: bytes
    start_ns: int
    policy: Policy
    cache: Cache
    found: list[FoundDirectory]
    not_captured: list[NotCaptured]
    links: list[list[bytes]]  # paths of one inode
    total_bytes: int
    tracked: Callable[[], frozenset[bytes]] = frozenset
    tracked_key: bytes = b""
    nested: Mapping[bytes, bytes] = MappingProxyType({})  # keys of repositories inside, by path
    linked: Mapping[bytes, tuple[Linked, ...]] = MappingProxyType({})  # by directory
    is_incremental: bool = False
    full_scan_reason: str = ""
    gone: frozenset[bytes] = frozenset()  # directories of the cache that are not there any more
    is_capped: bool = False  # too large: the next scan has to look at everything, too
    mark: Mark | None = None  # of the watch that told it what changed
    identity: tuple[int, int] | None = None  # device and inode of the root that was looked at

    def directories(self) -> set[bytes]:
        """All that are captured: those of this scan, and those that the cache still has."""
        kept = self.cache.paths() if self.is_incremental else ()
        return {*kept, *[each.path for each in self.found]} - self.gone

    def files(self) -> Iterator[bytes]:
        looked_at = {each.path: each.files for each in self.found}
        for path in self.directories():
            files = looked_at[path] if path in looked_at else self.cache.stats(path).files
            yield from [joined(path, name) for name in files]


def directory_stamp(status: os.stat_result, start_ns: int) -> bytes:
    """The stamp of a directory: while it is the same, so is the list of names. `NO_STAMP`, which
    matches nothing, if it is too young to prove that."""
    if may_change_unseen(status.st_mtime_ns, status.st_ctime_ns, start_ns):
        return NO_STAMP
    try:
        return _DIRECTORY_STAMP.pack(status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    except struct.error:  # a time before 1970
        return words([status.st_mtime_ns, status.st_ctime_ns, status.st_ino])


def file_stamp(at: os.stat_result) -> bytes:
    """A file's stamp."""
    try:
        # By number where that works: it is twice as fast, and there are many.
        return _FILE_STAMP.pack(
            at[ST_SIZE], at.st_mtime_ns, at.st_ctime_ns, at[ST_INO], at[ST_MODE]
        )
    except struct.error:  # a time before 1970
        return words(list(fields_of(at)))


def entry_stamps(files: Iterable[os.stat_result], below: Iterable[os.stat_result]) -> bytes:
    """The stamps of files, then the modes of directories: what the cache compares."""
    return b"".join([file_stamp(at) for at in files]) + words([at[ST_MODE] for at in below])


def words(values: list[int]) -> bytes:
    try:
        return array("Q", values).tobytes()
    except OverflowError:  # a time before 1970
        return array("Q", [value & _WORD for value in values]).tobytes()


def bytes_of(stamps: bytes, files: int) -> int:
    """The sum of the sizes of the files whose stamps stand first in `stamps`."""
    return sum(array("Q", stamps[: files * STAMP_BYTES])[:: STAMP_BYTES // 8])


def sizes_and_modes(stamps: bytes, files: int) -> tuple[Sequence[int], Sequence[int]]:
    """The columns of sizes and modes of the files whose stamps stand first in `stamps`."""
    values, width = array("Q", stamps[: files * STAMP_BYTES]), STAMP_BYTES // 8
    return values[::width], values[width - 1 :: width]


def has_unproven(stamps: bytes, files: int) -> bool:
    """Whether one of the files whose stamps stand first in `stamps` has to be read again."""
    return 0 in array("Q", stamps[: files * STAMP_BYTES])[2 :: STAMP_BYTES // 8]


def changed_since(known: CachedDirectory, stamps: bytes) -> list[int]:
    return [
        at
        for at in range(len(known.files))
        if stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES] != known.file_stamp(at)
    ]


def to_read(known: CachedDirectory | None, files: Sequence[bytes], stamps: bytes) -> list[int]:
    """Numbers of the files of a listed directory that the last scan does not have, or not so."""
    if known is None:
        return list(range(len(files)))
    before = {name: known.file_stamp(at) for at, name in enumerate(known.files)}
    return [
        at
        for at, name in enumerate(files)
        if before.get(name) != stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES]
    ]


def without(found: FoundDirectory, dropped: set[int]) -> None:
    """Take files out of a directory that was found; it will be listed again the next time."""
    kept = [at for at in range(len(found.files)) if at not in dropped]
    moved = {at: number for number, at in enumerate(kept)}
    modes = found.entry_stamps[len(found.files) * STAMP_BYTES :]
    found.entry_stamps = (
        b"".join([found.entry_stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES] for at in kept])
        + modes
    )
    found.changed = [moved[at] for at in found.changed if at in moved]
    found.files = [found.files[at] for at in kept]
    found.stamp = NO_STAMP


def linked_of(
    files: Sequence[bytes], status: Sequence[os.stat_result], *, is_captured: bool = True
) -> tuple[Linked, ...]:
    """The files of one directory that have more than one name."""
    return tuple(
        [
            Linked(files[number], (at.st_dev, at.st_ino), is_captured)
            for number, at in enumerate(status)
            if at[ST_NLINK] > 1 and S_ISREG(at.st_mode)
        ]
    )


def links_of(linked: Mapping[bytes, Iterable[Linked]]) -> list[list[bytes]]:
    """The paths of each file that was found under more than one name."""
    paths: dict[tuple[int, int], list[bytes]] = {}
    for directory, files in linked.items():
        for file in [each for each in files if each.is_captured]:
            paths.setdefault(file.inode, []).append(joined(directory, file.name))
    return [each for each in paths.values() if len(each) > 1]
