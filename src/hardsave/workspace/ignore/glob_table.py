"""Many globs, one question: which is the last one that a name matches? Pure.

A walk asks once for every file, so what is common is cheap: names are looked up in a
dictionary, `*.ext` and `name*` are tried all at once, and the rest is one regular expression. To
compile that takes as long as to look at many names, so it is made where there are many.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from hardsave.workspace.ignore.globs import Glob

NO_MATCH = -1
Matcher = Callable[[bytes], re.Match[bytes] | None]


class Table:
    """Globs with a rank each. Ranks are not negative."""

    __slots__ = (
        "_always",
        "_any",
        "_asked",
        "_literals",
        "_others",
        "_prefixes",
        "_suffixes",
        "_trial",
    )

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
        self._others = [(rank, glob) for rank, glob in entries if _is_other(glob)]
        self._any: Matcher | None = None
        self._asked = 0

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
        if self._others and self._may_match_others(name):
            # Which of them it is has to be asked one by one: with a group for each, the time for
            # every name would grow with the square of their number.
            fitting = (rank for rank, glob in self._others if fits(glob, name))
            found = max(found, next(fitting, NO_MATCH))
        return found

    def _may_match_others(self, name: bytes) -> bool:
        if self._any is None:
            self._asked += 1
            if self._asked <= len(self._others):
                return True
            self._any = matcher(tuple(glob.source for _, glob in self._others))
        return self._any(name) is not None


def _is_other(glob: Glob) -> bool:
    return glob.literal is None and glob.suffix is None and glob.prefix is None


def fits(glob: Glob, name: bytes) -> bool:
    """Whether a glob matches a name; without an expression, if it has no classes."""
    texts = glob.texts
    if any(text and text not in name for text in texts):
        return False
    if None in texts:
        return matcher((glob.source,))(name) is not None
    first, *others = (text for text in texts if text is not None)
    if not others:
        return name == first
    *middle, last = others
    at = len(first) if name.startswith(first) else -1
    for text in middle:  # the first place where one fits is always good enough
        found = name.find(text, at) if at >= 0 else -1
        at = found + len(text) if found >= 0 else -1
    return at >= 0 and name.endswith(last) and at + len(last) <= len(name)


@lru_cache(maxsize=4096)
def matcher(sources: tuple[bytes, ...]) -> Matcher:
    """A compiled expression that matches names which match one of these as a whole."""
    return re.compile(rb"(?:%b)\Z" % b"|".join(sources), re.DOTALL).match
