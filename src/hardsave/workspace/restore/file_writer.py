"""Contents from a store into open files, so many at a time as may be held in memory."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping

from hardsave.objects.hashing import Hash
from hardsave.progress import Meter
from hardsave.workspace.entries import Entry
from hardsave.workspace.restore.plan import Step
from hardsave.workspace.snapshot import content
from hardsave.workspace.snapshot.content import PART_BYTES, Fetch

_AT_ONCE = 64
_AT_ONCE_BYTES = 4 << 20
_ZEROS = bytes(PART_BYTES)

Numbered = tuple[int, Step]


def in_portions(writes: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Those whose contents are fetched together."""
    some: list[Numbered] = []
    total = 0
    for number, step in writes:
        assert step.after is not None
        if some and (len(some) == _AT_ONCE or total + step.after.size > _AT_ONCE_BYTES):
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
    """A fetch that has the small contents of a portion already."""
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
    """Long runs of zeros become holes again."""
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
