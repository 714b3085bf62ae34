"""What a scan takes and what it leaves out, decided over plain data.

Ignore rules come from elsewhere and are only asked. Everything that is left out for another
reason has that reason said.
"""

import os
import stat
from collections.abc import Callable
from functools import cached_property

from hardsave.defaults import MAX_FILE_BYTES, MAX_TOTAL_BYTES
from hardsave.errors import Misuse
from hardsave.objects.hashing import digest
from hardsave.tuples import NamedTuple
from hardsave.workspace import file_names
from hardsave.workspace.entries import lies_in, parent


class _Given(NamedTuple):
    include: tuple[bytes, ...] = ()  # patterns: captured although secret or ignored
    own: tuple[bytes, ...] = ()  # how paths of ours in the workspace begin; a NUL is their end
    max_file_bytes: int = MAX_FILE_BYTES
    max_total_bytes: int = MAX_TOTAL_BYTES


class Policy(_Given):
    """What a workspace captures, beside its ignore rules."""

    @cached_property
    def chosen(self) -> file_names.Chosen:
        return file_names.Chosen(self.include)

    @cached_property
    def key(self) -> bytes:
        """Changes whenever something could be left out that was not, or the other way round."""
        parts = (*self.chosen.patterns, b"", *self.own, b"%d" % self.max_file_bytes)
        return digest(b"\0".join(parts))

    def objection(self, path: bytes, mode: int, size: int) -> str | None:
        """Why something that is not ignored is left out all the same; None if it is not."""
        name = path.rpartition(b"/")[2]
        if file_names.is_gits_own(name):
            return "git's own"
        if name.startswith(file_names.TEMPORARY_PREFIX):
            return "left by a restore that was interrupted"
        if self.own and (path + b"\0").startswith(self.own):
            return "a file of the store"
        if not stat.S_ISREG(mode):
            return None if stat.S_ISDIR(mode) or stat.S_ISLNK(mode) else _kind(mode)
        if file_names.looks_secret(name) and not self.chosen.holds(path):
            return "looks secret; 'include' can ask for it"
        if size > self.max_file_bytes:
            return f"larger than the cap of {self.max_file_bytes} bytes a file"
        return None


DEFAULT = Policy()


class Exempt:
    """Paths that no ignore rule counts for: what git tracks, and what was asked for.

    A tracked path that ends with a slash stands for everything below it.
    """

    def __init__(
        self,
        tracked: Callable[[], frozenset[bytes]],
        chosen: file_names.Chosen = file_names.NONE_CHOSEN,
    ) -> None:
        self._ask = tracked
        self._chosen = chosen if chosen.patterns else None
        self._inner: dict[bytes, Exempt] = {}

    def add(self, top: bytes, tracked: Callable[[], frozenset[bytes]]) -> None:
        """From now on also what a repository inside tracks, by paths relative to its top."""
        self._inner[top + b"/"] = Exempt(tracked)

    @cached_property
    def _tracked(self) -> frozenset[bytes]:
        return self._ask()

    def holds(self, path: bytes) -> bool:
        """Directories count in which something tracked lies."""
        if self._tracked and self._is_tracked(path):
            return True
        if self._inner and self._is_tracked_inside(path):
            return True
        return self._chosen is not None and self._chosen.spares(path)

    def _is_tracked_inside(self, path: bytes) -> bool:
        return any(
            path.startswith(top) and each.holds(path[len(top) :])
            for top, each in self._inner.items()
        )

    def _is_tracked(self, path: bytes) -> bool:
        above, whole = self._directories
        return path in self._tracked or path in above or any(map(path.startswith, whole))

    @cached_property
    def _directories(self) -> tuple[set[bytes], list[bytes]]:
        """Those that something tracked lies in, and those that are tracked as a whole."""
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


def refuse_what_is_too_wide(root: bytes, home: bytes) -> None:
    """A snapshot of a whole home, or of everything, is hardly ever what somebody wants."""
    inner = home.strip(b"/")
    if lies_in(inner, root.strip(b"/")):
        shown = os.fsdecode(root)
        raise Misuse(
            f"the workspace {shown!r} holds a whole home directory; "
            "name a project's directory, or say that you are sure with sure=True"
        )
