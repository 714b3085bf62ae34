"""Connections whose server says nothing: cut when their statement is overdue.

The server ends a statement that takes too long, and the network tells of a peer that is gone. What
neither tells is a server, or something on the way to it, that is there and never answers: the
driver would wait for ever. One thread of this process looks at all that wait.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg

_GRACE = 2.0  # seconds for the answer that a statement was ended
_LOOK_SECONDS = 0.5


class _Watch:
    """The statements of one process that wait for an answer."""

    def __init__(self) -> None:
        self._process = 0
        self._due: dict[int, tuple[float, psycopg.Connection[Any]]] = {}
        self._some = threading.Event()

    def add(self, connection: psycopg.Connection[Any], seconds: float) -> int:
        if self._process != os.getpid():  # a child of a fork has no thread of its parent
            self._due, self._some, self._process = {}, threading.Event(), os.getpid()
            threading.Thread(target=self._look, name="hardsave-overdue", daemon=True).start()
        key = id(connection)
        self._due[key] = (time.monotonic() + seconds, connection)
        self._some.set()
        return key

    def remove(self, key: int) -> None:
        self._due.pop(key, None)

    def _look(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            waiting = list(self._due.values())
            if not waiting:
                self._some.clear()
            if self._due:  # one that came in between
                self._some.set()
            for at, connection in waiting:
                if at <= now:
                    _cut(connection)


def _cut(connection: psycopg.Connection[Any]) -> None:
    """The thread that waits is told that the connection is lost."""
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as ours,
    ):
        ours.shutdown(socket.SHUT_RDWR)


_watch = _Watch()


@contextlib.contextmanager
def answered_within(connection: psycopg.Connection[Any], seconds: float) -> Iterator[None]:
    """Statements of the block must be answered by then, and a moment later."""
    key = _watch.add(connection, seconds + _GRACE)
    try:
        yield
    finally:
        _watch.remove(key)
