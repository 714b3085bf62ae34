"""The lock of the daemon that answers hooks: one for each store and workspace.

It is a file beside the store that its holder has locked (`flock`): of several processes that try
at once exactly one gets it, and the kernel releases it with the process. It names its holder, and
the socket where hooks reach it. Most holders are evictable: they only make hooks quicker, lose
nothing when they end, and end at once (SIGTERM) when another process must be alone with the store.
"""

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Self

from hardsave.stores.host.processes import started
from hardsave.tuples import NamedTuple

SUFFIX = "-daemon"
_EVICTION_SECONDS = 3.0
_LARGEST = 8192
_hold: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
_signal: Callable[[int, int], None] | None = getattr(signal, "pidfd_send_signal", None)


class Holder(NamedTuple):
    """The process that has the lock, as it says itself."""

    pid: int
    began: int  # in the kernel's ticks, so that a number used again is noticed
    socket: str
    is_evictable: bool


class DaemonLock:
    """One that this process holds, from `take` to `close`."""

    def __init__(self, path: str, file: int) -> None:
        self.path = path
        self._file: int | None = file

    @classmethod
    def take(cls, path: str, socket: str, *, is_evictable: bool) -> Self | None:
        """None if another process has it. Hooks reach the holder at its socket."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock = cls(path, file)
            if not lock.is_in_place():
                raise BlockingIOError  # removed, with all that was there: the next one tries anew
            own = Holder(os.getpid(), started(os.getpid()) or 0, socket, is_evictable)
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(own).encode(), 0)
        except BlockingIOError:
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        return lock

    def is_in_place(self) -> bool:
        """Whether it is still the file that others find."""
        try:
            return self._file is not None and os.path.samestat(
                os.stat(self.path), os.fstat(self._file)
            )
        except OSError:
            return False

    def close(self) -> None:
        """To close twice does nothing."""
        file, self._file = self._file, None  # first: Ctrl-C must not leave it to be closed twice
        if file is not None:
            os.close(file)


def holder(path: str) -> Holder | None:
    """The process that holds a lock; None if none does that can be seen from here."""
    try:
        with open(path, "rb") as file:
            found = Holder(*json.loads(file.read(_LARGEST)))
        is_there = found.began != 0 and started(int(found.pid)) == found.began
    except (OSError, ValueError, TypeError):
        return None  # never taken, or being taken just now
    return found if is_there else None


def of_store(store: str) -> dict[str, Holder]:
    """The holders of a store's locks, by the path of the lock."""
    folder, name = os.path.split(os.path.abspath(store))
    try:
        found = [each for each in os.listdir(folder) if each.startswith(f"{name}-files-")]
    except OSError:
        return {}
    locks = [os.path.join(folder, each) for each in sorted(found) if each.endswith(SUFFIX)]
    return {path: who for path in locks if (who := holder(path)) is not None}


def evict(store: str) -> None:
    """Ask the evictable daemons of a store to end, and wait until they have, within reason."""
    end = time.monotonic() + _EVICTION_SECONDS
    for path in of_store(store):
        evict_from(path, seconds=max(end - time.monotonic(), 0))


def evict_from(path: str, *, seconds: float = _EVICTION_SECONDS) -> None:
    """Ask the holder of a lock to end, if it is evictable."""
    who = holder(path)
    if who is None or not who.is_evictable or who.pid == os.getpid():
        return
    if _hold is None or _signal is None:
        return  # where there are no evictable daemons either
    try:
        process = _hold(who.pid)  # from here on its number is not used again
    except OSError:
        return
    try:
        if holder(path) == who:
            _signal(process, signal.SIGTERM)
            select.select([process], [], [], seconds)  # until its last thread has ended
    except ProcessLookupError:
        pass  # it has just ended
    finally:
        os.close(process)
