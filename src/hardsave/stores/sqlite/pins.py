"""Who has stored objects ahead of the checkpoint that will lead to them.

A pin counts in time since the machine booted, which no clock change moves; one of another
boot belongs to a process that is gone.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import apsw

from hardsave.stores.boot import boot_id, since_boot


class Pin(NamedTuple):
    pin: bytes
    until: int


def now() -> int:
    return since_boot()


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


def forget_all_but(connection: apsw.Connection, held: Collection[bytes]) -> None:
    """Forget the pins of everybody else: they are dead, if nobody else has the store open."""
    rows: list[Any] = connection.execute("SELECT pin FROM pins").fetchall()
    for (pin,) in rows:
        if pin not in held:
            give_back(connection, pin)


def forget_the_dead(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM pins WHERE boot != ? OR until <= ?", (boot_id(), now()))
