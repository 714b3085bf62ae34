"""What a scan hands on: directories as they were found, with the stamps of what is in them."""

import os
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from stat import ST_INO, ST_MODE, ST_SIZE
from types import MappingProxyType

from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured, joined
from hardsave.workspace.filesystem.stamps import may_change_unseen
from hardsave.workspace.scan.cache import KEY_BYTES, NO_STAMP, Cache, Folder, Linked
from hardsave.workspace.scan.capture_policy import Policy
from hardsave.workspace.scan.changed_paths import Mark

_WORD = (1 << 64) - 1
_KEY = struct.Struct("=5Q")
_STAMP = struct.Struct("=3Q")
fields_of = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")


class Key(NamedTuple):
    """A file's stamp, taken apart."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    def packed(self) -> bytes:
        try:
            return _KEY.pack(*self)
        except struct.error:  # a time before 1970
            return words(list(self))

    def unproven(self) -> "Key":
        """One that no file has: it will be read again."""
        return self._replace(ctime_ns=0)


def taken_apart(key: bytes) -> Key:
    return Key(*_KEY.unpack(key))


class Found:
    """A directory that was found. `changed` are the numbers of the files to read."""

    __slots__ = (
        "changed",
        "directories",
        "exempt",
        "files",
        "ignored",
        "inherited",
        "keys",
        "known",
        "left_out",
        "path",
        "rules_key",
        "stamp",
    )

    def __init__(
        self,
        path: bytes,
        known: Folder | None,  # as the last scan saw it
        stamp: bytes,
        inherited: bytes,
        rules_key: bytes,
        files: Sequence[bytes],
        directories: Sequence[bytes],
        ignored: Sequence[bytes],
        exempt: Sequence[bytes],
        left_out: Sequence[bytes],
        keys: bytes,
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
        self.keys = keys
        self.changed = changed

    def key(self, at: int) -> Key:
        return taken_apart(self.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES])

    def directory_modes(self) -> list[int]:
        return list(array("Q", self.keys[len(self.files) * KEY_BYTES :]))

    @property
    def is_as_known(self) -> bool:
        known = self.known
        return known is not None and not self.changed and self.keys == known.keys


def as_known(path: bytes, known: Folder) -> Found:
    """A directory that is as the last scan saw it."""
    return Found(
        path,
        known,
        known.stamp,
        known.inherited,
        known.key,
        known.files,
        known.directories,
        known.ignored,
        known.exempt,
        known.left_out,
        known.keys,
        [],
    )


class Scan(NamedTuple):
    """What lies in a workspace: a pure description. Parents come before their directories.

    A narrow one has looked only where something may have changed: directories that are not
    in `found`, and not in `gone`, are as the cache has them. `everything` says why a scan that
    was told what changed has looked at all of it.
    """

    root: bytes
    start_ns: int
    policy: Policy
    cache: Cache
    found: list[Found]
    not_captured: list[NotCaptured]
    links: list[list[bytes]]  # paths of one inode
    total_bytes: int
    tracked: Callable[[], frozenset[bytes]] = frozenset
    tracked_key: bytes = b""
    inner: Mapping[bytes, bytes] = MappingProxyType({})  # keys of repositories inside, by path
    linked: Mapping[bytes, tuple[Linked, ...]] = MappingProxyType({})  # by directory
    is_narrow: bool = False
    everything: str = ""
    gone: frozenset[bytes] = frozenset()  # directories of the cache that are not there any more
    is_capped: bool = False  # too large: the next scan has to look at everything, too
    mark: Mark | None = None  # of the watch that told it what changed
    identity: tuple[int, int] | None = None  # device and inode of the root that was looked at

    def directories(self) -> set[bytes]:
        """All that are captured, whoever has looked at them."""
        kept = self.cache.paths() if self.is_narrow else ()
        return {*kept, *[each.path for each in self.found]} - self.gone

    def files(self) -> Iterator[bytes]:
        looked_at = {each.path: each.files for each in self.found}
        for path in self.directories():
            files = looked_at[path] if path in looked_at else self.cache.glimpse(path).files
            yield from [joined(path, name) for name in files]


def stamp_of(status: os.stat_result, start_ns: int) -> bytes:
    """What a directory's list of names goes with; one that proves nothing matches nothing."""
    if may_change_unseen(status.st_mtime_ns, status.st_ctime_ns, start_ns):
        return NO_STAMP
    try:
        return _STAMP.pack(status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    except struct.error:  # a time before 1970
        return words([status.st_mtime_ns, status.st_ctime_ns, status.st_ino])


def key_of(at: os.stat_result) -> bytes:
    """A file's stamp."""
    try:
        # By number where that works: it is twice as fast, and there are many.
        return _KEY.pack(at[ST_SIZE], at.st_mtime_ns, at.st_ctime_ns, at[ST_INO], at[ST_MODE])
    except struct.error:  # a time before 1970
        return words(list(fields_of(at)))


def keys_of(files: Iterable[os.stat_result], below: Iterable[os.stat_result]) -> bytes:
    """The stamps of files, then the modes of directories: what the cache compares."""
    return b"".join([key_of(at) for at in files]) + words([at[ST_MODE] for at in below])


def words(values: list[int]) -> bytes:
    try:
        return array("Q", values).tobytes()
    except OverflowError:  # a time before 1970
        return array("Q", [value & _WORD for value in values]).tobytes()


def bytes_of(keys: bytes, files: int) -> int:
    """How long the files are together whose stamps stand first in `keys`."""
    return sum(array("Q", keys[: files * KEY_BYTES])[:: KEY_BYTES // 8])


def sizes_and_modes(keys: bytes, files: int) -> tuple[Sequence[int], Sequence[int]]:
    """Of the files whose stamps stand first in `keys`."""
    values, width = array("Q", keys[: files * KEY_BYTES]), KEY_BYTES // 8
    return values[::width], values[width - 1 :: width]


def has_unproven(keys: bytes, files: int) -> bool:
    """Whether one of the files whose stamps stand first in `keys` has to be read again."""
    return 0 in array("Q", keys[: files * KEY_BYTES])[2 :: KEY_BYTES // 8]


def changed_since(known: Folder, keys: bytes) -> list[int]:
    return [
        at
        for at in range(len(known.files))
        if keys[at * KEY_BYTES : (at + 1) * KEY_BYTES] != known.file_key(at)
    ]


def to_read(known: Folder | None, files: Sequence[bytes], keys: bytes) -> list[int]:
    """Numbers of the files of a listed directory that the last scan does not know."""
    if known is None:
        return list(range(len(files)))
    before = {name: known.file_key(at) for at, name in enumerate(known.files)}
    return [
        at
        for at, name in enumerate(files)
        if before.get(name) != keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]
    ]


def without(found: Found, dropped: set[int]) -> None:
    """Take files out of a directory that was found; it will be listed again the next time."""
    kept = [at for at in range(len(found.files)) if at not in dropped]
    moved = {at: number for number, at in enumerate(kept)}
    modes = found.keys[len(found.files) * KEY_BYTES :]
    found.keys = (
        b"".join([found.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES] for at in kept]) + modes
    )
    found.changed = [moved[at] for at in found.changed if at in moved]
    found.files = [found.files[at] for at in kept]
    found.stamp = NO_STAMP
