"""The stores that this process has open: which share a file, and what a fork does to them.

SQLite's locks belong to a process, and what it remembers of them does not survive a fork: a child
that went on with what it inherited could lose what it saved. So no connection crosses one;
parent and child open their own when they next need them.
"""

import os
import threading
import weakref
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from hardsave.logs import log


class OpenStore(Protocol):
    """A store, as far as forks concern it."""

    path: str

    @property
    def is_open(self) -> bool:
        """Whether it holds connections."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


# One at a time: what is open in this process must not change while a file is looked at.
_turn = threading.RLock()
_stores: "weakref.WeakSet[OpenStore]" = weakref.WeakSet()
_forking = threading.Lock()
_held: list[OpenStore] = []  # until the fork is made


def turn() -> AbstractContextManager[object]:
    """Held by the thread that opens a store."""
    return _turn


def add(store: OpenStore) -> None:
    _stores.add(store)


def has(path: str) -> bool:
    """Whether a store of this process holds connections to the file at `path`."""
    return any(store.is_open and _is_same_file(store.path, path) for store in _stores)


def _is_same_file(one: str, other: str) -> bool:
    return one == other or (
        os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
    )


def _before_fork() -> None:
    """No thread has a store open afterwards, and none opens one before the fork is made."""
    _forking.acquire()
    while True:
        _turn.acquire()
        others = [store for store in _stores if store not in _held]
        if not others:
            return
        _turn.release()  # a thread that waits in a store to open it again is let through
        for store in others:
            _held.append(store)
            try:
                store.before_fork()
            except Exception:  # noqa: BLE001 # the other stores matter no less
                log(__name__).exception("%s is not closed before a fork", store.path)


def _after_fork_in_parent() -> None:
    with suppress(RuntimeError):  # an interrupt may have kept it, or a store, from being held
        _turn.release()
    while _held:
        with suppress(RuntimeError):
            _held.pop().after_fork_in_parent()
    _forking.release()


def _after_fork_in_child() -> None:
    global _turn, _forking  # those of a thread that is gone would never be released
    _turn, _forking = threading.RLock(), threading.Lock()
    while _held:
        _held.pop().after_fork_in_child()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
