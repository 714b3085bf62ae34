"""What is remembered of a directory, from what a scan found and what was read. Pure."""

from hardsave.defaults import IGNORE_FILES
from hardsave.objects.hashing import HASH_BYTES
from hardsave.workspace.scan.cache import KEY_BYTES, NO_HASH, Folder
from hardsave.workspace.scan.result import Found
from hardsave.workspace.snapshot.file_reader import Read

Fresh = dict[int, Read | None]
"""Files of a directory that were read, by number; None: not captured after all."""


def has_same_entries(found: Found, known: Folder, fresh: Fresh) -> bool:
    """Whether nothing came or went, and all that is needed to write its runs is known: a cache
    does not know where symlinks lead, and rules are looked at more closely."""
    return (
        bool(known.runs)
        and tuple(found.files) == known.files
        and tuple(found.directories) == known.directories
        and not any(read is None or read.hash == NO_HASH for read in fresh.values())
        and not any(found.files[at] in IGNORE_FILES for at in fresh)
        and NO_HASH not in known.hashes
    )


def with_read(folder: Folder, keys: bytes, fresh: Fresh) -> Folder:
    """A directory as it is remembered, with these stamps and with what was read just now."""
    stamps, hashes = bytearray(keys), bytearray(folder.hashes)
    for at, read in fresh.items():
        assert read is not None, "then it would have other names"
        stamps[at * KEY_BYTES : (at + 1) * KEY_BYTES] = read.key.packed()
        hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES] = read.hash
    return folder._replace(keys=bytes(stamps), hashes=bytes(hashes))


def as_found(known: Folder, found: Found) -> Folder:
    """A directory with the same content, perhaps by other stamps or rules, or with other names
    that are left out."""
    now = (found.stamp, found.inherited, found.rules_key)
    aside = (tuple(found.ignored), tuple(found.exempt), tuple(found.left_out))
    if now == known[:3] and aside == known[6:9]:
        return known
    return Folder(*now, *known[3:6], *aside, *known[9:])


def has_other_rules(found: Found, fresh: Fresh) -> bool:
    """Whether an ignore file is not the one any more that the scan went by. If its stamps are
    too young to tell, they prove nothing to the next scan either."""
    return any(
        read is not None and read.key.ctime_ns and read.key != found.key(at)
        for at, read in fresh.items()
        if found.files[at] in IGNORE_FILES
    )
