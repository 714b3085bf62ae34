"""Compares the stamps of everything that the last scan saw with the disk.

Every name that was captured is looked at by `lstat`, and its stamp is compared with the
cache's, a directory at a time and as bytes. Nothing is listed, sorted or matched. The
incremental walk then looks at what differs, as it does with what a watch reports.
"""

import os
from collections.abc import Mapping

from hardsave.workspace.scan.cache import NO_STAMP, STAMP_BYTES, Cache, CachedStats
from hardsave.workspace.scan.changed_paths import Changed, Names
from hardsave.workspace.scan.result import directory_stamp, entry_stamps, file_stamp


def compare_stats(cache: Cache, root: int, top: os.stat_result, start_ns: int) -> Changed:
    """What differs from the cache. `root` is an open descriptor, and `top` is its status."""
    return Changed(
        None,
        None,
        (top.st_dev, top.st_ino),
        directories=_StatCheck(cache, root, top, start_ns).run(),
    )


class _StatCheck:
    def __init__(self, cache: Cache, root: int, top: os.stat_result, start_ns: int) -> None:
        self._cache = cache
        self._root = root
        self._device = top.st_dev
        self._start_ns = start_ns
        self._stamps = {b"": self._stamp(top)}
        self._differing: dict[bytes, Names | None] = {}  # None: all that is in it

    def run(self) -> Mapping[bytes, Names | None]:
        known = [(path, self._cache.stats(path)) for path in self._cache.paths()]
        for path, stats in known:
            self._look(path, stats)
        for path, stats in known:
            if stats.stamp == NO_STAMP or self._stamps.get(path) != stats.stamp:
                self._differing[path] = None
        return self._differing

    def _look(self, path: bytes, known: CachedStats) -> None:
        above = path + b"/" if path else b""
        # From the root on: the kernel goes the way there once, and not once for every file.
        root, lstat = self._root, os.lstat
        try:
            # A status is dropped before the next one is taken: that is a tenth of the time.
            stamps = [file_stamp(lstat(above + name, dir_fd=root)) for name in known.files]
            below = [lstat(above + name, dir_fd=root) for name in known.directories]
        except OSError:  # something is gone
            self._differing[path] = None
            return
        now = b"".join(stamps)
        if below:
            now += entry_stamps((), below)
            for name, at in zip(known.directories, below, strict=True):
                self._stamps[above + name] = self._stamp(at)
        if known.left_out:  # whether one of these is small enough by now, no stamp says
            self._differing[path] = None
        elif now != known.entry_stamps:
            self._differing[path] = _differing(known, now)

    def _stamp(self, status: os.stat_result) -> bytes:
        """The stamp of a directory; `NO_STAMP` for a mount point."""
        is_mounted = status.st_dev != self._device
        return NO_STAMP if is_mounted else directory_stamp(status, self._start_ns)


def _differing(known: CachedStats, stamps: bytes) -> Names | None:
    """The files whose stamps are others; None if a directory in it has another mode."""
    end = len(known.files) * STAMP_BYTES
    if stamps[end:] != known.entry_stamps[end:]:
        return None
    return frozenset(
        [
            name
            for at, name in enumerate(known.files)
            if stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES]
            != known.entry_stamps[at * STAMP_BYTES : (at + 1) * STAMP_BYTES]
        ]
    )
