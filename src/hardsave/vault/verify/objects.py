"""Every object against its hash, in the order in which they lie, and whether what they refer to
is stored.

Most references lead to what was met or referred to a short while before: a window on that answers
them. The others are gathered, and the store is asked about many at a time.
"""

from collections.abc import Collection

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.progress import Meter
from hardsave.vault.context import Context

WINDOW = 250_000  # hashes in each of two generations
ASKED_AT_ONCE = 200_000  # hashes; the store reads its directories once for them
_NO_REFS = b"\0"


class Expected:
    """What must be stored, because an object or a checkpoint refers to it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._young: set[Hash] = set()  # met or asked about lately
        self._old: set[Hash] = set()
        self._open: set[Hash] = set()  # to be asked about
        self._is_one_missing = False

    def met(self, hashes: Collection[Hash]) -> None:
        """These are stored."""
        self._young.update(hashes)
        if len(self._young) > WINDOW:
            self._old, self._young = self._young, set()

    def add(self, hashes: set[Hash]) -> None:
        """These are referred to."""
        self._open |= hashes - self._young - self._old
        self.met(hashes)  # asked about once is enough
        if len(self._open) > ASKED_AT_ONCE:
            self.are_stored()

    def are_stored(self) -> bool:
        """Whether all that was expected so far is there."""
        store, user = self._context.store, self._context.user
        if self._open and not self._is_one_missing:
            self._is_one_missing = bool(store.missing(user, self._open))
        self._open.clear()
        return not self._is_one_missing


def look_at_objects(context: Context, expected: Expected, read: Meter) -> int | None:
    """How many objects there are; None if one of them is damaged."""
    count = 0
    try:
        for part in context.store.scan(context.user):
            envelope.check(part.items())
            expected.met(part)
            data = part.values()
            referring = [envelope.refs(each) for each in data if each[1:2] != _NO_REFS]
            if referring:
                expected.add(set().union(*referring))
            count += len(part)
            read.add(len(part), sum(map(len, data)))
    except Corrupt:
        return None  # the walk that follows says which, and what it is part of
    return count
