"""The stores that this process has open: who else is at a file, and what a fork does to them.

SQLite's locks belong to a process, and what it remembers of them does not survive a fork: a child
that went on with what it inherited could lose what it saved. So no connection crosses one;
parent and child open their own when they next need them.
"""

import os
import threading
import weakref
from typing import Protocol


class Opened(Protocol):
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
_stores: "weakref.WeakSet[Opened]" = weakref.WeakSet()


def turn() -> threading.Lock:
    """Held by whoever opens a store."""
    return _turn


def add(store: Opened) -> None:
    _stores.add(store)


def has(path: str) -> bool:
    """Whether a store of this process holds connections to the file at `path`."""
    return any(store.is_open and _is_same_file(store.path, path) for store in _stores)


def _is_same_file(one: str, other: str) -> bool:
    return one == other or (
        os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
    )


def _before_fork() -> None:
    for store in list(_stores):
        store.before_fork()


def _after_fork_in_parent() -> None:
    for store in list(_stores):
        store.after_fork_in_parent()


def _after_fork_in_child() -> None:
    global _turn  # noqa: PLW0603 # the old one may be held by a thread that is gone
    _turn = threading.Lock()
    for store in list(_stores):
        store.after_fork_in_child()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
