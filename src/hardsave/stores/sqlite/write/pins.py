"""Pins: processes that have stored objects ahead of the checkpoint that will lead to them.

A pin counts in the store's own time, which no clock change moves; one of another clock belongs to
a process that is gone. It also names its process, so that what a killed one held is free at once,
where processes can be asked about.
"""

import os
import struct
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import apsw

from hardsave.stores.host import location, processes
from hardsave.stores.ledger import Moment
from hardsave.tuples import NamedTuple

_HOLDER = struct.Struct(">8sQQ")  # behind the pin itself: numbering, pid, when it began


class Pin(NamedTuple):
    pin: bytes
    clock: bytes  # of the store's own time
    until: int


def lasting(pin: bytes, now: Moment, seconds: float) -> Pin:
    """One that holds for so many seconds."""
    return Pin(pin, now.clock, now.at + int(seconds * 1_000_000))


def ours(pin: bytes) -> bytes:
    """A pin with the name of this process."""
    return pin + _holder(os.getpid())


@cache
def _holder(pid: int) -> bytes:
    here = location.here()
    return _HOLDER.pack(here.numbering.digest(), pid, here.pid_started)


def has_ended(pin: bytes, numbering: bytes, started: Callable[[int], int | None]) -> bool:
    """Whether the process that holds a pin is known to be gone. `started` tells when the process
    of a number began, as far as it has its number in this `numbering`."""
    if len(pin) <= _HOLDER.size:
        return False  # it names no process
    its_numbering, pid, began = _HOLDER.unpack(pin[-_HOLDER.size :])
    if not began or its_numbering != numbering:
        return False
    return started(pid) not in (began, processes.UNKNOWN)


def take(connection: apsw.Connection, user: int, pin: Pin) -> None:
    """Hold, or hold for longer."""
    connection.execute(
        "INSERT OR REPLACE INTO pins (pin, user, clock, until) VALUES (?, ?, ?, ?)",
        (pin.pin, user, pin.clock, pin.until),
    )


def give_back(connection: apsw.Connection, pin: bytes) -> None:
    connection.execute("DELETE FROM pins WHERE pin = ?", (pin,))


def is_pinned(connection: apsw.Connection, user: int, *, but: bytes = b"") -> bool:
    """Whether a process that may be alive holds something of a user, by another pin than `but`. The
    caller has had those forgotten whose time has passed."""
    sql = "SELECT count(*) FROM pins WHERE user = ? AND pin != ?"
    return bool(connection.execute(sql, (user, but)).get)


def forget_all_but(connection: apsw.Connection, held: Collection[bytes]) -> None:
    """Forget the pins of other processes: these have ended, if none has the store open."""
    rows: list[Any] = connection.execute("SELECT pin FROM pins").fetchall()
    for (pin,) in rows:
        if pin not in held:
            give_back(connection, pin)


def forget_ended(connection: apsw.Connection, now: Moment) -> None:
    connection.execute("DELETE FROM pins WHERE clock != ? OR until <= ?", now)
    rows: list[Any] = connection.execute("SELECT pin FROM pins").fetchall()
    if rows and processes.can_ask():
        numbering = location.here().numbering.digest()
        for (pin,) in rows:
            if has_ended(pin, numbering, processes.started):
                give_back(connection, pin)
