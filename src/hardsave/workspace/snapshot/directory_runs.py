"""The runs of a directory: the pieces that the object of a large one is split into.

They are made from the columns of the cached directory: names, hashes, sizes, modes. There may be a
hundred thousand entries of which few have changed, so no Python object is made for each of them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from hardsave.objects.hashing import HASH_BYTES, Hash
from hardsave.workspace.entries import DIRECTORY, FILE, FILE_BITS, SYMLINK, kept_mode
from hardsave.workspace.scan.cache import NO_HASH, CachedDirectory
from hardsave.workspace.scan.result import sizes_and_modes
from hardsave.workspace.snapshot import directory
from hardsave.workspace.snapshot.content import Put


class Runs:
    """The runs of one directory. `tree` returns the tree of a directory in it, by name; `targets`
    are those of its symlinks."""

    def __init__(
        self, folder: CachedDirectory, tree: Callable[[bytes], Hash], targets: Mapping[bytes, bytes]
    ) -> None:
        self._listed, self._starts = _layout(folder.files, folder.directories)
        self._files = folder.files
        self._hashes = folder.hashes
        self._sizes, self._modes = sizes_and_modes(folder.entry_stamps, len(folder.files))
        self._below = dict(zip(folder.directories, folder.directory_modes(), strict=True))
        self._tree = tree
        self._targets = targets

    def firsts(self) -> list[bytes]:
        """The first name of each; none, if the directory is empty."""
        return [self._listed[start] for start in self._starts] if self._listed else []

    def holding(self, names: set[bytes]) -> Iterator[int]:
        """The numbers of the runs in which one of these names stands."""
        for number, (start, end) in enumerate(pairwise([*self._starts, len(self._listed)])):
            if not names.isdisjoint(self._listed[start:end]):
                yield number

    def write_all(self, put: Put) -> list[Hash]:
        return [self.write(number, put) for number in range(len(self._starts))]

    def write(self, number: int, put: Put) -> Hash:
        """Store one of them."""
        start, *ends = self._starts[number : number + 2]
        some = self._listed[start : ends[0] if ends else None]
        below, hashes, modes, sizes = self._below, self._hashes, self._modes, self._sizes
        row = directory.row
        rows: list[bytes] = []
        refs: list[Hash] = []
        targets: list[bytes] = []
        at = bisect_left(self._files, some[0]) if some else 0  # both are sorted
        for name in some:
            if name in below:
                rows.append(row(DIRECTORY, kept_mode(below[name]), 0))
                refs.append(self._tree(name))
                continue
            address = hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES]
            if address == NO_HASH:
                targets.append(self._targets[name])
                rows.append(row(SYMLINK, 0, len(targets[-1])))
            else:
                rows.append(row(FILE, modes[at] & FILE_BITS, sizes[at]))
                refs.append(address)
            at += 1
        return directory.write_rows([*some, *targets], rows, refs, put)


@lru_cache(maxsize=64)  # a process that stays changes files in the same directories
def _layout(
    files: tuple[bytes, ...], directories: tuple[bytes, ...]
) -> tuple[list[bytes], list[int]]:
    """All names in order, and where runs begin: that depends on names alone."""
    listed = sorted([*files, *directories])
    return listed, directory.run_starts(listed)
