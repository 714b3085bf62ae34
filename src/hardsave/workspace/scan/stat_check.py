"""A glance at everything that a scan saw: what has other stamps now?

Every name that was captured is looked at by `lstat`, and its stamp is compared with the
cache's, a directory at a time and as bytes. Nothing is listed, sorted or matched. What the
glance finds is then looked at as closely as what a watch tells.
"""

import os
from collections.abc import Mapping

from hardsave.workspace.scan.cache import KEY_BYTES, NO_STAMP, Cache, Glimpse
from hardsave.workspace.scan.changed_paths import Changed, Names
from hardsave.workspace.scan.result import key_of, keys_of, stamp_of


def glance(cache: Cache, root: int, top: os.stat_result, start_ns: int) -> Changed:
    """What is not as the cache has it. `root` is open, and `top` is its status."""
    return Changed(
        None,
        None,
        (top.st_dev, top.st_ino),
        directories=_Glance(cache, root, top, start_ns).run(),
    )


class _Glance:
    def __init__(self, cache: Cache, root: int, top: os.stat_result, start_ns: int) -> None:
        self._cache = cache
        self._root = root
        self._device = top.st_dev
        self._start_ns = start_ns
        self._stamps = {b"": self._stamp(top)}
        self._differing: dict[bytes, Names | None] = {}  # None: all that is in it

    def run(self) -> Mapping[bytes, Names | None]:
        known = [(path, self._cache.glimpse(path)) for path in self._cache.paths()]
        for path, glimpse in known:
            self._look(path, glimpse)
        for path, glimpse in known:
            if glimpse.stamp == NO_STAMP or self._stamps.get(path) != glimpse.stamp:
                self._differing[path] = None
        return self._differing

    def _look(self, path: bytes, known: Glimpse) -> None:
        above = path + b"/" if path else b""
        # From the root on: the kernel goes the way there once, and not once for every file.
        root, lstat = self._root, os.lstat
        try:
            # A status is dropped before the next one is taken: that is a tenth of the time.
            keys = [key_of(lstat(above + name, dir_fd=root)) for name in known.files]
            below = [lstat(above + name, dir_fd=root) for name in known.directories]
        except OSError:  # something is gone
            self._differing[path] = None
            return
        now = b"".join(keys)
        if below:
            now += keys_of((), below)
            for name, at in zip(known.directories, below, strict=True):
                self._stamps[above + name] = self._stamp(at)
        if known.left_out:  # whether one of these is small enough by now, no stamp says
            self._differing[path] = None
        elif now != known.keys:
            self._differing[path] = _differing(known, now)

    def _stamp(self, status: os.stat_result) -> bytes:
        """What a directory's list of names goes with; nothing, if it is mounted there."""
        is_mounted = status.st_dev != self._device
        return NO_STAMP if is_mounted else stamp_of(status, self._start_ns)


def _differing(known: Glimpse, keys: bytes) -> Names | None:
    """The files whose stamps are others; None if a directory in it has another mode."""
    end = len(known.files) * KEY_BYTES
    if keys[end:] != known.keys[end:]:
        return None
    return frozenset(
        [
            name
            for at, name in enumerate(known.files)
            if keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]
            != known.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]
        ]
    )
