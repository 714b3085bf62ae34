"""Stamps of files that were read: while they are the same, the files need not be read again.

A stamp is size, times, inode and mode. One that is younger than a tick of the file system's clock
proves nothing, because a later write may leave it as it is; then no stamps are kept at all.
"""

import os
from collections.abc import Iterable
from operator import attrgetter
from stat import S_ISDIR

from hardsave.tuples import NamedTuple

Fields = tuple[int, int, int, int, int]
_COARSE_NS = 2_000_000_000  # FAT keeps every second second, HFS+ and ext3 whole ones
_TICK_NS = 20_000_000  # elsewhere the kernel's clock moves every 1 to 10 ms
_fields_of = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")


class Stamp(NamedTuple):
    """The stamp of one file or directory."""

    path: bytes
    follows: bool  # whether a link stands for what it leads to
    fields: Fields | None  # None: there was none

    @property
    def is_directory(self) -> bool:
        return self.fields is not None and S_ISDIR(self.fields[-1])

    def is_proof(self, start_ns: int) -> bool:
        if self.fields is None:
            return True
        _, mtime_ns, ctime_ns, *_ = self.fields
        return not may_change_unseen(mtime_ns, ctime_ns, start_ns)


def may_change_unseen(mtime_ns: int, ctime_ns: int, start_ns: int) -> bool:
    """Whether what is written from `start_ns` on could leave these stamps as they are.

    Then the stamps prove nothing, and the file is read again the next time. A time without
    fractions of a second comes from a file system that keeps none.
    """
    coarse = ctime_ns % 1_000_000_000 == 0
    return max(mtime_ns, ctime_ns) >= start_ns - (_COARSE_NS if coarse else _TICK_NS)


def _fields(path: bytes, follows: bool) -> Fields | None:
    try:
        fields: Fields = _fields_of(os.stat(path) if follows else os.lstat(path))
        return fields
    except OSError:
        return None


def taken(paths: Iterable[bytes], start_ns: int, *, follows: bool = False) -> tuple[Stamp, ...]:
    """Stamps of what was read from `start_ns` on, taken afterwards; none if one of them proves
    nothing: then it may have changed after it was read."""
    stamps = [Stamp(path, follows, _fields(path, follows)) for path in dict.fromkeys(paths)]
    if not all(each.is_proof(start_ns) for each in stamps):
        return ()
    # What was not there cannot come unless the directory's own stamp becomes another.
    directories = {each.path for each in stamps if each.is_directory}
    return tuple(
        each
        for each in stamps
        if each.fields is not None or os.path.dirname(each.path) not in directories
    )


def are_same(stamps: tuple[Stamp, ...]) -> bool:
    """Whether all stamps are as they were; False if there are none, because then it is unknown."""
    for path, follows, fields in stamps:
        if _fields(path, follows) != fields:
            return False
    return bool(stamps)
