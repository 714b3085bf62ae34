"""The ignore rules of one directory in a walk, made when they are needed.

A directory that has not changed is taken from the cache together with the key of its rules. If
some name further down has to be matched after all, the ignore files above are read; then their
rules must have the key that the cache has.
"""

from collections.abc import Callable, Sequence

from hardsave.defaults import IGNORE_FILES
from hardsave.workspace.ignore.rules import Rules


class RulesChanged(Exception):
    """An ignore file changed after the walk had relied on its cached key."""


class DirectoryRules:
    """The rules of a directory, made only if some name has to be matched. `make` gets the names
    of the ignore files that there may be."""

    __slots__ = ("_made", "_make", "expected", "inside_ignored", "sources")

    def __init__(
        self,
        make: Callable[[Sequence[bytes]], Rules],
        *,
        inside_ignored: bool = False,
    ) -> None:
        self._make = make
        self._made: Rules | None = None
        self.inside_ignored = inside_ignored
        self.sources: Sequence[bytes] = IGNORE_FILES  # those that are there, once it is listed
        self.expected = b""  # the key that was taken from the cache, if one was

    def made(self) -> Rules:
        if self._made is None:
            made = self._make(self.sources)
            if self.expected and self.expected != made.key + self.suffix:
                raise RulesChanged
            self._made = made
        return self._made

    @property
    def suffix(self) -> bytes:
        return b"!" if self.inside_ignored else b""

    @property
    def key(self) -> bytes:
        return self.made().key + self.suffix
