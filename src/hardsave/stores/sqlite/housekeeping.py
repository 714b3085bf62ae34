"""What a store does for itself when it is asked to: collect garbage, and compact.

Both work in many short transactions, in turn with everybody's commits, and may be killed at
any moment.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import apsw

from hardsave.errors import Corrupt, Unavailable
from hardsave.stores.base import Collected
from hardsave.stores.sqlite import rewriting, room
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave.stores.sqlite.collect import Change
    from hardsave.stores.sqlite.marking import Refs


class Access(NamedTuple):
    """The store's files, as `collect.Files` wants them. No two calls may be nested."""

    reading: Callable[[], AbstractContextManager[apsw.Connection]]  # a read transaction
    idle: Callable[[], AbstractContextManager[apsw.Connection]]  # a connection without one
    apply: "Callable[[Change], None]"
    merge: Callable[[int], None]  # all packs of a user that wait
    at_rest: room.AtRest
    renew_backup: Callable[[], None]
    forget_pins: "Change"  # of those who are gone


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
            self._access.apply(self._access.forget_pins)
            removed = Removed()
            left: list[str | None] = []
            damage: Corrupt | None = None
            for user, name in self._users():
                self._access.merge(user)  # what waits to be merged is not collected
                try:
                    found = collect(self._access, user, refs, exact=exact)
                except Corrupt as error:
                    damage = damage or error  # one user's damage is no other user's
                    continue
                removed = removed.and_also(found)
                left += [name] if found.is_pinned else []
            try:
                self._give_back(exact=exact)
            except Unavailable:  # whoever met the damage may still have the page open
                if damage is None:
                    raise
            if exact:
                self._access.renew_backup()
                room.settle(self._path)
            if damage is not None:
                raise damage
            freed = max(0, before - room.file_bytes(self._path))
            return Collected(removed.objects, removed.object_bytes, freed, tuple(left))

    def compact(self) -> None:
        from hardsave.stores.sqlite.compact import compact

        with self._mutex:
            for user, _ in self._users():
                self._access.merge(user)
                compact(self._access, user)
            self._give_back(exact=False)

    def _users(self) -> list[tuple[int, str | None]]:
        with self._access.reading() as connection:
            sql = "SELECT id, name FROM users ORDER BY id"
            rows: list[Any] = connection.execute(sql).fetchall()
        return rows

    def _empty_wal(
        self, connection: apsw.Connection, patience_seconds: float, *, must: bool = False
    ) -> bool:
        return room.truncate_wal(connection, patience_seconds, self._access.at_rest, must=must)

    def _give_back(self, *, exact: bool) -> None:
        is_done = room.give_back(self._access.apply)
        with self._access.idle() as connection:
            if exact:
                # Moving a WAL as long as the store takes others' time as well.
                with rewriting.announced(self._path):
                    room.rewrite(connection)
                    is_emptied = self._empty_wal(connection, room.PATIENCE_SECONDS, must=True)
            else:
                is_emptied = self._empty_wal(connection, room.SOME_SECONDS)
            is_done = is_emptied and is_done
        if exact and not is_done:
            raise Unavailable(
                f"what was removed from {self._path} is still in its files: others were reading "
                "or writing all the time; close them and repeat"
            )
