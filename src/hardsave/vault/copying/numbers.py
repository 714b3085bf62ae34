"""Which number a commit has in the copy, and rows with the numbers that they name there. Pure.

Every store gives out its own numbers: the commits of one user come in the same order in both,
with other gaps. Checkpoints say by which commit they were hidden; operations, and bookmarks in the
ledger, name commits in their data.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from hardsave.objects.codec import Codec
from hardsave.objects.records import CheckpointRecord, EntryRecord, LogRecord
from hardsave.vault import operations
from hardsave.vault.copying.events import Row

BOOKMARK = "bookmark "  # how the kinds of these entries begin
_codec = Codec()  # entries are plain data


class Numbers:
    """Of the commits that were copied so far, in both stores."""

    def __init__(self) -> None:
        self._source = array("q")
        self._copy = array("q")

    def meet(self, number: int) -> None:
        """The next commit of the source, which is not copied yet."""
        self._source.append(number)

    def give(self, number: int) -> None:
        """The number of the first of those that had none yet."""
        self._copy.append(number)

    def of(self, number: int) -> int:
        """In the copy: of this commit, or of the last one before it; 0 if there is none."""
        at = bisect_right(self._source, number)
        return self._copy[at - 1] if at else 0

    def between(self, first: int, end: int) -> int:
        """How many commits of the source are known that have these numbers, without `end`."""
        return bisect_left(self._source, end) - bisect_left(self._source, first)


def is_bookmark(row: Row) -> bool:
    return isinstance(row, EntryRecord) and row.task is None and row.kind.startswith(BOOKMARK)


def renumbered(row: Row, numbers: Numbers, *, stones: int = 0) -> Row:
    """A row as the copy has it, but for its own number and what hides it. `stones`: so many numbers
    right before its own are of tombstones that come with it."""
    if isinstance(row, LogRecord) and row.kind in operations.KINDS + operations.STEPS:
        return row._replace(data=_changed(row.data, _of_operation(row, numbers, stones)))
    if isinstance(row, EntryRecord) and is_bookmark(row):
        return row._replace(data=_changed(row.data, {"number": numbers.of}))
    return row


def hidden_in_copy(row: CheckpointRecord, hidden: Mapping[int, int], numbers: Numbers) -> int:
    """The number in the copy by which a checkpoint is hidden, below 0 if it is shown again.
    `hidden` has the commit of the source that stands for each that hid something."""
    standing = hidden.get(abs(row.hidden))
    if standing is None:
        return 0
    return numbers.of(standing) * (1 if row.hidden > 0 else -1)


def _of_operation(
    row: LogRecord, numbers: Numbers, stones: int
) -> Mapping[str, Callable[[Any], Any]]:
    def all_of(found: list[int]) -> list[int]:
        return [numbers.of(each) for each in found]

    return {
        "shown": all_of,
        "hidden_again": all_of,
        "turned": numbers.of,
        "lost": lambda marks: [[numbers.of(number), id] for number, id in marks],
        "added": lambda count: stones + numbers.between(row.number - count, row.number),
    }


def _changed(data: bytes, changes: Mapping[str, Callable[[Any], Any]]) -> bytes:
    found = dict(_codec.decode(data))
    if not changes.keys() & found.keys():
        return data
    return _codec.encode(
        {key: changes[key](value) if key in changes else value for key, value in found.items()}
    )
