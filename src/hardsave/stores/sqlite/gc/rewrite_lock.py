"""The lock of a process that rewrites a store, every page of it: writers wait for its end.

SQLite keeps writers out for as long as that takes, which for a large file is longer than a writer
waits for a lock. So the process that does it holds a lock that says so. Writers that could not
begin look for it: if it is held, what keeps them is at work and not stuck.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hardsave.errors import Unavailable
from hardsave.stores.local.file_lock import FileLock

A = TypeVar("A")
T = TypeVar("T")

PATIENCE_SECONDS = 600.0
_SUFFIX = "-rewriting"


class NotBegun(Exception):
    """Another process has the file; nothing was written."""


@contextmanager
def announced(path: str) -> Iterator[None]:
    """While this process writes the file at `path` anew; one after the other."""
    lock = FileLock(path + _SUFFIX)
    _acquire(lock, path)
    try:
        yield
    finally:
        lock.release()
        lock.close()


def waited_for(path: str) -> bool:
    """Wait until no process rewrites it any more; False if none did."""
    if not is_under_way(path):
        return False
    with announced(path):
        return True


def is_under_way(path: str) -> bool:
    try:
        file = os.open(path + _SUFFIX, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def past(path: str, attempt: Callable[[A], T], given: A) -> T:
    """What an attempt comes to. One that has `NotBegun` because the file was being written anew
    is repeated afterwards."""
    while True:
        try:
            return attempt(given)
        except NotBegun:
            if not waited_for(path):
                raise


def _acquire(lock: FileLock, path: str) -> None:
    try:
        lock.acquire(PATIENCE_SECONDS)
    except Unavailable as error:
        raise Unavailable(
            f"another process has been writing {path} anew for {PATIENCE_SECONDS:.0f} s, as a "
            "purge does, and no other can write meanwhile; repeat this when it has ended"
        ) from error
