"""How files looked from outside when they were read, so that they need not be read again.

Stamps as young as the clock is coarse prove nothing: whoever has one of those has none.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from hardsave.workspace import policy


class Stamp(NamedTuple):
    """A file or a directory from outside; all zero if there was none."""

    path: bytes
    follows: bool = False  # whether a link stands for what it leads to
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0
    mode: int = 0


def stamp(path: bytes, follows: bool = False) -> Stamp:
    try:
        at = os.stat(path) if follows else os.lstat(path)
    except OSError:
        return Stamp(path, follows)
    return Stamp(path, follows, at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino, at.st_mode)


def taken(paths: Iterable[bytes], start_ns: int, *, follows: bool = False) -> tuple[Stamp, ...]:
    """Stamps of what was read from `start_ns` on, taken afterwards; none if one of them proves
    nothing: then it may have changed after it was read."""
    stamps = tuple([stamp(path, follows) for path in paths])
    if any(policy.may_change_unseen(each.mtime_ns, each.ctime_ns, start_ns) for each in stamps):
        return ()
    return stamps


def are_same(stamps: tuple[Stamp, ...]) -> bool:
    """Whether everything looks as it did; if there are none, nobody knows."""
    return bool(stamps) and all(stamp(each.path, each.follows) == each for each in stamps)
