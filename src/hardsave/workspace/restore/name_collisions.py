"""Names that some file systems take for one: they differ in case alone, or in how their letters
are composed. Pure.

There, a file must not be made before the one with the other name is gone: it would be taken for
it, and removed.
"""

import unicodedata
from collections.abc import Iterable

from hardsave.workspace.entries import last_name


def folded(path: bytes) -> bytes:
    """The same for all paths that may be taken for each other."""
    if path.isascii():
        return path.lower()
    text = path.decode("utf-8", "surrogateescape")
    text = unicodedata.normalize("NFD", text).casefold()
    return unicodedata.normalize("NFD", text).encode("utf-8", "surrogateescape")


def collisions(gone: Iterable[bytes], made: Iterable[bytes]) -> frozenset[bytes]:
    """Of paths that go and paths that are made, those whose own names may be taken for one of
    the other kind. What lies beneath them is not listed."""
    going: dict[bytes, list[bytes]] = {}
    for path in gone:
        going.setdefault(folded(path), []).append(path)
    found: set[bytes] = set()
    for path in made:
        others = [
            each for each in going.get(folded(path), ()) if last_name(each) != last_name(path)
        ]
        if others:
            found |= {path, *others}
    return frozenset(found)
