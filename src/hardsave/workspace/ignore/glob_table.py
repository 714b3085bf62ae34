"""Many globs, one question: which is the last one that a name matches? Pure.

A walk asks once for every file, so what is common is cheap: names are looked up in a
dictionary, `*.ext` and `name*` are tried all at once, and the rest is one regular expression.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from hardsave.workspace.ignore.globs import Glob

NO_MATCH = -1
Matcher = Callable[[bytes], re.Match[bytes] | None]


class Table:
    """Globs with a rank each. Ranks are not negative."""

    __slots__ = ("_always", "_any", "_literals", "_others", "_prefixes", "_suffixes", "_trial")

    def __init__(self, ranked: Iterable[tuple[int, Glob]]) -> None:
        highest_first = sorted(ranked, key=lambda entry: -entry[0])
        self._always = max(
            (rank for rank, glob in highest_first if glob.suffix == b""), default=NO_MATCH
        )
        # A line that matches everything makes those before it pointless.
        entries = [entry for entry in highest_first if entry[0] > self._always]
        self._literals = {
            glob.literal: rank for rank, glob in reversed(entries) if glob.literal is not None
        }
        self._suffixes = {glob.suffix: rank for rank, glob in reversed(entries) if glob.suffix}
        self._prefixes = {glob.prefix: rank for rank, glob in reversed(entries) if glob.prefix}
        self._trial = (tuple(self._suffixes), tuple(self._prefixes))
        self._others = [(rank, glob.source) for rank, glob in entries if _is_other(glob)]
        self._any = matcher(tuple(source for _, source in self._others)) if self._others else None

    def find(self, name: bytes) -> int:
        """The highest rank of the globs that this name matches, or NO_MATCH."""
        found = self._literals.get(name, self._always)
        suffixes, prefixes = self._trial
        if name.endswith(suffixes):
            ranks = self._suffixes.items()
            found = max(found, *(rank for suffix, rank in ranks if name.endswith(suffix)))
        if name.startswith(prefixes):
            ranks = self._prefixes.items()
            found = max(found, *(rank for prefix, rank in ranks if name.startswith(prefix)))
        if self._any is not None and self._any(name):
            # Which of them it is has to be asked one by one: with a group for each, the time for
            # every name would grow with the square of their number.
            fitting = (rank for rank, source in self._others if matcher((source,))(name))
            found = max(found, next(fitting))
        return found


def _is_other(glob: Glob) -> bool:
    return glob.literal is None and glob.suffix is None and glob.prefix is None


@lru_cache(maxsize=4096)
def matcher(sources: tuple[bytes, ...]) -> Matcher:
    """A compiled expression that matches names which match one of these as a whole."""
    return re.compile(rb"(?:%b)\Z" % b"|".join(sources), re.DOTALL).match
