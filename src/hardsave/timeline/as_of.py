"""Where a directory was at a moment: at what was saved in it last, on any timeline, unless a
rewind, an undo or a redo came after that. Pure.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from hardsave.tuples import NamedTuple


class Saved(NamedTuple):
    """A checkpoint with files of the directory."""

    id: str
    number: int  # of its commit
    created_at: datetime


class Done(NamedTuple):
    """An operation on a timeline of the directory."""

    kind: str
    timeline: str | None
    number: int
    created_at: datetime
    to: str = ""  # of a rewind: the checkpoint that it went to


def as_of(
    moment: datetime,
    last: Saved | None,
    done: Iterable[Done],
    saved_before: Callable[[int], str | None],
) -> str | None:
    """The id of the checkpoint that a directory was at right before a moment. `last` is the latest
    that was saved before it; `saved_before` finds the latest before a commit."""
    if last is None:
        return None
    walk = _Walk(last, saved_before)
    for each in sorted(done, key=lambda one: one.number):
        if each.created_at < moment:
            walk.pass_by(each)
    return walk.at


class _Walk:
    """Along operations, oldest first. Those from before the last save have no say any more, but a
    later undo may take one of them back."""

    def __init__(self, last: Saved, saved_before: Callable[[int], str | None]) -> None:
        self.at: str | None = last.id
        self._last = last.number
        self._saved_before = saved_before
        self._standing: list[Done] = []
        self._undone: list[Done] = []
        self._left: dict[int, str | None] = {}  # by operation: where the directory was before it

    def pass_by(self, one: Done) -> None:
        if one.kind == "undo":
            self._go_back(one, _pop(self._standing, one.timeline))
        elif one.kind == "redo":
            self._go(one, _pop(self._undone, one.timeline))
        else:
            self._go(one, one)

    def _go(self, now: Done, one: Done | None) -> None:
        if one is None:
            return
        self._standing.append(one)
        if now.number > self._last and one.kind == "rewind":
            self._left[one.number] = self.at
            self.at = one.to

    def _go_back(self, now: Done, one: Done | None) -> None:
        """What was there before an operation was saved before it."""
        if one is None:
            return
        self._undone.append(one)
        if now.number > self._last and one.kind == "rewind":
            known = one.number in self._left
            self.at = self._left[one.number] if known else self._saved_before(one.number)


def _pop(done: list[Done], timeline: str | None) -> Done | None:
    """The latest of a timeline, taken out."""
    for at in range(len(done) - 1, -1, -1):
        if done[at].timeline == timeline:
            return done.pop(at)
    return None
