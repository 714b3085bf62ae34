"""Small packs become larger ones and are indexed, off the path of commits.

One save makes one small pack, which takes a page of its own. Compressed and stored together,
they take much less space and are read at once. That happens twice: every few saves their packs
are *gathered* into one that still waits, and once enough has come together it is merged
into a large one and indexed, which is the dear part.

A merged pack takes the *highest* id of those it replaces, and an object is looked up in the
first pack at or above the id that is known for it: so nothing that was known becomes wrong,
and an id that was given out never comes to mean something else.

A caller that saves without a pause must not share the processor with that: what is due waits for a
quiet moment, or until twice as many saves, or many objects, have come together. A first snapshot
is a few saves of many large packs, which only have to be indexed: mostly it is over before that.
"""

import threading
import time
import weakref
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import apsw

from hardsave.errors import HardsaveError
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.sqlite.connection import zeroing
from hardsave.stores.sqlite.open.read_only import is_disk_full
from hardsave.stores.sqlite.read.object_index import add_rows, bounds, indexed_upto
from hardsave.stores.sqlite.write.operations import note
from hardsave.stores.sqlite.write.writer import Writer
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from queue import SimpleQueue

FEW_PACKS = 8  # of single saves; more would make the file grow in leaps
MANY_SAVES = 2 * FEW_PACKS  # do not wait for a quiet moment any more
SAVE_OBJECTS = 2048  # one with more counts as several: what is not indexed is kept in mind
SINGLE_BYTES = 8 * 1024  # a pack at least this large is not gathered
ENOUGH_PACKS = 32
SMALL_BYTES = 64 * 1024  # a pack at least this large is left as it is
ENOUGH_BYTES = 256 * 1024
QUIET_SECONDS = 0.02  # an agent's saves are further apart, those of a loop are not


class PackRow(NamedTuple):
    id: int
    size: int


def choose(waiting: list[PackRow], *, every: bool = False) -> list[list[PackRow]]:
    """How to put the packs that wait to be indexed together: groups of adjacent ones.

    `waiting` is in the order of ids. A group becomes one pack; a large pack is a group of its
    own and stays as it is. Empty: too few wait for it to be worth while. `every` one, however
    few and small they are, before they are collected or compacted.
    """
    is_enough = sum(row.size for row in waiting) >= ENOUGH_BYTES
    if len(waiting) < ENOUGH_PACKS and not is_enough and not every:
        return []
    groups: list[list[PackRow]] = []
    free = 0
    for row in waiting[: 4 * ENOUGH_PACKS]:
        if row.size >= SMALL_BYTES or free < row.size:
            groups.append([])
            free = ENOUGH_BYTES
        groups[-1].append(row)
        free = 0 if row.size >= SMALL_BYTES else free - row.size
    if len(groups) > 1 and sum(row.size for row in groups[-1]) < SMALL_BYTES and not every:
        groups.pop()  # it would stay small for good: let it wait for more
    return groups


def gather(waiting: list[PackRow], few: int) -> list[PackRow]:
    """The newest packs, if they are many and small: to be put together, and to wait on as one.
    Fewer than `few` are not worth it."""
    group: list[PackRow] = []
    for row in reversed(waiting):
        if row.size >= SINGLE_BYTES:
            break
        group.insert(0, row)
    return group if len(group) >= few else []


class Merger:
    """Merges in a thread of its own, which starts when there is first something to merge."""

    def __init__(self, writer: Writer, read: Callable[[], apsw.Connection]) -> None:
        self._writer = writer
        self._connect = read
        self._mutex = threading.RLock()  # a signal handler may save, too
        self._fresh: dict[int, int] = {}  # packs counted since the last merge, by user
        self._asked: set[int] = set()  # users that are in the queue
        self._waiting = 0  # saves counted since the last merge, of all users
        self._saved_at = 0.0  # the last of them
        self._hurry = threading.Event()  # the store is being closed
        self._thread: threading.Thread | None = None
        self._stopping = False

    @cached_property
    def _due(self) -> "SimpleQueue[int | None]":
        """Users; None: stop. Many processes end before there is anything to merge."""
        try:
            from _queue import SimpleQueue  # `queue` has more than that, and takes longer to load
        except ImportError:
            from queue import SimpleQueue

        return SimpleQueue()

    def saw(self, user: int, made: int, objects: int) -> None:
        """So many packs were committed, of so many objects. Cheap: it happens on every save."""
        self._count(user, made, FEW_PACKS, 1 + objects // SAVE_OBJECTS)

    def met(self, user: int, found: int) -> None:
        """So many packs of others were found waiting: they had better merge them themselves."""
        self._count(user, found, ENOUGH_PACKS, found)

    def _count(self, user: int, more: int, enough: int, saves: int) -> None:
        with self._mutex:
            self._saved_at = time.monotonic()
            self._waiting += saves
            count = self._fresh.get(user, 0) + more
            self._fresh[user] = count % enough
            if count < enough or self._stopping:
                return
            if user not in self._asked:
                self._due.put(user)
                self._asked.add(user)  # last: one that a Ctrl-C leaves out is asked for twice
            if self._thread is None:
                self._thread = self._started()

    def _started(self) -> threading.Thread | None:
        """The thread; None if there can be no other right now: the packs wait, and nothing is
        lost."""
        ours = (weakref.ref(self), self._due)
        thread = threading.Thread(target=_work, args=ours, name="hardsave-merge", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log(__name__).warning("small packs of %s wait: %s", self._writer.path, error)
            return None
        return thread

    def close(self) -> None:
        """Wait for a merge under way; begin no other."""
        with self._mutex:
            self._stopping = True
            thread = self._thread
        self._hurry.set()
        if thread is not None:
            self._due.put(None)
            thread.join()

    def __del__(self) -> None:
        self._hurry.set()
        if "_due" in self.__dict__:
            self._due.put(None)  # a store that was forgotten and not closed

    def turn(self, connection: apsw.Connection | None, user: int) -> apsw.Connection | None:
        """Merge what is due, in a quiet moment; the connection for the next time."""
        left = 1.0
        while self._waiting < MANY_SAVES and left > 0 and not self._stopping:
            left = self._saved_at + QUIET_SECONDS - time.monotonic()
            self._hurry.wait(max(left, 0))
        with self._mutex:
            self._waiting = 0
            if left > 0:  # saves go on without a pause: the rest waits for one
                self._due.put(user)
            else:
                self._asked.discard(user)
        if self._stopping:
            return connection
        return self.merge_all(connection, user, FEW_PACKS if left > 0 else 2)

    def merge_all(
        self, connection: apsw.Connection | None, user: int, few: int = FEW_PACKS
    ) -> apsw.Connection | None:
        """Merge while it is worth it; the connection for the next time."""
        try:
            connection = connection or self._connect()
            while not self._stopping and self.merge(connection, user, few=few):
                pass
        except (HardsaveError, apsw.Error) as error:
            # Nothing is lost: the packs stay small, and the next merge tries again. That a disk is
            # full is said by the saves that fail on it.
            is_full = is_disk_full(error)
            how = log(__name__).info if is_full else log(__name__).warning
            how("small packs of %s could not be merged", self._writer.path, exc_info=not is_full)
        return connection

    def merge(
        self, connection: apsw.Connection, user: int, *, every: bool = False, few: int = FEW_PACKS
    ) -> bool:
        """Merge and index a user's waiting packs, or gather them; False if there were too few."""
        waiting = _waiting(connection, user)
        groups = choose(waiting, every=every)
        if groups:
            made = [self._merged(connection, group) for group in groups]
            self._writer.apply(lambda connection: _swap(connection, user, groups, made))
            return True
        group = gather(waiting, few)
        if group:
            merged = self._merged(connection, group)
            self._writer.apply(lambda connection: _join(connection, user, group, merged))
            return True
        return False

    def _merged(self, connection: apsw.Connection, group: list[PackRow]) -> "Merged":
        return _merged(connection, group, compress=self._writer.compress)


def _work(merger: "weakref.ref[Merger]", due: "SimpleQueue[int | None]") -> None:
    """The thread. It keeps nothing alive: a store that is forgotten ends it."""
    connection = None
    try:
        while (user := due.get()) is not None:
            ours = merger()
            if ours is None:
                return
            connection = ours.turn(connection, user)
            del ours
        due.put(None)  # there may be another one, if a Ctrl-C has come with its start
    finally:
        if connection is not None:
            connection.close()


class Merged(NamedTuple):
    """What a group becomes: its objects by the pack they came from, and the new pack."""

    members: list[tuple[int, Hash]]
    pack: packs.Pack | None  # None: a pack that stays as it is


def _waiting(connection: apsw.Connection, user: int) -> list[PackRow]:
    rows: list[Any] = connection.execute(
        "SELECT id, size FROM packs WHERE id > ? AND id < ? ORDER BY id",
        (indexed_upto(connection, user), bounds(user)[1]),
    ).fetchall()
    return [PackRow(*row) for row in rows]


def _merged(
    connection: apsw.Connection, group: list[PackRow], *, compress: Callable[[], bool]
) -> Merged:
    if len(group) == 1:
        return Merged(_members(connection, group[0].id, group[0].id), None)
    objects: dict[Hash, bytes] = {}
    members: list[tuple[int, Hash]] = []
    for row in group:
        members += _members(connection, row.id, group[-1].id)
        sql = "SELECT directory, body, size FROM packs WHERE id = ?"
        for found in connection.execute(sql, (row.id,)):
            objects.update(packs.unpack(*found))
    merged = list(packs.pack(objects.items(), target=None, compress=compress))
    return Merged(members, merged[0] if merged else None)


def _members(connection: apsw.Connection, pack: int, becomes: int) -> list[tuple[int, Hash]]:
    """The objects of a pack, without a look at its body. None, if another process was faster
    and it is gone: the swap will see it."""
    sql = "SELECT directory FROM packs WHERE id = ?"
    return [
        (becomes, address)
        for (directory,) in connection.execute(sql, (pack,))
        for address in packs.hashes(directory)
    ]


def _swap(
    connection: apsw.Connection, user: int, groups: list[list[PackRow]], made: list[Merged]
) -> None:
    """Put each merged pack in the place of the last of its group, and index all of them."""
    rows = [row for group in groups for row in group]
    if not _still_wait(connection, user, rows):
        return
    for group, merged in zip(groups, made, strict=True):
        _replace(connection, group, merged)
    members = [member for merged in made for member in merged.members]
    add_rows(connection, user, members, rows[-1].id)


def _join(connection: apsw.Connection, user: int, group: list[PackRow], merged: Merged) -> None:
    """Put a gathered pack in the place of the last of its group. It waits on, not indexed."""
    if _still_wait(connection, user, group):
        _replace(connection, group, merged)


def _still_wait(connection: apsw.Connection, user: int, rows: list[PackRow]) -> bool:
    """Whether packs are as they were, and no other process has merged them meanwhile."""
    first, last = rows[0].id, rows[-1].id
    standing = connection.execute(
        "SELECT id, size FROM packs WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
    ).fetchall()
    return bool(standing == rows) and indexed_upto(connection, user) < first


def _replace(connection: apsw.Connection, group: list[PackRow], merged: Merged) -> None:
    if merged.pack is not None:
        put_in_place(connection, group, merged.pack)


def put_in_place(connection: apsw.Connection, group: list[PackRow], merged: packs.Pack) -> None:
    """One pack for a group of adjacent ones, under the id of the last."""
    with zeroing(connection):
        connection.execute(
            "DELETE FROM packs WHERE id BETWEEN ? AND ?", (group[0].id, group[-1].id - 1)
        )
        connection.execute(
            "UPDATE packs SET size = ?, directory = ?, body = ? WHERE id = ?",
            (*merged, group[-1].id),
        )
    note(connection, "packs", [row.id for row in group])
