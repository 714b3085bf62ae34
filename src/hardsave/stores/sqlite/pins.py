"""Who has stored objects ahead of the checkpoint that will lead to them.

A pin counts in time since the machine booted, which no clock change moves; one of another
boot belongs to a process that is gone.
"""

import time
from typing import NamedTuple

import apsw

from hardsave.stores.sqlite.mark import boot_id

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while a laptop sleeps


class Pin(NamedTuple):
    pin: bytes
    until: int


def now() -> int:
    return time.clock_gettime_ns(_CLOCK) // 1_000


def until(seconds: float) -> int:
    return now() + int(seconds * 1_000_000)


def take(connection: apsw.Connection, user: int, pin: Pin) -> None:
    """Hold, or hold for longer."""
    connection.execute(
        "INSERT OR REPLACE INTO pins (pin, user, boot, until) VALUES (?, ?, ?, ?)",
        (pin.pin, user, boot_id(), pin.until),
    )


def give_back(connection: apsw.Connection, pin: bytes) -> None:
    connection.execute("DELETE FROM pins WHERE pin = ?", (pin,))


def is_pinned(connection: apsw.Connection, user: int) -> bool:
    """Whether anybody who may be alive holds something of a user."""
    sql = "SELECT count(*) FROM pins WHERE user = ? AND boot = ? AND until > ?"
    return bool(connection.execute(sql, (user, boot_id(), now())).get)


def forget_the_dead(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM pins WHERE boot != ? OR until <= ?", (boot_id(), now()))
