"""Handlers that are told what happened. One that fails is reported, and breaks nothing."""

import threading
from collections.abc import Callable
from typing import Any, Literal, get_args

from hardsave.errors import Misuse
from hardsave.logs import log
from hardsave.record import Record

EventName = Literal[
    "checkpoint_saved",
    "save_failed",
    "forked",
    "rewound",
    "checkpoint_restored",
    "undone",
    "redone",
    "cleared",
    "deleted",
    "imported",
    "retained",
    "collected",
    "purged",
    "task_added",
    "task_claimed",
    "task_progressed",
    "task_completed",
    "task_failed",
    "task_asked",
    "task_answered",
    "task_handed_back",
    "task_interrupted",
    "task_cancelled",
    "task_retried",
    "task_woken",
    "task_rolled_back",
    "task_reinstated",
]

Handler = Callable[..., Any]


class SaveFailed(Record):
    """A save that was not made, as far as is known."""

    timeline: str
    error: Exception
    """Mostly one of ours; also what no store could foresee, as when memory is short."""


def is_async(handler: Any) -> bool:
    """Whether calling `handler` gives something to await."""
    functions = (handler, getattr(handler, "__call__", None))  # noqa: B004 # its function is wanted
    codes = [getattr(function, "__code__", None) for function in functions]
    return any(code.co_flags & 0x80 for code in codes if code)  # as inspect looks at it


def _is_callable(handler: Any) -> bool:
    return callable(handler)


class Events:
    """Handlers by the name of their event, called in the order they were added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers: dict[str, tuple[tuple[Handler], ...]] = {}  # a tuple each: one of a kind
        self._told: dict[str, int] = {}

    def on(self, event: EventName, handler: Handler) -> Callable[[], None]:
        """Call `handler` at every `event`; what comes back takes it away again."""
        if event not in get_args(EventName):
            known = ", ".join(get_args(EventName))
            raise Misuse(f"there is no event {event!r}; there are: {known}")
        if is_async(handler) or not _is_callable(handler):
            raise Misuse(f"a handler is a plain function; {handler!r} is not (see hardsave.aio)")
        entry = (handler,)
        with self._lock:
            self._handlers[event] = (*self._handlers.get(event, ()), entry)

        def off() -> None:
            with self._lock:
                left = [other for other in self._handlers.get(event, ()) if other is not entry]
                self._handlers[event] = tuple(left)

        return off

    def has_handlers(self, event: str) -> bool:
        """Whether there is a handler for it."""
        return bool(self._handlers.get(event))

    def count(self, event: EventName) -> int:
        """How often it has happened since the vault was opened."""
        return self._told.get(event, 0)

    def tell(self, event: EventName, *about: object) -> None:
        with self._lock:
            self._told[event] = self._told.get(event, 0) + 1
        for (handler,) in self._handlers.get(event, ()):
            try:
                handler(*about)
            except Exception:  # noqa: BLE001 # anything at all: what has been saved is saved
                log(__name__).exception("a handler of %s failed: %r", event, handler)
