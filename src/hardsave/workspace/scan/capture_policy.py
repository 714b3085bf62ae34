"""What a scan captures and what it leaves out beside ignored files: the caps, secrets, our own
files. Pure.

Each file that is left out for such a reason is listed with it.
"""

import re
import stat
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import cached_property

from hardsave.defaults import MAX_FILE_BYTES, MAX_TOTAL_BYTES
from hardsave.objects.hashing import digest
from hardsave.tuples import NamedTuple
from hardsave.workspace import file_names
from hardsave.workspace.entries import above, parent
from hardsave.workspace.scan.secret_names import looks_secret

_WILD = (b"*", b"?", b"[")


class IncludePatterns:
    """The patterns of `include`: each is compared with the name and with the whole path."""

    def __init__(self, patterns: Iterable[bytes] = ()) -> None:
        self.patterns = tuple(sorted({pattern.rstrip(b"/") for pattern in patterns}))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        translated = [translate(pattern.decode("latin-1")) for pattern in self.patterns]
        return re.compile("|".join(translated or ["(?!)"]).encode("latin-1"), re.DOTALL)

    def holds(self, path: bytes) -> bool:
        name = path.rpartition(b"/")[2]
        return bool(self._pattern.match(path) or self._pattern.match(name))

    def overrides_ignore(self, path: bytes) -> bool:
        """Whether no ignore rule counts for a path: it is included, lies in a directory that is,
        or leads to a path that is. A secret has to be included by its own name."""
        return path in self._on_the_way or any(self.holds(each) for each in (path, *above(path)))

    @cached_property
    def _on_the_way(self) -> frozenset[bytes]:
        """Directories that lead to included paths, if the pattern names them without wildcards."""
        over = {each for pattern in self.patterns for each in above(pattern)}
        return frozenset(each for each in over if not any(mark in each for mark in _WILD))


NO_INCLUDES = IncludePatterns()


class _Given(NamedTuple):
    include: tuple[bytes, ...] = ()  # patterns: captured although secret or ignored
    own: tuple[bytes, ...] = ()  # how paths of our own files begin; a NUL is their end
    max_file_bytes: int = MAX_FILE_BYTES
    max_total_bytes: int = MAX_TOTAL_BYTES


class Policy(_Given):
    """What a workspace captures, beside its ignore rules."""

    @cached_property
    def includes(self) -> IncludePatterns:
        return IncludePatterns(self.include)

    @cached_property
    def key(self) -> bytes:
        """Changes whenever the policy could decide otherwise about some path."""
        parts = (*self.includes.patterns, b"", *self.own, b"%d" % self.max_file_bytes)
        return digest(b"\0".join(parts))

    def is_own(self, path: bytes) -> bool:
        """Whether it is a file of the store."""
        return bool(self.own) and (path + b"\0").startswith(self.own)

    def objection(self, path: bytes, mode: int, size: int) -> str | None:
        """Why a path that is not ignored is left out all the same; None if it is captured."""
        name = path.rpartition(b"/")[2]
        if file_names.is_gits_own(name):
            return "git's own"
        if name.startswith(file_names.TEMPORARY_PREFIX):
            return "left by a restore that was interrupted"
        if self.is_own(path):
            return "a file of the store"
        if not stat.S_ISREG(mode):
            return None if stat.S_ISDIR(mode) or stat.S_ISLNK(mode) else _kind(mode)
        if looks_secret(name) and not self.includes.holds(path):
            return "looks secret; 'include' can ask for it"
        if size > self.max_file_bytes:
            return f"larger than the cap of {self.max_file_bytes} bytes a file"
        return None


DEFAULT_POLICY = Policy()


class Exempt:
    """Paths for which no ignore rule counts: what git tracks, and what is included.

    A tracked path that ends with a slash stands for everything below it.
    """

    def __init__(
        self,
        tracked: Callable[[], frozenset[bytes]],
        includes: IncludePatterns = NO_INCLUDES,
    ) -> None:
        self._ask = tracked
        self._includes = includes if includes.patterns else None
        self._nested: dict[bytes, Exempt] = {}

    def add(self, top: bytes, tracked: Callable[[], frozenset[bytes]]) -> None:
        """Add what a nested repository tracks, by paths relative to its top."""
        self._nested[top + b"/"] = Exempt(tracked)

    @cached_property
    def _tracked(self) -> frozenset[bytes]:
        return self._ask()

    def holds(self, path: bytes) -> bool:
        """Whether no ignore rule counts for a path, or for a path beneath it."""
        if self._tracked and self._is_tracked(path):
            return True
        if self._nested and self._is_tracked_inside(path):
            return True
        return self._includes is not None and self._includes.overrides_ignore(path)

    def _is_tracked_inside(self, path: bytes) -> bool:
        return any(
            path.startswith(top) and each.holds(path[len(top) :])
            for top, each in self._nested.items()
        )

    def _is_tracked(self, path: bytes) -> bool:
        above, whole = self._directories
        return path in self._tracked or path in above or any(map(path.startswith, whole))

    @cached_property
    def _directories(self) -> tuple[set[bytes], list[bytes]]:
        """Directories with tracked paths in them, and directories that are tracked as a whole."""
        known: set[bytes] = set()
        for path in self._tracked:
            above = parent(path)
            while above and above not in known:
                known.add(above)
                above = parent(above)
        return known, [path for path in self._tracked if path.endswith(b"/")]


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
