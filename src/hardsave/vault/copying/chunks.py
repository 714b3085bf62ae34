"""Which commits of the source become one commit of the copy. Pure.

A batch adds entries of the ledger, then checkpoints, then its event, so a chunk is a run of commits
in this order. What hides checkpoints has to be an event: they are hidden by its number. So has what
names commits of the same chunk. The last chunk is known to be the last: what can change without a
commit of its own comes with it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hardsave.objects.records import CheckpointRecord, EntryRecord, Id, LogRecord
from hardsave.tuples import NamedTuple
from hardsave.vault.copying.events import Row
from hardsave.vault.copying.numbers import is_bookmark

MOST_ROWS = 500
MOST_BYTES = 4 << 20


class Event(NamedTuple):
    """A commit of the source, and the checkpoints that it stands for having hidden."""

    row: Row
    hides: Sequence[Id] = ()
    hid: Sequence[int] = ()  # the numbers of the commits of the source that hid them


class Chunk(NamedTuple):
    """What one commit of the copy adds."""

    events: Sequence[Event]
    is_last: bool


def with_hidden(
    rows: Iterable[Row], hidden: Mapping[int, Sequence[Id]], shown: Collection[int]
) -> Iterator[Event]:
    """Each row with the checkpoints that it hid. A commit that the log has forgotten can hide no
    more: the next one that hides nothing itself stands for it, unless what it hid is shown again.
    """
    waiting = sorted(hidden, reverse=True)
    orphans: list[int] = []
    for row in rows:
        while waiting and waiting[-1] < row.number:
            orphans.append(waiting.pop())
        orphans = [number for number in orphans if number not in shown]
        if waiting and waiting[-1] == row.number:
            number = waiting.pop()
            yield Event(row, hidden[number], (number,))
        elif orphans:
            hides = [id for number in orphans for id in hidden[number]]
            yield Event(row, hides, tuple(orphans))
            orphans = []
        else:
            yield Event(row)


def chunks(events: Iterable[Event]) -> Iterator[Chunk]:
    """In order, none of them empty."""
    found: list[Event] = []
    size = 0
    for event in events:
        if found and not _goes_with(found, event, size):
            yield Chunk(found, is_last=False)
            found, size = [], 0
        found.append(event)
        size += _size(event.row)
    if found:
        yield Chunk(found, is_last=True)


def _goes_with(before: Sequence[Event], event: Event, size: int) -> bool:
    last = before[-1]
    if len(before) >= MOST_ROWS or size >= MOST_BYTES:
        return False
    if last.hides or isinstance(last.row, LogRecord) or is_bookmark(last.row):
        return False
    if is_bookmark(event.row):
        return False
    # An entry behind a checkpoint was the event: nothing comes after it.
    is_entry = [isinstance(each.row, EntryRecord) for each in before]
    return not (is_entry[-1] and not all(is_entry))


def _size(row: Row) -> int:
    if isinstance(row, CheckpointRecord):
        return len(row.metadata) + len(row.summary or b"")
    return len(row.data)
