"""A sequence as a Merkle tree whose shape depends on its content alone.

Level 0 holds the items, level k+1 one entry for each closed chunk of level k. A chunk ends
after an entry whose own bytes say so (about one in four references, or every kilobyte of
small values), so removing, inserting or changing an item disturbs the chunks around it and
the path above them, and everything else keeps its hash. What lies after the last closed
chunk of a level is its open edge.

The root holds the open items and points to the edge of level 1, which points to the edge
of level 2, and so on: an append rewrites the levels it touches, usually only the lowest.

`Levels` keeps either all entries (`full`), so that any part can be replaced, or the edges
alone, which is all that appending needs.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from zlib import crc32

from hardsave.objects import envelope, wire
from hardsave.objects.hashing import Hash, digest
from hardsave.tuples import NamedTuple

REF_WEIGHT = 256
MEAN_WEIGHT = 1024  # a chunk's mean: four references, or 1 KiB of inline values
MAX_WEIGHT = 8 * MEAN_WEIGHT  # content that never says "cut here" is cut here
_REF_CUTS = 256 * REF_WEIGHT // MEAN_WEIGHT
# A chunk has at least two entries, so that every level is at most half as long as the one below.


class Entry(NamedTuple):
    """One entry of a level.

    At level 0 `data` is the item's encoding (key and value for maps), with a REF mark where
    the value is an object of its own; above, `data` is empty. `covers` is how many items lie
    beneath it.
    """

    data: bytes
    ref: Hash | None
    covers: int = 1


class Out(dict[Hash, bytes]):
    """Objects made, by hash, and all that they refer to."""

    def __init__(self) -> None:
        self.refs: set[Hash] = set()

    def put(self, kind: int, refs: Sequence[Hash], payload: bytes) -> Hash:
        data = envelope.seal(kind, refs, payload)
        address = digest(data)
        self[address] = data
        if refs:
            self.refs.update(refs)
        return address

    def add(self, other: "Out") -> None:
        self.update(other)
        self.refs |= other.refs


class _Level:
    """Known entries, and where the closed chunks at their front end."""

    __slots__ = ("edge", "ends", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.ends: list[int] = []
        self.edge: tuple[Hash | None, Hash] | None = None  # (next edge, own hash) when written

    @property
    def closed(self) -> int:
        """So many entries are in closed chunks."""
        return self.ends[-1] if self.ends else 0

    @property
    def tail(self) -> list[Entry]:
        return self.entries[self.closed :]


def chunk_end(entries: Sequence[Entry], start: int) -> int | None:
    """The end of the chunk that begins at `start`; None while it is still open.

    An entry's own content asks for a boundary after it: the first byte of its hash, or the
    checksum of its data, the likelier the longer it is.
    """
    total = 0
    for at in range(start, len(entries)):
        data, ref, _ = entries[at]
        if ref is not None:
            total += REF_WEIGHT
            ends = ref[0] < _REF_CUTS
        else:
            total += len(data)
            ends = crc32(data) % MEAN_WEIGHT < len(data)
        if at > start and (ends or total >= MAX_WEIGHT):
            return at + 1
    return None


class Levels:
    """A sequence of `stride` values per item (1 for lists, 2 for maps)."""

    def __init__(self, stride: int, *, full: bool) -> None:
        self.stride = stride
        self.full = full
        self.count = 0
        self._levels = [_Level()]

    @classmethod
    def resumed(cls, stride: int, count: int, tails: Iterable[list[Entry]]) -> "Levels":
        """The edges of a stored sequence, lowest first: enough to append."""
        levels = cls(stride, full=False)
        levels.count = count
        levels._levels = []
        for tail in tails:
            level = _Level()
            level.entries = tail
            levels._levels.append(level)
        return levels

    def entry(self, at: int) -> Entry:
        return self._levels[0].entries[at]

    def known(self, low: int, high: int) -> set[Hash]:
        """The objects that items `low` to `high` refer to."""
        return {entry.ref for entry in self._levels[0].entries[low:high] if entry.ref}

    def append(self, new: Sequence[Entry], out: Out) -> None:
        """Add items at the end."""
        self.count += len(new)
        self._extend(0, new, out)

    def _extend(self, number: int, new: Sequence[Entry], out: Out) -> None:
        """Add entries at the end of a level, and what they close above it."""
        while new:
            level = self._level(number)
            level.entries.extend(new)
            level.edge = None
            new = self._close(level, number, out)
            number += 1

    def replace(self, at: int, entry: Entry, out: Out) -> None:
        """Replace one item. Only for `full` ones."""
        level = self._levels[0]
        if level.entries[at] == entry:
            return
        if at < level.closed:
            self.splice(at, at + 1, [entry], out)
            return
        level.entries[at] = entry  # in the open edge: nothing before it can change
        level.edge = None
        made = self._close(level, 0, out)
        if made:
            self._extend(1, made, out)

    def splice(self, low: int, high: int, new: Sequence[Entry], out: Out) -> None:
        """Replace items `low` to `high`. Only for `full` ones."""
        assert self.full, "the edges alone cannot be spliced"
        self.count += len(new) - (high - low)
        entries = self._levels[0].entries
        same = 0  # what stays as it was at either end is left alone
        while same < min(high - low, len(new)) and entries[low + same] == new[same]:
            same += 1
        low, new = low + same, new[same:]
        same = 0
        while same < min(high - low, len(new)) and entries[high - 1 - same] == new[-1 - same]:
            same += 1
        high, new = high - same, new[: len(new) - same]
        number = 0
        while high > low or new:
            level = self._level(number)
            if low >= level.closed:  # in the open edge: nothing before it can change
                level.entries[low:high] = new
                level.edge = None
                low = high = len(level.ends)
                new = self._close(level, number, out)
            else:
                low, high, new = self._rechunk(level, number, low, high, new, out)
            number += 1
        while len(self._levels) > 1 and not self._levels[-1].entries:
            self._levels.pop()

    def root(self, head: bytes, out: Out) -> Hash:
        """Write the open edges; the address of the whole. `head` opens the root's payload."""
        following: Hash | None = None
        for level in self._levels[:0:-1]:
            if level.edge is None or level.edge[0] != following:
                level.edge = following, self._edge(level, following, out)
            following = level.edge[1]
        level = self._levels[0]
        if level.edge is None or level.edge[0] != following:
            items = level.tail
            refs = [entry.ref for entry in items if entry.ref is not None]
            payload = (
                head
                + wire.integer(self.count)
                + (b"\xc3" if following else b"\xc2")
                + wire.array_header(len(items) * self.stride)
                + b"".join([entry.data for entry in items])
            )
            if following:
                refs.append(following)
            level.edge = following, out.put(envelope.SEQUENCE, refs, payload)
        return level.edge[1]

    def _level(self, number: int) -> _Level:
        if number == len(self._levels):
            self._levels.append(_Level())
        return self._levels[number]

    def _close(self, level: _Level, number: int, out: Out) -> list[Entry]:
        """Close what can be closed at the end of a level; the entries of the level above."""
        made: list[Entry] = []
        start = level.closed
        while (end := chunk_end(level.entries, start)) is not None:
            made.append(self._chunk(level.entries[start:end], number, out))
            level.ends.append(end)
            start = end
        if not self.full:
            del level.entries[:start]
            level.ends.clear()
        return made

    def _rechunk(
        self, level: _Level, number: int, low: int, high: int, new: Sequence[Entry], out: Out
    ) -> tuple[int, int, list[Entry]]:
        """Splice one level; what has to be spliced into the level above."""
        ends = level.ends
        first = bisect_right(ends, low)  # the chunk that holds entry `low`
        start = ends[first - 1] if first else 0
        level.entries[low:high] = new
        level.edge = None
        grown = len(new) - (high - low)
        made: list[Entry] = []
        fresh: list[int] = []
        last = first
        while True:
            # In step with the old chunks again: past the change, and at an old boundary.
            while last < len(ends) and ends[last] + grown <= start:
                last += 1
            old_boundary = start - grown == (ends[last - 1] if last else 0)
            if start >= low + len(new) and old_boundary:
                break
            end = chunk_end(level.entries, start)
            if end is None:
                last = len(ends)
                break
            made.append(self._chunk(level.entries[start:end], number, out))
            fresh.append(end)
            start = end
        if grown:
            ends[last:] = [end + grown for end in ends[last:]]
        ends[first:last] = fresh
        return first, last, made

    def _chunk(self, entries: Sequence[Entry], number: int, out: Out) -> Entry:
        refs = [entry.ref for entry in entries if entry.ref is not None]
        if number == 0:
            payload = wire.array_header(len(entries) * self.stride) + b"".join(
                [entry.data for entry in entries]
            )
            return Entry(b"", out.put(envelope.LEAF, refs, payload), len(entries))
        counts = [entry.covers for entry in entries]
        payload = wire.array([wire.integer(count) for count in counts])
        return Entry(b"", out.put(envelope.NODE, refs, payload), sum(counts))

    def _edge(self, level: _Level, following: Hash | None, out: Out) -> Hash:
        tail = level.tail
        counts = wire.array([wire.integer(entry.covers) for entry in tail])
        refs = [entry.ref for entry in tail if entry.ref is not None]
        refs += [following] if following else []
        flag = b"\xc3" if following else b"\xc2"
        return out.put(envelope.EDGE, refs, b"\x92" + flag + counts)
