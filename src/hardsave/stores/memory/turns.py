"""The turns of a store in memory: its threads take them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.stores.base import Turn
from hardsave.stores.local.turns import checked


class MemoryTurns:
    """Which turns are taken, and the notes of those that had them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[str] = set()
        self._notes: dict[str, bytes] = {}

    @contextmanager
    def take(self, name: str) -> Iterator[Turn | None]:
        """The turn of this name; None if another caller has it."""
        with self._lock:
            is_ours = name not in self._taken
            self._taken.add(name)
        if not is_ours:
            yield None
            return
        try:
            yield _MemoryTurn(self._notes, name)
        finally:
            with self._lock:
                self._taken.discard(name)


class _MemoryTurn:
    def __init__(self, notes: dict[str, bytes], name: str) -> None:
        self._notes = notes
        self._name = name

    def read(self) -> bytes:
        return self._notes.get(self._name, b"")

    def write(self, note: bytes) -> None:
        self._notes[self._name] = checked(note)
