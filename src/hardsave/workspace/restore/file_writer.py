"""New files: contents from the store, the attributes of the file before, and many syncs at once.

So many contents are fetched together as may be held in memory.

What a snapshot does not hold stays with a file whose content is replaced: owner, group, extended
attributes, and with them its access control list. A process that may not give a file away replaces
it with one of its own, as every editor does.

A sync waits for the disk, and most file systems answer those who wait at the same time together: a
few threads that wait are several times faster than one. Each file is synced for itself, so that an
error is known of the file that it happened to.
"""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from hardsave.objects.hashing import Hash
from hardsave.progress import Meter
from hardsave.workspace.entries import Entry
from hardsave.workspace.restore.plan import Step
from hardsave.workspace.snapshot import content
from hardsave.workspace.snapshot.content import PART_BYTES, Fetch

_AT_ONCE = 64
_AT_ONCE_BYTES = 4 << 20
_MANY_AT_ONCE = 1024
_MANY_BYTES = 16 << 20
_ZEROS = bytes(PART_BYTES)
# Rights that were given to a program, not to another one in its place.
_OF_THE_CONTENT = frozenset(["security.capability", "security.ima", "security.evm"])
_FEW_SYNCS = 4  # not worth a thread
_THREADS = 16

Numbered = tuple[int, Step]


def in_large_portions(writes: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """The same for files that are not open together: a server is asked few times."""
    return in_portions(writes, most=_MANY_AT_ONCE, most_bytes=_MANY_BYTES)


def in_portions(
    writes: Iterable[Numbered], *, most: int = _AT_ONCE, most_bytes: int = _AT_ONCE_BYTES
) -> Iterator[list[Numbered]]:
    """Split writes into groups whose contents are fetched together."""
    some: list[Numbered] = []
    total = 0
    for number, step in writes:
        assert step.after is not None
        if some and (len(some) == most or total + step.after.size > most_bytes):
            yield some
            some, total = [], 0
        some.append((number, step))
        total += step.after.size
    if some:
        yield some


def length(writes: Iterable[Numbered]) -> int:
    """How many bytes all contents are together."""
    return sum(step.after.size for _, step in writes if step.after is not None)


def with_small(some: Iterable[Numbered], fetch: Fetch) -> Fetch:
    """A fetch that has fetched the small contents of a group already."""
    wanted = {
        step.after.hash
        for _, step in some
        if step.after is not None and step.after.hash and step.after.size <= PART_BYTES
    }
    near = fetch(wanted) if wanted else {}

    def get(addresses: Collection[Hash]) -> Mapping[Hash, bytes]:
        return near if all(address in near for address in addresses) else fetch(addresses)

    return get


def fill(file: int, entry: Entry, fetch: Fetch, written: Meter) -> None:
    """Write a content into an open file. Long runs of zeros become holes again."""
    assert entry.hash is not None
    at = 0
    for part in content.read(entry.hash, entry.size, fetch):
        if part != _ZEROS:
            _write_at(file, part, at)
        at += len(part)
        written.add(bytes=len(part))
    os.ftruncate(file, entry.size)


def _write_at(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view, at)
        view, at = view[count:], at + count


def copy_attributes(old: int, new: int) -> None:
    """From one open file to another. Set the mode afterwards: `chown` may change it."""
    before, after = os.fstat(old), os.fstat(new)
    for owner, group in ((before.st_uid, before.st_gid), (-1, before.st_gid)):
        if (before.st_uid, before.st_gid) == (after.st_uid, after.st_gid):
            break
        with suppress(OSError):
            os.fchown(new, owner, group)
            break
    if sys.platform == "linux":
        with suppress(OSError):  # a file system without any
            for name in os.listxattr(old):
                if name not in _OF_THE_CONTENT:
                    with suppress(OSError):
                        os.setxattr(new, name, os.getxattr(old, name))


def synced(files: Sequence[int]) -> list[OSError | None]:
    """Sync open files. Returns the error of each, or None."""
    if len(files) <= _FEW_SYNCS:
        return [_synced(file) for file in files]
    from concurrent.futures import ThreadPoolExecutor  # most restores are small

    found: dict[int, OSError | None] = {}

    def sync(file: int) -> None:
        found[file] = _synced(file)

    # Where no further thread can be had, the rest is done here. What a thread has done is not done
    # again: the kernel tells an error of a file once.
    with (
        suppress(RuntimeError),
        ThreadPoolExecutor(min(_THREADS, len(files)), "hardsave-sync") as pool,
    ):
        for file in files:
            pool.submit(sync, file)
    return [found[file] if file in found else _synced(file) for file in files]


def _synced(file: int) -> OSError | None:
    try:
        os.fsync(file)
    except OSError as error:
        return error
    return None
