"""What a store does for itself when it is asked to: collect garbage, and compact.

Both work in many short transactions, in turn with the commits of other callers, and may be killed
at any moment.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import apsw

from hardsave.defaults import SPARE_BYTES
from hardsave.errors import Corrupt, Unavailable
from hardsave.stores.local.database import free_bytes
from hardsave.stores.results import Collected
from hardsave.stores.sqlite.connection import wal_bytes
from hardsave.stores.sqlite.gc import rewrite_lock, vacuum
from hardsave.stores.sqlite.open.read_only import is_disk_full
from hardsave.stores.sqlite.write import disk_reserve
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave.stores.sqlite.gc.collect import Change
    from hardsave.stores.sqlite.gc.discard import Discard
    from hardsave.stores.sqlite.gc.reachability import Refs


LONG_WAL_BYTES = 1 << 20


class Access(NamedTuple):
    """The store's files, as `collect.Files` wants them. No two calls may be nested."""

    reading: Callable[[], AbstractContextManager[apsw.Connection]]  # a read transaction
    idle: Callable[[], AbstractContextManager[apsw.Connection]]  # a connection without one
    apply: "Callable[[Change], None]"
    merge: Callable[[int], None]  # all packs of a user that wait
    at_rest: vacuum.AtRest
    renew_backup: Callable[[], None]
    trim_backup: Callable[[], None]
    forget_pins: "Change"  # of processes that are gone


class Maintenance:
    """One job at a time in this process; those of other processes are noticed."""

    def __init__(self, path: str, access: Access, *, compress: Callable[[], bool]) -> None:
        self._path = path
        self._compress = compress
        self._access = access
        self._mutex = threading.Lock()

    def collect(self, refs: "Refs", *, exact: bool) -> Collected:
        from hardsave.stores.sqlite.gc.collect import Removed, collect  # few processes collect

        with self._mutex:
            disk_reserve.release(self._path)
            before = vacuum.file_bytes(self._path)
            files = self._access._replace(apply=self._change)
            self._change(self._access.forget_pins)
            removed = Removed()
            left: list[str | None] = []
            damage: Corrupt | None = None
            for user, name in self._users():
                self._merge(user)  # what waits to be merged is not collected
                try:
                    found = collect(files, user, refs, exact=exact)
                except Corrupt as error:
                    damage = damage or error  # one user's damage is no other user's
                    continue
                removed = removed.and_also(found)
                left += [name] if found.is_pinned else []
            try:
                self._give_back(exact=exact)
            except Unavailable:  # the reader that met the damage may still have the page open
                if damage is None:
                    raise
            if exact:
                self._access.renew_backup()
                vacuum.settle(self._path)
            if damage is not None:
                raise damage
            freed = max(0, before - vacuum.file_bytes(self._path))
            return Collected(removed.objects, removed.object_bytes, freed, tuple(left))

    def discard(self, discard: "Discard") -> None:
        """Remove what a save has put ahead that was given up, and free its space."""
        removed = 0
        with self._mutex:
            disk_reserve.release(self._path)
            while not discard.is_done:
                self._change(discard)
                removed += discard.removed
            if removed:
                self._give_back(exact=False)
                self._access.trim_backup()

    def compact(self, refs: "Refs") -> None:
        from hardsave.stores.sqlite.gc.compact import compact

        with self._mutex:
            disk_reserve.release(self._path)
            try:
                for user, _ in self._users():
                    self._merge(user)
                    files = self._access._replace(apply=self._change)
                    compact(files, user, refs, compress=self._compress())
            finally:  # on a full disk, what was done frees space
                self._give_back(exact=False)
                self._access.trim_backup()

    def _users(self) -> list[tuple[int, str | None]]:
        with self._access.reading() as connection:
            sql = "SELECT id, name FROM users ORDER BY id"
            rows: list[Any] = connection.execute(sql).fetchall()
        return rows

    def _change(self, change: "Change") -> None:
        """Make a change; on a full disk it is made once more when the WAL is emptied. That is done
        as long as there is space to move it into the file."""
        self._with_space(lambda: self._access.apply(change))

    def _merge(self, user: int) -> None:
        self._with_space(lambda: self._access.merge(user))

    def _with_space(self, call: Callable[[], None]) -> None:
        if self._is_short():
            self._must_empty_wal()
        try:
            call()
        except Unavailable as error:
            if not is_disk_full(error):
                raise
            self._must_empty_wal()
            call()

    def _is_short(self) -> bool:
        """Whether the WAL needs more space than will be free for long: a backup that finds none
        does not get what waits for it there."""
        waiting = wal_bytes(self._path)
        return waiting > LONG_WAL_BYTES and free_bytes(self._path) < SPARE_BYTES + 2 * waiting

    def _must_empty_wal(self) -> None:
        with self._access.idle() as connection:
            self._empty_wal(connection, vacuum.SOME_SECONDS, must=True)

    def _empty_wal(
        self, connection: apsw.Connection, patience_seconds: float, *, must: bool = False
    ) -> bool:
        return vacuum.truncate_wal(connection, patience_seconds, self._access.at_rest, must=must)

    def _give_back(self, *, exact: bool) -> None:
        is_done = vacuum.give_back(self._change)
        with self._access.idle() as connection:
            if exact:
                # Moving a WAL as long as the store takes others' time as well.
                with rewrite_lock.announced(self._path):
                    vacuum.rewrite(connection)
                    is_emptied = self._empty_wal(connection, vacuum.PATIENCE_SECONDS, must=True)
            else:
                must = self._is_short()
                is_emptied = self._empty_wal(connection, vacuum.SOME_SECONDS, must=must)
            is_done = is_emptied and is_done
        if exact and not is_done:
            raise Unavailable(
                f"what was removed from {self._path} is still in its files: others were reading "
                "or writing all the time; close them and repeat"
            )
