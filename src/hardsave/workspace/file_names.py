"""Which names may stand in a tree, and which are git's own or our own.

Pure. A stored tree may come from an untrusted store, so its names are checked before they are
used; names on a disk are checked by the same functions, so that what is captured can be restored.
"""

import re
from functools import cache

TEMPORARY_PREFIX = b".hardsave-tmp-"
"""Files that a restore, or a tool of an agent, has not put in their place yet. Never captured."""


# Code points that HFS+ leaves out when it compares names: `.g<U+200C>it` is `.git` there.
_UNSEEN = (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)


@cache  # most processes never meet such a name
def _gits_own() -> re.Pattern[bytes]:
    unseen = b"(?:%s)*" % b"|".join(chr(point).encode() for point in _UNSEEN)
    letters = unseen + unseen.join((rb"\.", b"g", b"i", b"t")) + unseen
    return re.compile(rb"(?:%b|git~[0-9]+)[ .]*(?::.*)?\Z" % letters, re.IGNORECASE | re.DOTALL)


def is_gits_own(name: bytes) -> bool:
    """Whether git, on some system, would take this for its own directory.

    NTFS leaves out spaces and dots at the end, calls `.git` also `git~1`, and takes what follows a
    colon for a stream of the same file.
    """
    if not name.isascii():
        return _gits_own().match(name) is not None
    plain = name.lower()
    if not plain.startswith((b".git", b"git~")):
        return False
    plain = plain.partition(b":")[0].rstrip(b" .")
    return plain == b".git" or (plain.startswith(b"git~") and plain[4:].isdigit())


def fault(name: bytes) -> str | None:
    """Why a name must not stand in a tree; None if it may."""
    if name in (b"", b".", b".."):
        return "it does not name an entry"
    if b"/" in name or b"\0" in name:
        return "it is more than one name"
    if is_gits_own(name):
        return "it is git's own"
    return None
