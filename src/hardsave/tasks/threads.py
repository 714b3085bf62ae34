"""Threads, and what it means that one cannot be started."""

import os
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from hardsave.errors import Misuse, Unavailable

T = TypeVar("T")


def start(thread: threading.Thread) -> None:
    """Start it; `Unavailable` if this process cannot have another one."""
    try:
        thread.start()
    except RuntimeError as error:
        raise Unavailable(
            f"thread {thread.name!r} cannot be started: {error}; let this process have fewer, or "
            "raise its limit (ulimit -u)"
        ) from error


class Shared:
    """Something that threads share by its mutex. In a forked child that is a new one: a thread of
    the parent's may have held it, as one that waits in a store for the fork to be made does, and
    in the child it would never let it go."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        _shared.add(self)

    def _begin_in_child(self) -> None:
        """All else that is a lock is made anew here, too: events and conditions."""
        self._mutex = threading.Lock()


_shared: "weakref.WeakSet[Shared]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for each in list(_shared):
        each._begin_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)


class Crew:
    """Threads that take up calls in the order in which they come: as many as are needed, up to a
    limit. They are daemons: a function that never returns keeps no program from ending.

    A call that is refused is not made. That is what it has over the pool of the standard library,
    which queues a call before it finds that it can start no thread, and makes it some time later.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._mutex = threading.Lock()
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._calls = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0
        self._is_closed = False
        self._is_over: Future[None] = Future()

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        """Have it made; `Unavailable` if there is no thread for it, and none to be had."""
        made: Future[T] = Future()
        with self._mutex:
            if self._is_closed:
                raise Misuse(f"the threads of {self._name!r} have ended")
            self._get_ready()
            self._calls.put((made, call))
        return made

    def _get_ready(self) -> None:
        if self._idle.acquire(blocking=False) or self._count == self._most:
            return
        name = f"{self._name}-{self._count}"
        try:
            start(threading.Thread(target=self._work, name=name, daemon=True))
        except Unavailable:
            if not self._count:
                raise
        else:
            self._count += 1

    def close(self) -> "Future[None]":
        """Take no more calls. What comes back is done when all that were taken have been made."""
        with self._mutex:
            if not self._is_closed:
                self._is_closed = True
                for _ in range(self._count):
                    self._calls.put(None)
                if not self._count:
                    self._is_over.set_result(None)
        return self._is_over

    def _work(self) -> None:
        while (taken := self._calls.get()) is not None:
            _make(*taken)
            del taken  # nothing is kept alive by a thread that waits
            self._idle.release()
        with self._mutex:
            self._count -= 1
            if not self._count:
                self._is_over.set_result(None)


def _make(made: "Future[Any]", call: Callable[[], Any]) -> None:
    if not made.set_running_or_notify_cancel():
        return
    try:
        made.set_result(call())
    except BaseException as error:  # noqa: BLE001 # the thread that waits for it is told
        made.set_exception(error)
