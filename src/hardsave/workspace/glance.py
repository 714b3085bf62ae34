"""A glance at everything that a scan saw: what has other stamps now?

Every name that was captured is looked at by `lstat`, and its stamp is compared with the
cache's, a directory at a time and as bytes. Nothing is listed, sorted or matched. What the
glance finds is then looked at as closely as what a watch tells.
"""

import os
from collections.abc import Mapping

from hardsave.workspace import policy
from hardsave.workspace.cache import KEY_BYTES, NO_STAMP, Cache, Glimpse
from hardsave.workspace.changed import Changed, Names
from hardsave.workspace.entries import joined
from hardsave.workspace.found import keys_of, words


def glance(cache: Cache, root: bytes, top: os.stat_result, start_ns: int) -> Changed:
    """What is not as the cache has it. `top` is the status of the root, which is open."""
    return Changed(
        None,
        None,
        (top.st_dev, top.st_ino),
        directories=_Glance(cache, root, top, start_ns).run(),
    )


class _Glance:
    def __init__(self, cache: Cache, root: bytes, top: os.stat_result, start_ns: int) -> None:
        self._cache = cache
        self._prefix = root.rstrip(b"/") + b"/"
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
        prefix = self._prefix + path + b"/" if path else self._prefix
        lstat = os.lstat
        try:
            status = [lstat(prefix + name) for name in known.files]
            below = [lstat(prefix + name) for name in known.directories]
        except OSError:  # something is gone
            self._differing[path] = None
            return
        if known.left_out:  # whether one of these is small enough by now, no stamp says
            self._differing[path] = None
        keys = keys_of(status, below)
        if keys != known.keys and path not in self._differing:
            self._differing[path] = _differing(known, keys)
        for name, at in zip(known.directories, below, strict=True):
            self._stamps[joined(path, name)] = self._stamp(at)

    def _stamp(self, status: os.stat_result) -> bytes:
        """What a directory's list of names goes with; nothing, if it proves nothing."""
        mtime_ns, ctime_ns = status.st_mtime_ns, status.st_ctime_ns
        if status.st_dev != self._device or policy.may_change_unseen(
            mtime_ns, ctime_ns, self._start_ns
        ):
            return NO_STAMP
        return words([mtime_ns, ctime_ns, status.st_ino])


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
