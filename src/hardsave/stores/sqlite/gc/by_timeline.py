"""Where objects go when packs are put in order by timeline: the deciding half, over plain data.

Saves of many timelines come in turn, so the messages of one lie in as many packs. Of a *window*,
that is of neighbouring packs, all objects are put in order: those of one timeline side by side, and
each behind those that it refers to, because no object may lie in an older pack than what it
refers to. A timeline is then read from one place a window.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from hardsave.objects.hashing import Hash
from hardsave.stores.sqlite.gc.merge import PackRow
from hardsave.stores.sqlite.gc.reachability import Refs

WINDOW_BYTES = 20 * 1024 * 1024  # of objects: how much is put in order at once
TARGET_BYTES = 1024 * 1024  # of a pack with objects of one timeline
MIXED_BYTES = 32 * 1024  # of one with several: a read of one timeline reads the others with it
OLD_TIMES = 8  # as much as is new, of what was put in order before, is put in order with it


def windows(standing: Sequence[PackRow], upto: int) -> list[list[PackRow]]:
    """Packs that are put in order together, if there are any above `upto`; up to there they are in
    order. Of these the newest come along with what is new: else each call would leave a small
    window, and a timeline would be read from as many places."""
    begin = sum(row.id <= upto for row in standing)
    new = _size(standing[begin:])
    most = min(WINDOW_BYTES, max(TARGET_BYTES, OLD_TIMES * new))
    size = new
    while new and begin and size + standing[begin - 1].size <= most:
        begin -= 1
        size += standing[begin].size
    found: list[list[PackRow]] = []
    free = 0
    for row in standing[begin:]:
        if row.size > free:
            found.append([])
            free = WINDOW_BYTES
        found[-1].append(row)
        free -= row.size
    return found


def _size(rows: Sequence[PackRow]) -> int:
    return sum(row.size for row in rows)


Placed = tuple[int | None, Hash]
"""A timeline, None for what none of them leads to, and an object of it."""


def in_order(
    objects: Mapping[Hash, bytes], timelines: Mapping[Hash, int], refs: Refs
) -> Iterator[Placed]:
    """The objects of a window by timeline, each behind those that it refers to.

    `timelines` says which timeline a root is of. What several lead to goes to the first of them.
    """
    roots: list[Placed] = [(timelines[each], each) for each in objects if each in timelines]
    roots.sort(key=lambda root: root[0] or 0)
    done: set[Hash] = set()
    for timeline, root in chain(roots, ((None, address) for address in objects)):
        if root not in done:
            for address in _below(objects, root, refs, done):
                yield timeline, address


def _below(
    objects: Mapping[Hash, bytes], root: Hash, refs: Refs, done: set[Hash]
) -> Iterator[Hash]:
    """An object behind all that it leads to, as far as it is here and not done."""
    stack = [(root, iter(refs(objects[root])))]
    done.add(root)
    while stack:
        address, left = stack[-1]
        ref = next((ref for ref in left if ref in objects and ref not in done), None)
        if ref is None:
            stack.pop()
            yield address
        else:
            done.add(ref)
            stack.append((ref, iter(refs(objects[ref]))))


def cut(placed: Iterable[Placed], objects: Mapping[Hash, bytes], most: int) -> list[list[Hash]]:
    """The same in packs, at most so many of them."""
    made = list(_cut(placed, objects))
    while len(made) > most:  # two adjacent packs become one
        made = [list(chain(*made[at : at + 2])) for at in range(0, len(made), 2)]
    return made


def _cut(placed: Iterable[Placed], objects: Mapping[Hash, bytes]) -> Iterator[list[Hash]]:
    batch: list[Hash] = []
    size = 0
    before: int | None = None
    for timeline, address in placed:
        limit = MIXED_BYTES if timeline != before else TARGET_BYTES
        if batch and size + len(objects[address]) > limit:
            yield batch
            batch, size = [], 0
        batch.append(address)
        size += len(objects[address])
        before = timeline
    if batch:
        yield batch
