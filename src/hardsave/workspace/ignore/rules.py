"""Which files a workspace ignores: git's rules, exactly, and `.hardsaveignore` like them.

Two things are left to the walk: it does not enter a directory that is ignored, so nothing
below one can be included again; and what git tracks is never ignored (see `git.tracked_in`).

The rules of a directory are those of the directory above, one name further along (see `patterns`).
So a match compares one name, and most directories of a tree share one `IgnoreRules`. Where no
ignore file says anything, nothing is loaded that would understand it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from hardsave.objects.hashing import digest

if TYPE_CHECKING:
    from hardsave.workspace.ignore.patterns import State

_MEANING = b"ignore 1\0"  # raised when a key of today would not mean what it meant


class Rules(Protocol):
    """The ignore rules that hold in one directory, from the global ones down to its own."""

    @property
    def key(self) -> bytes:
        """Two directories whose rules have one key ignore the same names, also further down."""

    def enter(self, name: bytes, patterns: Sequence[bytes]) -> "Rules":
        """Those of a directory in it; `patterns` are the contents of its ignore files."""

    def match(self, name: bytes, is_dir: bool) -> bool:
        """Whether an entry of this directory is ignored."""


RootRules = Callable[[Sequence[bytes]], Rules]
"""The rules of a workspace's top directory, from the contents of its ignore files."""


class IgnoreRules:
    """Immutable: what applies inside one directory.

    `key` is a hash of all that decides here and further down. Directories with the same key
    ignore the same names; a comment, or a line for another directory, does not change it.
    """

    __slots__ = ("_inside", "_states", "key")

    def __init__(self, states: "tuple[State, ...]") -> None:
        self._states = states  # the deepest ignore files first
        self._inside: dict[tuple[State, ...], IgnoreRules] = {states: self}
        self.key: bytes = digest(_MEANING + b"".join(state.digest for state in states))

    def enter(self, name: bytes, patterns: Sequence[bytes]) -> "IgnoreRules":
        """The rules inside the directory `name`, which has ignore files with these contents.

        Later files decide over earlier ones: `.gitignore` first, then `.hardsaveignore`.
        """
        below = (state.enter(name) for state in self._states)
        own = _own(patterns)
        states = (*own, *(state for state in below if state.matters))
        known = self._inside.get(states)
        if known is None:
            known = IgnoreRules(states)
            if not own:
                self._inside[states] = known
        return known

    def match(self, name: bytes, is_dir: bool) -> bool:
        """Whether this entry of the directory is ignored. A symlink is not a directory."""
        for state in self._states:
            found = state.find(name, is_dir)
            if found >= 0:  # below that there is no line that decides
                return found & 1 == 1
        return False


def root_rules(*, exclude_files: Sequence[bytes], patterns: Sequence[bytes]) -> IgnoreRules:
    """The rules inside the root of a workspace.

    Later files decide over earlier ones. To do as git does, `exclude_files` are the contents
    of the user's global excludes file, then of `.git/info/exclude`; `patterns` are those of
    the root's own `.gitignore`, then `.hardsaveignore`.
    """
    return IgnoreRules(_own((*exclude_files, *patterns)))


def _own(contents: Sequence[bytes]) -> "tuple[State, ...]":
    """What the ignore files of a directory mean in it; nothing if they say nothing."""
    if not any(contents):
        return ()
    from hardsave.workspace.ignore.patterns import layer_of

    state = layer_of(tuple(contents)).opening()
    return (state,) if state.matters else ()
