"""Every checkpoint in the order of commits: whether its parent is there, and whether numbers,
timelines, heads and log entries are."""

from array import array
from collections.abc import Iterator

from hardsave.errors import Corrupt
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.stores.base import Query
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault import operations
from hardsave.vault.context import Context
from hardsave.vault.verify.objects import Expected

_PAGE = 500
_WINDOW = 100_000  # ids of checkpoints, in each of two generations


class History(NamedTuple):
    """What was found on the way."""

    checkpoints: int
    faults: list[str]
    is_sound: bool  # if not, something may be wrong with one of the checkpoints


def look_at_history(context: Context, expected: Expected) -> History:
    """Look at every checkpoint, hidden ones too. What their states consist of is `expected`."""
    given = {line.name: line.last_seq for line in context.history.timelines()}
    runs: dict[str, array[int]] = {name: array("q") for name in given}
    faults: list[str] = []
    parents = _Parents(context)
    count, is_sound = 0, True
    for page in _pages(context):
        for record in page:
            seq: object = record.seq
            if not isinstance(seq, int):  # a damaged index may lead anywhere
                faults.append(f"commit {record.number} has {seq!r} for a number")
                continue
            count += 1
            _extend(runs.setdefault(record.timeline, array("q")), seq)
            parents.look_at(record)
        roots: set[object] = {root for record in page for root in record.roots}
        addresses = {root for root in roots if isinstance(root, bytes)}
        expected.add(addresses)
        is_sound &= len(addresses) == len(roots)
    for name, numbers in runs.items():
        faults += _faults_of_timeline(context, name, numbers, given.get(name, 0))
    return History(count, faults, is_sound and not parents.is_one_missing)


def _pages(context: Context) -> Iterator[list[CheckpointRecord]]:
    after = 0
    while rows := context.store.saved(context.user, after, _PAGE):
        yield rows
        after = rows[-1].number


def _extend(runs: "array[int]", seq: int) -> None:
    """Runs of numbers: the first and the last of each. Mostly there is one, which grows."""
    if runs and runs[-1] + 1 == seq:
        runs[-1] = seq
    else:
        runs.extend((seq, seq))


class _Parents:
    """Whether the parent of each checkpoint is there, or its tombstone."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._young: set[Id] = set()  # checkpoints met lately
        self._old: set[Id] = set()
        self.is_one_missing = False

    def look_at(self, record: CheckpointRecord) -> None:
        parent = record.parent
        if parent is not None and parent not in self._young and parent not in self._old:
            self.is_one_missing |= not is_accounted_for(self._context, parent)
        self._young.add(record.id)
        if len(self._young) > _WINDOW:
            self._old, self._young = self._young, set()


def is_accounted_for(context: Context, id: Id) -> bool:
    """Whether a checkpoint is there, or was dropped."""
    store, user = context.store, context.user
    return store.checkpoint(user, id) is not None or store.tombstone(user, id) is not None


def _faults_of_timeline(
    context: Context, name: str, runs: "array[int]", given: int
) -> Iterator[str]:
    if context.store.timeline(context.user, name) is None:
        yield f"timeline {name!r} has checkpoints, and is missing"
        return
    yield from _gaps(context, name, runs, given)
    yield from _headless(context, name)


def _headless(context: Context, name: str) -> Iterator[str]:
    """Whether the head of a timeline is missing, and stays so."""
    head: Id | None = None
    while (line := context.store.timeline(context.user, name)) is not None:
        if line.head is None or context.store.checkpoint(context.user, line.head) is not None:
            return
        if line.head == head:
            yield f"timeline {name!r}: its head {to_text(head)} is missing"
            return
        head = line.head  # it may have gone on, and this one been dropped, in between


def _gaps(context: Context, name: str, runs: "array[int]", given: int) -> Iterator[str]:
    """Numbers up to `given` of which neither checkpoint nor tombstone is left."""
    before: int | None = None
    while stones := context.store.tombstones(context.user, name, before, _PAGE):
        for stone in reversed(stones):
            _extend(runs, stone.seq)
        before = stones[-1].seq
    last = 0
    if runs and _begins_elsewhere(context, name, min(runs)):
        last = min(runs) - 1
    for first, end in [*sorted(zip(runs[::2], runs[1::2], strict=True)), (given + 1, given + 1)]:
        if first > last + 1:
            yield f"timeline {name!r}: numbers {last + 1} to {first - 1} missing"
        last = max(last, end)


def _begins_elsewhere(context: Context, name: str, first: int) -> bool:
    """Whether a timeline was imported beside one that has the numbers before its first."""
    if first == 1:
        return False
    store, user = context.store, context.user
    query = Query(timeline=name, seq=first, limit=1, hidden=True)
    rows, stones = store.checkpoints(user, query), store.tombstones(user, name, first + 1, 1)
    parents = [row.parent for row in rows] + [stone.parent for stone in stones]
    parent = parents[0] if parents else None
    if parent is None:
        return True
    below = store.checkpoint(user, parent) or store.tombstone(user, parent)
    return below is not None and below.timeline != name


def faults_of_log(context: Context) -> Iterator[str]:
    """Entries that could not be undone."""
    after = 0
    while rows := context.store.log(context.user, after, _PAGE):
        after = rows[-1].number
        for row in rows:
            try:
                operations.decode(row)
            except Corrupt as error:
                yield str(error)
