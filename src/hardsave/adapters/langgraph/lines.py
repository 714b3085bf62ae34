"""Handles on the timelines of threads: one a namespace, because each remembers what it saved last,
and saves cost what is new since then."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import hardsave
from hardsave.adapters.langgraph.memory import Memory

_KEPT = 256  # handles that are not at work: each remembers a state


class Line:
    """What is known of a namespace of a thread in this process."""

    def __init__(self, line: hardsave.Timeline, turn: threading.Lock) -> None:
        self.line = line
        self.turn = turn  # of all namespaces of the thread: each put says what it comes after
        self.lock = threading.Lock()  # of what is below, and for one save after the other
        self.early: dict[str, dict[str, Any]] = {}  # writes whose checkpoint is still to come
        self.last: tuple[str, hardsave.Checkpoint] | None = None  # the id that was saved last
        self.channels: dict[str, tuple[Any, Any]] = {}  # versions of channels, and plain values
        self.memory: dict[str, Memory] = {}  # of channels that hold messages
        self.eras: dict[str, str] = {}  # of checkpoints that the timeline was taken back to
        self.users = 0


class Lines:
    """The handles of a saver. Threads share them."""

    def __init__(self, vault: hardsave.Vault) -> None:
        self._vault = vault
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str], Line] = OrderedDict()
        self._turns = WeakValueDictionary[str, threading.Lock]()

    @contextmanager
    def at(self, timeline: str, namespace: str) -> Iterator[Line]:
        """The handle, which stays as long as it is used."""
        key = (timeline, namespace)
        with self._lock:
            found = self._held.get(key)
            if found is None:
                turn = self._turns.setdefault(timeline, threading.Lock())
                found = self._held[key] = Line(self._vault.timeline(timeline), turn)
            self._held.move_to_end(key)
            found.users += 1
        try:
            yield found
        finally:
            with self._lock:
                found.users -= 1
                self._let_go()

    def doubt(self, timeline: str) -> None:
        """Some of its checkpoints were deleted."""
        with self._lock:
            for key, line in self._held.items():
                if key[0] == timeline:
                    line.last = None

    def forget(self, timeline: str) -> None:
        """Its checkpoints were deleted."""
        with self._lock:
            for key in [key for key in self._held if key[0] == timeline]:
                del self._held[key]

    def _let_go(self) -> None:
        over = len(self._held) - _KEPT
        if over > 0:
            idle = (
                key
                for key, each in self._held.items()
                if not (each.users or each.early or each.eras)
            )
            for key in [key for key, _ in zip(idle, range(over), strict=False)]:
                del self._held[key]
