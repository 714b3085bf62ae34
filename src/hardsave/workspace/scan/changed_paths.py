"""What may have changed in a workspace since a scan, as plain data: what a watch tells a scan,
or a glance at everything.

To name too much costs time; to name too little would be a wrong snapshot. So whoever is in
doubt names everything, and says why.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from hardsave.tuples import NamedTuple

Names = frozenset[bytes]


class Mark(NamedTuple):
    """A moment in the life of one watch: all that it was told before then has been handed on."""

    watch: int
    moment: int


class Lookout(Protocol):
    """What a scan tells the watch: which directories to keep an eye on."""

    def arm(self, path: bytes) -> bool:
        """Watch a directory from now on. True if it was not watched a moment ago: then what
        was seen of it before proves nothing."""

    def looked(self, path: bytes, ignored: Sequence[bytes]) -> None:
        """A directory was looked at; changes of these names in it need wake nobody."""

    def forget(self, path: bytes) -> None:
        """A directory is not captured any more, nor is anything beneath it."""


class Changed(NamedTuple):
    """What may be otherwise than the scan with an earlier mark saw it.

    `directories` have names that may have changed; None stands for every name in it, and for
    the list of names. `trees` are directories that came or went: everything beneath them may
    be another. If `everything` has a reason, the rest does not count.
    """

    mark: Mark | None  # None: somebody has looked, and nobody watches
    lookout: Lookout | None
    identity: tuple[int, int]  # device and inode of the root
    everything: str = ""
    directories: Mapping[bytes, Names | None] = MappingProxyType({})
    trees: frozenset[bytes] = frozenset()
