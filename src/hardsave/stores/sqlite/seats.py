"""Seats: who stays with a store to answer hooks, one for each workspace.

A seat is a file beside the store that its holder has locked (`flock`): of several who come at once
exactly one gets it, and the kernel gives it back with the process. It says who sits there, and
where hooks reach him. Most of them are guests: they stay for others' convenience alone, lose
nothing when they go, and leave at once when somebody must be alone with the store (SIGTERM).
"""

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Self

from hardsave.stores.processes import started
from hardsave.tuples import NamedTuple

ENDING = "-seat"
_LEAVING_SECONDS = 3.0
_LARGEST = 8192
_hold: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
_signal: Callable[[int, int], None] | None = getattr(signal, "pidfd_send_signal", None)


class Sitter(NamedTuple):
    """Who sits there, as it says itself."""

    pid: int
    began: int  # in the kernel's ticks, so that a number used again is noticed
    socket: str
    is_guest: bool


class Seat:
    """One that this process holds, from `take` to `close`."""

    def __init__(self, path: str, file: int) -> None:
        self.path = path
        self._file: int | None = file

    @classmethod
    def take(cls, path: str, socket: str, *, is_guest: bool) -> Self | None:
        """None if somebody sits there. Whoever is named in it, hooks can reach."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            seat = cls(path, file)
            if not seat.is_in_place():
                raise BlockingIOError  # removed, with all that was there: the next one asks anew
            own = Sitter(os.getpid(), started(os.getpid()) or 0, socket, is_guest)
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(own).encode(), 0)
        except BlockingIOError:
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        return seat

    def is_in_place(self) -> bool:
        """Whether it is still the one that others find."""
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


def sitter(path: str) -> Sitter | None:
    """Who sits there; None if nobody does who can be seen from here."""
    try:
        with open(path, "rb") as file:
            found = Sitter(*json.loads(file.read(_LARGEST)))
        is_there = found.began != 0 and started(int(found.pid)) == found.began
    except (OSError, ValueError, TypeError):
        return None  # never taken, or being taken just now
    return found if is_there else None


def of_store(store: str) -> dict[str, Sitter]:
    """Everybody who sits at a store, by the path of the seat."""
    folder, name = os.path.split(os.path.abspath(store))
    try:
        found = [each for each in os.listdir(folder) if each.startswith(f"{name}-files-")]
    except OSError:
        return {}
    seats = [os.path.join(folder, each) for each in sorted(found) if each.endswith(ENDING)]
    return {path: who for path in seats if (who := sitter(path)) is not None}


def dismiss(store: str) -> None:
    """Ask the guests of a store to leave, and wait until they have, within reason."""
    end = time.monotonic() + _LEAVING_SECONDS
    for path in of_store(store):
        dismiss_from(path, seconds=max(end - time.monotonic(), 0))


def dismiss_from(path: str, *, seconds: float = _LEAVING_SECONDS) -> None:
    """Ask whoever sits there to leave, if it is a guest."""
    who = sitter(path)
    if who is None or not who.is_guest or who.pid == os.getpid():
        return
    if _hold is None or _signal is None:
        return  # where there are no guests either
    try:
        process = _hold(who.pid)  # from here on its number is nobody else's
    except OSError:
        return
    try:
        if sitter(path) == who:
            _signal(process, signal.SIGTERM)
            select.select([process], [], [], seconds)  # until its last thread has let go
    except ProcessLookupError:
        pass  # it has just gone
    finally:
        os.close(process)
