"""Hints that something was committed, by NOTIFY: for followers, beside their polling.

A NOTIFY inside a commit would take a lock of the whole server until its disk is synced. So each
process that commits has a connection of its own for that, on which one hint is sent for all commits
of the last moment, and each process that follows has one that listens. A failure of either
costs a hint, and no commit.
"""

import os
import threading
import weakref

import psycopg
from psycopg import sql

from hardsave.errors import HardsaveError
from hardsave.logs import log
from hardsave.stores.postgres.connections import Connection, Connections

_MOMENT = 0.02  # seconds: of the commits in it, one hint is sent
_LOOK = 0.5  # seconds until a thread sees that the store was closed
_TROUBLED = 1.0  # seconds before the next attempt
_TROUBLE = (HardsaveError, psycopg.Error, OSError)
_QUICK = "SELECT set_config('synchronous_commit', 'off', false)"  # there is nothing to keep


class News:
    """Of one store, in one process."""

    def __init__(self, connections: Connections, store_id: bytes) -> None:
        self._connections = connections
        self._channel = sql.Identifier(f"hardsave_{store_id.hex()[:16]}")
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._said = threading.Event()
        self._closed = threading.Event()
        self._waiting: weakref.WeakSet[threading.Event] = weakref.WeakSet()
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def tell(self) -> None:
        """Something was committed."""
        self._run("announcing")
        self._said.set()

    def listen(self, wake: threading.Event) -> None:
        self._run("listening")
        self._waiting.add(wake)

    def close(self) -> None:
        self._closed.set()
        self._said.set()
        if self._process == os.getpid():
            with self._lock:  # one that is being made has begun
                threads = list(self._threads.values())
            for thread in threads:
                thread.join(2 * _LOOK)

    def _run(self, what: str) -> None:
        if what in self._threads and self._process == os.getpid():
            return
        if self._process != os.getpid():  # a child of a fork has no threads of its parent
            self._begin()
        with self._lock:
            if what not in self._threads:
                work = self._announce if what == "announcing" else self._hear
                made = threading.Thread(target=work, name=f"hardsave-{what}", daemon=True)
                self._threads[what] = made
                made.start()

    def _announce(self) -> None:
        connection: Connection | None = None
        while True:
            self._said.wait()
            if self._closed.wait(_MOMENT):
                break
            self._said.clear()
            try:
                if connection is None:
                    connection = self._connections.connect()
                    connection.execute(_QUICK)
                connection.execute(sql.SQL("NOTIFY {}").format(self._channel))
            except _TROUBLE as error:
                _drop(connection, error)
                connection = None
                self._closed.wait(_TROUBLED)
        if connection is not None:
            connection.close()

    def _hear(self) -> None:
        connection: Connection | None = None
        while not self._closed.is_set():
            try:
                if connection is None:
                    connection = self._connections.connect()
                    connection.execute(sql.SQL("LISTEN {}").format(self._channel))
                    self._wake()  # hints were missed before
                for _ in connection.notifies(timeout=_LOOK, stop_after=1):
                    self._wake()
            except _TROUBLE as error:
                _drop(connection, error)
                connection = None
                self._closed.wait(_TROUBLED)
        if connection is not None:
            connection.close()

    def _wake(self) -> None:
        for event in list(self._waiting):
            event.set()


def _drop(connection: Connection | None, error: BaseException) -> None:
    """Lost: followers look by themselves, and the next attempt has another."""
    log(__name__).debug("hints of commits are late: %s", error)
    if connection is not None:
        connection.close()
