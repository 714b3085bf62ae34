"""What a store does for itself when it is asked to: collect garbage, and compact.

Both work in many short transactions, in turn with everybody's commits, and may be killed at
any moment.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.stores.base import Collected
from hardsave.stores.sqlite import pins, room

if TYPE_CHECKING:
    from hardsave.stores.sqlite.collect import Change
    from hardsave.stores.sqlite.marking import Refs


class Access(NamedTuple):
    """The store's files, as `collect.Files` wants them. No two calls may be nested."""

    reading: Callable[[], AbstractContextManager[apsw.Connection]]  # a read transaction
    idle: Callable[[], AbstractContextManager[apsw.Connection]]  # a connection without one
    apply: "Callable[[Change], None]"
    merge: Callable[[int], None]  # all packs of a user that wait
    renew_backup: Callable[[], None]


class Housekeeper:
    """One job at a time in this process; those of other processes are noticed."""

    def __init__(self, path: str, access: Access) -> None:
        self._path = path
        self._access = access
        self._mutex = threading.Lock()

    def collect(self, refs: "Refs", *, exact: bool) -> Collected:
        from hardsave.stores.sqlite.collect import Removed, collect  # few processes collect

        with self._mutex:
            before = room.file_bytes(self._path)
            self._access.apply(pins.forget_the_dead)
            removed = Removed()
            damage: Corrupt | None = None
            for user in self._users():
                self._access.merge(user)  # what waits to be merged is not collected
                try:
                    removed = removed.and_also(collect(self._access, user, refs, exact=exact))
                except Corrupt as error:
                    damage = damage or error  # one user's damage is no other user's
            self._give_back(exact=exact)
            if exact:
                self._access.renew_backup()
                room.settle(self._path)
            if damage is not None:
                raise damage
            return Collected(*removed, max(0, before - room.file_bytes(self._path)))

    def compact(self) -> None:
        from hardsave.stores.sqlite.compact import compact

        with self._mutex:
            for user in self._users():
                self._access.merge(user)
                compact(self._access, user)
            self._give_back(exact=False)

    def _users(self) -> list[int]:
        with self._access.reading() as connection:
            rows: list[Any] = connection.execute("SELECT id FROM users ORDER BY id").fetchall()
        return [row[0] for row in rows]

    def _give_back(self, *, exact: bool) -> None:
        is_done = room.give_back(self._access.apply)
        with self._access.idle() as connection:
            if exact:
                room.rewrite(connection)
            patience = room.PATIENCE_SECONDS if exact else room.SOME_SECONDS
            is_done = room.truncate_wal(connection, patience) and is_done
        if exact and not is_done:
            raise Unavailable(
                f"what was removed from {self._path} is still in its files: others were reading "
                "or writing all the time; close them and repeat"
            )
