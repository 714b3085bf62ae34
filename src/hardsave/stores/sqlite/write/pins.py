"""Who has stored objects ahead of the checkpoint that will lead to them.

A pin counts in time since the machine booted, which no clock change moves; one of another
boot belongs to a process that is gone. It also names its process, so that what a killed one
held is free at once, where processes can be asked about.
"""

import os
import struct
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import apsw

from hardsave.stores.host import processes
from hardsave.stores.host.boot import boot_id, since_boot
from hardsave.tuples import NamedTuple

_HOLDER = struct.Struct(">QQQ")  # behind the pin itself: space, pid, when that process began


class Pin(NamedTuple):
    pin: bytes
    until: int


def now() -> int:
    return since_boot()


def until(seconds: float) -> int:
    return now() + int(seconds * 1_000_000)


def ours(pin: bytes) -> bytes:
    """A pin with the name of this process."""
    return pin + _holder(os.getpid())


@cache
def _holder(pid: int) -> bytes:
    here = processes.here()
    return _HOLDER.pack(here.space, pid, here.pid_started)


def is_dead(pin: bytes, space: int, started: Callable[[int], int | None]) -> bool:
    """Whether the process that holds a pin is known to be gone. `started` tells when the process
    of a number began, as far as it belongs to this `space`."""
    if len(pin) <= _HOLDER.size:
        return False  # it names no process
    its_space, pid, began = _HOLDER.unpack(pin[-_HOLDER.size :])
    if not began or its_space != space:
        return False
    return started(pid) not in (began, processes.UNKNOWN)


def take(connection: apsw.Connection, user: int, pin: Pin) -> None:
    """Hold, or hold for longer."""
    connection.execute(
        "INSERT OR REPLACE INTO pins (pin, user, boot, until) VALUES (?, ?, ?, ?)",
        (pin.pin, user, boot_id(), pin.until),
    )


def give_back(connection: apsw.Connection, pin: bytes) -> None:
    connection.execute("DELETE FROM pins WHERE pin = ?", (pin,))


def is_pinned(connection: apsw.Connection, user: int, *, but: bytes = b"") -> bool:
    """Whether a process that may be alive holds something of a user, by another pin than `but`."""
    sql = "SELECT count(*) FROM pins WHERE user = ? AND boot = ? AND until > ? AND pin != ?"
    return bool(connection.execute(sql, (user, boot_id(), now(), but)).get)


def forget_all_but(connection: apsw.Connection, held: Collection[bytes]) -> None:
    """Forget the pins of everybody else: they are dead, if nobody else has the store open."""
    rows: list[Any] = connection.execute("SELECT pin FROM pins").fetchall()
    for (pin,) in rows:
        if pin not in held:
            give_back(connection, pin)


def forget_the_dead(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM pins WHERE boot != ? OR until <= ?", (boot_id(), now()))
    rows: list[Any] = connection.execute("SELECT pin FROM pins").fetchall()
    if rows and processes.can_ask():
        space = processes.here().space
        for (pin,) in rows:
            if is_dead(pin, space, processes.started):
                give_back(connection, pin)
