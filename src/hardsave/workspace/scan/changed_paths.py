"""What may have changed in a workspace since a scan, as plain data: from a watch or a stat check.

To name too much costs time; to name too little would be a wrong snapshot. So a watch that may have
missed something asks for a full scan, and says why.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from hardsave.tuples import NamedTuple

Names = frozenset[bytes]


class Mark(NamedTuple):
    """A moment of one watch: all events before it have been handed to a scan."""

    watch: int
    moment: int


class DirectoryWatcher(Protocol):
    """The side of a watch that a scan calls: which directories to watch."""

    def arm(self, path: bytes) -> bool:
        """Watch a directory from now on. True if it was not watched a moment ago: then what
        was seen of it before proves nothing."""

    def scanned(self, path: bytes, ignored: Sequence[bytes]) -> None:
        """A directory was scanned; events about these ignored names in it need no scan."""

    def forget(self, path: bytes) -> None:
        """A directory is not captured any more, nor is anything beneath it."""


class Changed(NamedTuple):
    """What may differ from what the scan with an earlier mark saw.

    `directories` have names that may have changed; None stands for every name in it, and for
    the list of names. `trees` are directories that came or went: everything beneath them may
    have changed. With a `full_scan_reason`, the rest does not count.
    """

    mark: Mark | None  # None: from a stat check, without a watch
    watcher: DirectoryWatcher | None
    identity: tuple[int, int]  # device and inode of the root
    full_scan_reason: str = ""
    directories: Mapping[bytes, Names | None] = MappingProxyType({})
    trees: frozenset[bytes] = frozenset()
