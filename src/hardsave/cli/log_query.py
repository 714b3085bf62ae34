"""Which checkpoints a log shows, and in which order: newest first, children before parents."""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from hardsave import Checkpoint, Timeline
from hardsave.timeline.names import KINDS
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import record_of

_BY_HAND = tuple(kind for kind in KINDS if kind != "automatic")


class Wanted(NamedTuple):
    """Which checkpoints of a timeline; None does not filter."""

    limit: int
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_filtered(self) -> bool:
        return any(value is not None for value in self[1:])


class Log(NamedTuple):
    """What a log shows."""

    checkpoints: list[Checkpoint]
    heads: dict[str, list[str]]  # names of timelines by the id of their head
    has_more: bool
    is_filtered: bool = False  # what is left out may be of any age

    def with_head(self, line: Timeline) -> "Log":
        """The same with the head of a timeline, which may be older than all of these after a
        rewind: a log shows where it is."""
        head = line.head
        if self.is_filtered or head is None or head in self.checkpoints:
            return self
        return self._replace(checkpoints=[*self.checkpoints, head])


def gather(lines: Iterable[Timeline], wanted: Wanted) -> Log:
    """The newest checkpoints of some timelines, and of what they were forked from."""
    found: dict[str, Checkpoint] = {}
    heads: dict[str, list[str]] = {}
    has_more = False
    for line in lines:
        head = line.head
        if head is not None:
            heads.setdefault(head.id, []).append(line.name)
        page = line.checkpoints(**wanted._asdict())
        has_more = has_more or page.next is not None
        found.update((each.id, each) for each in page)
        if head is not None and not wanted.is_filtered:
            origin = [head, *islice(line.ancestors(), wanted.limit)]
            found.update((each.id, each) for each in origin)
    ordered = sorted(found.values(), key=lambda each: -record_of(each).number)
    has_more = has_more or len(ordered) > wanted.limit
    return Log(ordered[: wanted.limit], heads, has_more, wanted.is_filtered)


def pick_list(line: Timeline, limit: int) -> Log:
    """The checkpoints that a picker shows: the newest, the head, and what was saved by hand or has
    a name, which is what people look for when it is old."""
    newest = gather([line], Wanted(limit))
    if not newest.has_more:
        return newest
    by_hand = (one for kind in _BY_HAND for one in line.checkpoints(kind=kind, limit=limit))
    found = {one.id: one for one in (*newest.with_head(line).checkpoints, *by_hand)}
    ordered = sorted(found.values(), key=lambda one: -record_of(one).number)
    return newest._replace(checkpoints=ordered)
