"""A new file made of the rows that can still be read, from one or more damaged ones.

The sources are attached to a connection to the new file, and rows are copied by their integer
keys: where a range cannot be read it is halved, down to the single row. What was copied is
then checked: every object against its hash, every reference, every head. Nothing here writes
to a source, and nothing reads the new file before it is finished, synced and renamed.
"""

# ruff: noqa: S608 # names of tables and of attached databases are our own

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import apsw

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id
from hardsave.stores.sqlite import packs, schema
from hardsave.stores.sqlite.backup import KEYS, columns, create, insert, sync
from hardsave.stores.sqlite.checking import index_faults
from hardsave.stores.sqlite.index import USER_SHIFT, _not_indexed, bounds, prefix

Range = tuple[int, int]
_SLACK = 4096  # keys looked for past the highest that is known
_CHANGES_GAP = 1_000_000  # after it, no backup of the old file can be taken for one of the new


class Owned(NamedTuple):
    """A hash, and whose it is: users share nothing."""

    user: int
    address: Hash


class Checkpoint(NamedTuple):
    """A checkpoint that lost something, as messages name it."""

    number: int
    id: Id
    timeline: str
    seq: int

    def __str__(self) -> str:
        return f"checkpoint chk_{self.id.hex()} ({self.timeline}:{self.seq})"


class Entry(NamedTuple):
    """What is written to the log of the new file."""

    number: int
    id: Id
    kind: str
    created_at: int
    data: bytes


class Salvage:
    """The new file at `path`, while it is being made."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection = create(path)
        self._attached: set[str] = set()
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # of a source
        schema.migrate(self._connection)
        self._connection.execute("DELETE FROM users")

    def abandon(self) -> None:
        self._connection.close()
        os.unlink(self.path)

    # Sources

    def attach(self, name: str, path: str, *, is_checked: bool = True) -> bool:
        """Make a file a source; False if nothing at all can be read from it."""
        if name in self._attached:
            return True
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            return False
        vfs = "" if is_checked else f"?vfs={apsw.vfs_names()[0]}"
        try:
            self._connection.execute("ATTACH ? AS " + name, (f"file:{quote(path)}{vfs}",))
            tables = self._connection.execute(f"SELECT name FROM {name}.sqlite_schema").fetchall()
            if not set(KEYS) <= {row[0] for row in tables}:
                return False
            self._attached.add(name)
            return True
        except apsw.Error:
            return False

    def is_sound(self, name: str) -> bool:
        """Whether every page of a source can be read, and they agree with each other."""
        try:
            return bool(self._one(f"PRAGMA {name}.integrity_check(1)") == "ok")
        except apsw.Error:
            return False

    def index_faults(self, name: str) -> list[str]:
        """Whether index and packs of a source agree."""
        return index_faults(self._connection, name)

    def last_number(self, name: str, top: int) -> int:
        """The last commit that can be read in a source; `top` is the highest ever heard of."""
        found = [self._highest(name, table, 0, 1 << 62) for table in ("checkpoints", "log")]
        if None not in found:
            return max(number for number in found if number is not None)
        for number in range(top + _SLACK, 0, -1):
            for table in ("checkpoints", "log"):
                if self._highest(name, table, number, number):
                    return number
        return 0

    def highest_change(self, name: str) -> int:
        """The last row of `changes` that a source ever had, as far as it can say."""
        found = 0
        for sql in (
            f"SELECT seq FROM {name}.sqlite_sequence WHERE name = 'changes'",
            f"SELECT change FROM {name}.marks",
        ):
            try:
                found = max(found, int(self._one(sql) or 0))
            except apsw.Error:
                continue  # it has no such table, or it cannot be read
        return found

    def event(self, name: str, number: int) -> Id | None:
        """The id of a commit's event."""
        for table in ("checkpoints", "tombstones", "log"):
            try:
                found: Id | None = self._one(
                    f"SELECT id FROM {name}.{table} WHERE number = ?", (number,)
                )
            except apsw.Error:
                continue
            if found is not None:
                return found
        return None

    # Copying

    def copy_all(self, name: str, top: int) -> dict[str, list[Range]]:
        """Every row of a source that can be read, and the ranges of keys that cannot."""
        return {table: self.copy_table(name, table, top) for table in KEYS}

    def copy_table(self, name: str, table: str, top: int) -> list[Range]:
        """One table of a source, as far as it can be read. Rows that are there already stay."""
        spans = self._spans(name, table, top)
        return [lost for span in spans for lost in self.copy(name, table, span)]

    def copy_ranges(self, name: str, wanted: dict[str, list[Range]]) -> None:
        """What another source could not give."""
        for table, ranges in wanted.items():
            for span in ranges:
                self.copy(name, table, span)

    def copy_newer(self, name: str, after: int, top: int) -> dict[str, list[Range]]:
        """Commits of a source after number `after`, and all packs above the highest of each
        user; the ranges that cannot be read. Timelines that moved on are mended later, from
        their checkpoints."""
        unread = {
            table: self.copy(name, table, (after + 1, top + _SLACK))
            for table in ("checkpoints", "tombstones", "log")
        }
        for table in ("users", "timelines"):
            unread[table] = self.copy_table(name, table, top)
        unread["packs"] = []
        for user in self._users():
            low, high = bounds(user)
            known = self._one(_HIGHEST_PACK, (low, high)) or low
            for span in list(self._pack_spans(name, user, top)):
                unread["packs"] += self.copy(name, "packs", (max(known + 1, span[0]), span[1]))
        return unread

    def copy(self, name: str, table: str, span: Range) -> list[Range]:
        """Rows with keys in a range; the ranges that cannot be read, as small as can be.

        Each statement is a transaction of its own: a page that cannot be read takes the whole
        transaction back that has met it.
        """
        unread: list[Range] = []
        left = [span]
        where = f"{KEYS[table]} BETWEEN ? AND ?"
        names = columns(self._connection, table, name)
        while left:
            low, high = left.pop()
            if low > high:
                continue
            try:
                insert(self._connection, "IGNORE", table, names, name, where, (low, high))
            except apsw.Error as error:
                _raise_if_ours(error)
                if low == high:
                    _add(unread, low)
                else:
                    middle = (low + high) // 2
                    left += [(middle + 1, high), (low, middle)]
        return unread

    def _spans(self, name: str, table: str, top: int) -> Iterator[Range]:
        if table == "packs":
            for user in self._users():
                yield from self._pack_spans(name, user, top)
            return
        known = self._highest(name, table, 0, 1 << 62)
        yield 0, (top + _SLACK if known is None else known)

    def _pack_spans(self, name: str, user: int, top: int) -> Iterator[Range]:
        low, high = bounds(user)
        highest = self._highest(name, "packs", low, high - 1)
        if highest is None:  # it cannot be asked: as many as there may be
            known = self._one(_HIGHEST_PACK, (low, high)) or low
            highest = min(known + top + _SLACK, high - 1)
        yield low + 1, highest

    def _highest(self, name: str, table: str, low: int, high: int) -> int | None:
        key = KEYS[table]
        try:
            sql = f"SELECT max({key}) FROM {name}.{table} WHERE {key} BETWEEN ? AND ?"
            return int(self._one(sql, (low, high)) or 0)
        except apsw.Error:
            return None

    def _users(self) -> list[int]:
        return [row[0] for row in self._connection.execute("SELECT id FROM main.users")]

    # Checking

    def numbers(self, after: int, upto: int) -> set[int]:
        """The commits that are there."""
        sql = (
            "SELECT number FROM main.checkpoints WHERE number BETWEEN ?1 AND ?2 UNION "
            "SELECT number FROM main.log WHERE number BETWEEN ?1 AND ?2 UNION "
            "SELECT number FROM main.tombstones WHERE number BETWEEN ?1 AND ?2"
        )
        return {row[0] for row in self._connection.execute(sql, (after + 1, upto))}

    def check_objects(self, others: Iterable[str] = ()) -> tuple[int, set[Owned]]:
        """Check every object, and index it; how many were dropped, and what cannot be read
        in full any more: objects that are gone, and all that lead to them. What is missing
        is looked for, by its hash, in `others`."""
        dropped = 0
        wanted: set[Owned] = set()
        with self._connection:
            for pack in self._pack_ids():
                dropped += self._check_pack(pack, wanted)
        self._connection.execute(
            "UPDATE main.users SET indexed = coalesce((SELECT max(p.id) FROM main.packs AS p "
            f"WHERE p.id > users.id << {USER_SHIFT} AND p.id < (users.id + 1) << {USER_SHIFT}), 0)"
        )
        sql = "SELECT user, root, snapshot FROM main.checkpoints"
        for user, *roots in self._connection.execute(sql):
            wanted.update(Owned(user, root) for root in roots if root is not None)
        gone = set(self._unknown(wanted))
        for name in others:
            gone = self._found_elsewhere(name, gone)
        return dropped, self._closure(gone) if gone else gone

    def _found_elsewhere(self, name: str, gone: set[Owned]) -> set[Owned]:
        """Add what a source has of the objects that are gone; what is gone then."""
        for user in {each.user for each in gone}:
            wanted = {each.address for each in gone if each.user == user}
            while wanted and (found := self._look_for(name, user, wanted)):
                pack = 1 + (self._one(_HIGHEST_PACK, bounds(user)) or bounds(user)[0])
                (made,) = packs.pack(found.items(), target=None)
                sql = "INSERT INTO main.packs (id, size, directory, body) VALUES (?, ?, ?, ?)"
                self._connection.execute(sql, (pack, *made))
                more: set[Owned] = set()
                self._check_pack(pack, more)
                self._connection.execute(
                    "UPDATE main.users SET indexed = ? WHERE id = ?", (pack, user)
                )
                gone |= more
                wanted = {each.address for each in more} | (wanted - found.keys())
        return set(self._unknown(gone))

    def _look_for(self, name: str, user: int, wanted: set[Hash]) -> dict[Hash, bytes]:
        """Objects of a source that match their hashes, from whatever packs can be read."""
        found: dict[Hash, bytes] = {}
        for low, high in self._pack_spans(name, user, 0):
            for pack in range(low, high + 1):
                try:
                    sql = f"SELECT directory, body, size FROM {name}.packs WHERE id = ?"
                    row: Any = self._connection.execute(sql, (pack,)).fetchone()
                    objects = packs.unpack(*row) if row else {}
                except (apsw.Error, Corrupt, TypeError, ValueError):
                    continue
                found |= {a: objects[a] for a in wanted & objects.keys() if _matches(a, objects[a])}
        return found

    def _check_pack(self, pack: int, wanted: set[Owned]) -> int:
        """Keep what matches its hash; what it refers to and was not met yet is `wanted`."""
        user = pack >> USER_SHIFT
        listed, objects = self._sound_objects(pack)
        if len(objects) < listed:
            self._replace(pack, objects)
        self._connection.executemany(
            "INSERT OR IGNORE INTO main.objects (user, prefix, pack) VALUES (?, ?, ?)",
            sorted((user, prefix(address), pack) for address in objects),
        )
        refs = {Owned(user, ref) for data in objects.values() for ref in _refs(data)}
        wanted.update(self._unknown(refs))
        return listed - len(objects)

    def _sound_objects(self, pack: int) -> tuple[int, dict[Hash, bytes]]:
        sql = "SELECT directory, body, size FROM main.packs WHERE id = ?"
        row: Any = self._connection.execute(sql, (pack,)).fetchone()
        try:
            objects = packs.unpack(*row)
        except (Corrupt, TypeError, ValueError):
            return max(1, len(row[0]) // 24 if isinstance(row[0], bytes) else 1), {}
        return len(objects), {a: data for a, data in objects.items() if _matches(a, data)}

    def _replace(self, pack: int, objects: dict[Hash, bytes]) -> None:
        if not objects:
            self._connection.execute("DELETE FROM main.packs WHERE id = ?", (pack,))
            return
        (made,) = packs.pack(objects.items(), target=None)
        sql = "UPDATE main.packs SET size = ?, directory = ?, body = ? WHERE id = ?"
        self._connection.execute(sql, (*made, pack))

    def _unknown(self, wanted: Iterable[Owned]) -> Iterator[Owned]:
        by_user: dict[int, list[Hash]] = {}
        for user, address in wanted:
            by_user.setdefault(user, []).append(address)
        for user, addresses in by_user.items():
            for address in _not_indexed(self._connection, user, addresses):
                yield Owned(user, address)

    def _closure(self, gone: set[Owned]) -> set[Owned]:
        """What is gone, and all that leads to it. Objects come after those they refer to, but
        a second look costs little where so much is wrong already."""
        broken = set(gone)
        size = 0
        while len(broken) > size:
            size = len(broken)
            for pack in self._pack_ids():
                user = pack >> USER_SHIFT
                for address, data in self._sound_objects(pack)[1].items():
                    if any((user, ref) in broken for ref in _refs(data)):
                        broken.add(Owned(user, address))
        return broken

    def _pack_ids(self) -> list[int]:
        return [row[0] for row in self._connection.execute("SELECT id FROM main.packs ORDER BY id")]

    # Mending

    def damaged(self, broken: set[Owned]) -> list[Checkpoint]:
        """The checkpoints that lead to something that is gone."""
        if not broken:
            return []
        sql = (
            "SELECT c.user, c.root, c.snapshot, c.number, c.id, coalesce(t.name, '?'), c.seq "
            "FROM main.checkpoints AS c LEFT JOIN main.timelines AS t ON t.id = c.timeline"
        )
        rows: list[Any] = self._connection.execute(sql).fetchall()
        return [
            Checkpoint(*about)
            for user, root, snapshot, *about in rows
            if Owned(user, root) in broken or Owned(user, snapshot) in broken
        ]

    def drop(self, checkpoints: Iterable[Checkpoint]) -> None:
        for each in checkpoints:
            self._connection.execute(
                "DELETE FROM main.checkpoints WHERE number = ?", (each.number,)
            )

    def mend(self, damaged: Iterable[Checkpoint]) -> list[str]:
        """Give every row what it refers to, and every timeline a head that can be read."""
        lines = self._name_the_nameless()
        bad = {each.id for each in damaged}
        rows: list[Any] = self._connection.execute(
            "SELECT id, user, name, head, last_seq, origin FROM main.timelines"
        ).fetchall()
        for row in rows:
            lines += self._mend_timeline(_Row(*row), bad)
        return lines

    def _name_the_nameless(self) -> list[str]:
        connection = self._connection
        connection.execute("INSERT OR IGNORE INTO main.users (id, name) VALUES (0, NULL)")
        timelines: list[Any] = connection.execute(_ORPHANS).fetchall()
        for timeline, user, moment in timelines:
            connection.execute(
                "INSERT INTO main.timelines (id, user, name, head, last_seq, created_at) "
                "VALUES (?, ?, ?, NULL, 0, ?)",
                (timeline, user, f"recovered-{timeline}", moment),
            )
        users: list[Any] = connection.execute(_HOMELESS).fetchall()
        for (user,) in users:
            sql = "INSERT INTO main.users (id, name) VALUES (?, ?)"
            connection.execute(sql, (user, f"recovered-{user}"))
        return [
            f"a timeline lost its name; it is 'recovered-{row[0]}' now" for row in timelines
        ] + [f"a user lost its name; it is 'recovered-{row[0]}' now" for row in users]

    def _mend_timeline(self, row: "_Row", bad: set[Id]) -> list[str]:
        latest: Any = self._connection.execute(
            "SELECT max(seq), id FROM main.checkpoints WHERE timeline = ?", (row.id,)
        ).fetchone()
        seq, newest = latest
        highest = max(row.last_seq, seq or 0, self._one(_LAST_STONE, (row.id,)) or 0)
        head = newest if (seq or 0) > row.last_seq else row.head  # its row is older than they are
        standing = self._readable(row, head, bad)
        if (standing, highest) == (row.head, row.last_seq):
            return []
        self._connection.execute(
            "UPDATE main.timelines SET head = ?, last_seq = ? WHERE id = ?",
            (standing, highest, row.id),
        )
        if standing == head:
            return []
        return [f"the head of timeline {row.name!r} is gone; it stands at {_named(standing)} now"]

    def _readable(self, row: "_Row", head: Id | None, bad: set[Id]) -> Id | None:
        """A head itself, its nearest ancestor, or the newest checkpoint that can be read."""
        seen: set[Id] = set()
        at = head
        while at is not None and at not in seen:
            seen.add(at)
            sql = "SELECT id, parent FROM main.checkpoints WHERE user = ? AND id = ?"
            found: Any = self._connection.execute(sql, (row.user, at)).fetchone()
            if found is None:
                break
            if at not in bad:
                return at
            at = found[1]
        if head is None:
            return None
        sql = "SELECT id FROM main.checkpoints WHERE timeline = ? ORDER BY seq DESC"
        ids: list[Any] = self._connection.execute(sql, (row.id,)).fetchall()
        for (id,) in ids:
            if id not in bad:
                return bytes(id)
        return row.origin if row.origin not in bad and self._has(row.user, row.origin) else None

    def _has(self, user: int, id: Id | None) -> bool:
        sql = "SELECT count(*) FROM main.checkpoints WHERE user = ? AND id = ?"
        return bool(self._one(sql, (user, id)))

    def counts(self) -> tuple[int, int]:
        """How many checkpoints and how many log entries there are."""
        return (
            int(self._one("SELECT count(*) FROM main.checkpoints")),
            int(self._one("SELECT count(*) FROM main.log")),
        )

    # Finishing

    def finish(self, event: Entry, change: int, name: str) -> None:
        """Add what happened to the log, and give the file a name when all of it is safe."""
        connection = self._connection
        connection.execute(
            "INSERT INTO main.log (number, user, id, timeline, kind, created_at, data) "
            "VALUES (?, 0, ?, NULL, ?, ?, ?)",
            event,
        )
        connection.execute("DELETE FROM main.sqlite_sequence WHERE name = 'changes'")
        sql = "INSERT INTO main.sqlite_sequence (name, seq) VALUES ('changes', ?)"
        connection.execute(sql, (change + _CHANGES_GAP,))
        for source in [row[1] for row in connection.execute("PRAGMA database_list")][::-1]:
            if source not in ("main", "temp"):
                connection.execute(f"DETACH {source}")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.pragma("journal_mode", "wal")
        connection.close()
        sync(self.path)
        os.replace(self.path, name)
        sync(os.path.dirname(name))

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        return self._connection.execute(sql, values).get


class _Row(NamedTuple):
    id: int
    user: int
    name: str
    head: Id | None
    last_seq: int
    origin: Id | None


_HIGHEST_PACK = "SELECT max(id) FROM main.packs WHERE id > ? AND id < ?"
_LAST_STONE = "SELECT max(seq) FROM main.tombstones WHERE timeline = ?"
_ORPHANS = """
    SELECT timeline, user, coalesce(min(created_at), 0) FROM (
        SELECT timeline, user, created_at FROM main.checkpoints
        UNION ALL SELECT timeline, user, NULL FROM main.tombstones)
    WHERE timeline NOT IN (SELECT id FROM main.timelines) GROUP BY timeline
"""
_HOMELESS = """
    SELECT DISTINCT user FROM (
        SELECT user FROM main.timelines UNION SELECT user FROM main.checkpoints
        UNION SELECT user FROM main.log)
    WHERE user NOT IN (SELECT id FROM main.users)
"""


def _add(ranges: list[Range], key: int) -> None:
    """Keys come in order: neighbours make one range."""
    if ranges and ranges[-1][1] == key - 1:
        ranges[-1] = (ranges[-1][0], key)
    else:
        ranges.append((key, key))


def _raise_if_ours(error: apsw.Error) -> None:
    """What fails on the side of the new file is no damage of a source."""
    code = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.FullError | apsw.NoMemError) or code == apsw.SQLITE_IOERR_WRITE:
        raise error


def _matches(address: Hash, data: bytes) -> bool:
    try:
        envelope.checked(address, data)
    except Corrupt:
        return False
    return True


def _refs(data: bytes) -> tuple[Hash, ...]:
    try:
        return envelope.unseal(data).refs
    except Corrupt:
        return ()  # its bytes are what was stored: whoever reads it says what is wrong


def _named(id: Id | None) -> str:
    return "nothing" if id is None else f"chk_{id.hex()}"
