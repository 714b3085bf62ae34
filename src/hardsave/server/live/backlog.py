"""The newest events of a feed, encoded once for all of its clients, and bounded. Pure.

A client is a place in it, a number: it costs no memory that it lags behind, and one that is behind
the floor has missed something.
"""

from bisect import bisect_right
from collections.abc import Sequence

from hardsave.defaults import LIVE_EVENTS
from hardsave.server.live.sse import Reason
from hardsave.tuples import NamedTuple

# Twice what a client may be behind when it comes: it must not fall off while it catches up.
_MOST = 2 * LIVE_EVENTS
_MOST_BYTES = 4 << 20
_PART_BYTES = 64 << 10  # about the size of a message: what a connection has to hold


class Item(NamedTuple):
    """An event: what filters look at, and its JSON."""

    number: int
    kind: str
    timeline: str | None
    task: str | None
    data: bytes


class Wanted(NamedTuple):
    """Which events a client asks for: of a timeline, of some kinds; None and none: of all."""

    timeline: str | None = None
    kinds: frozenset[str] = frozenset()

    def has(self, item: Item) -> bool:
        """What names neither a timeline nor a task may be about any timeline."""
        if self.kinds and item.kind not in self.kinds:
            return False
        if self.timeline is None or item.timeline == self.timeline:
            return True
        return item.timeline is None and item.task is None


class Backlog:
    """All events with numbers above `floor`, up to `position`."""

    def __init__(self, position: int, *, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self.floor = position
        self.position = position
        self.lost: Reason = "slow"  # why events below the floor are not here
        self.era = 0  # rises when numbers may have been given again
        self._most = most
        self._most_bytes = most_bytes
        self._items: list[Item] = []
        self._bytes = 0

    def add(self, items: Sequence[Item], position: int) -> None:
        """What has happened since: all up to `position`."""
        self._items += items
        self._bytes += _size(items)
        self.position = position
        self._trim()

    def add_before(self, items: Sequence[Item], after: int, upto: int) -> None:
        """What happened before: all above `after`, up to `upto`, which was the floor. If that has
        risen by now, nothing is added: something would be missing in between."""
        if self.floor == upto:
            self._items[:0] = items
            self._bytes += _size(items)
            self.floor = after

    def jump(self, position: int) -> None:
        """Too much has happened: nothing up to `position` will be here."""
        self.add([], position)
        self._items, self._bytes, self.floor = [], 0, position
        self.lost = "far_behind"

    def begin_anew(self, position: int) -> None:
        """The store was put back to how it was before: numbers may have been given again."""
        self.jump(position)
        self.lost = "store_changed"
        self.era += 1

    def is_far_behind(self, number: int) -> bool:
        """Whether a client that comes with this number has missed too much to be told all of it."""
        if number < self.floor:
            return True
        missed = self._items[self._index(number) :]
        return len(missed) > self._most // 2 or _size(missed) > self._most_bytes // 2

    def room_before(self) -> tuple[int, int]:
        """How many events, and bytes of them, can be added below the floor."""
        return (
            max(0, self._most // 2 - len(self._items)),
            max(0, self._most_bytes // 2 - self._bytes),
        )

    def part(self, number: int, wanted: Wanted) -> tuple[list[bytes], int]:
        """What a client wants of the next events behind a number, as many as fit into a message,
        and the number that it has been told all up to."""
        found: list[bytes] = []
        size = 0
        for item in self._items[self._index(number) :]:
            if wanted.has(item):
                found.append(item.data)
                size += len(item.data)
            if size >= _PART_BYTES:
                return found, item.number
        return found, max(number, self.position)

    def _index(self, number: int) -> int:
        return bisect_right(self._items, number, key=lambda item: item.number)

    def _trim(self) -> None:
        gone = max(0, len(self._items) - self._most)
        self._bytes -= _size(self._items[:gone])
        while self._bytes > self._most_bytes:
            self._bytes -= len(self._items[gone].data)
            gone += 1
        if gone:
            self.floor = self._items[gone - 1].number
            self.lost = "slow"
            del self._items[:gone]


def _size(items: Sequence[Item]) -> int:
    return sum(len(item.data) for item in items)
