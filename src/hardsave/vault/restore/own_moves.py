"""How operations through one vault have moved heads, so that its handles can tell them from the
saves of other writers.

A handle expects the head that it last saw. A restore saves the present before it touches files,
and an undo moves heads without a handle: neither is another writer's save. The checkpoint that a
restore makes carries the state of the head, so any handle may save on top of it. A head that an
undo or redo has moved is another state: only the caller of it has seen it go, which is a
thread, or a task of coroutines.
"""

import threading
from collections import OrderedDict
from contextvars import ContextVar

from hardsave.objects.records import Id, TimelineRecord
from hardsave.stores.base import position

_KEPT = 1_000

Position = tuple[Id | None, int] | None

task: ContextVar[object] = ContextVar("hardsave_task", default=None)
"""The task of coroutines that makes a call: one thread or another runs it."""


def _caller() -> object:
    found = task.get()
    return threading.get_ident() if found is None else found


class OwnMoves:
    """From where to where, for each timeline. The oldest are forgotten: then a handle gets the
    `Conflict` that it would get from another writer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._after: OrderedDict[tuple[str, Position], tuple[Position, object]] = OrderedDict()

    def note(
        self, name: str, before: Position, after: Position, *, is_same_state: bool = False
    ) -> None:
        caller = None if is_same_state else _caller()
        with self._lock:
            self._after.pop((name, before), None)
            self._after[name, before] = (after, caller)
            if len(self._after) > _KEPT:
                self._after.popitem(last=False)

    def lead(self, seen: TimelineRecord | None, standing: TimelineRecord | None) -> bool:
        """Whether they alone have moved a timeline from where it was seen to where it stands."""
        if standing is None:
            return False
        at, goal, passed = position(seen), position(standing), set[Position]()
        while at != goal and at not in passed:
            passed.add(at)
            with self._lock:
                found = self._after.get((standing.name, at))
            if found is None or found[1] not in (None, _caller()):
                return False
            at = found[0]
        return at == goal and bool(passed)
