"""Which of the salvaged objects are what was stored, and what those that are gone are missed by.

Every object is checked against its hash and indexed anew; what is missing is looked for, by its
hash, in the packs of the other sources that can be read.
"""

# ruff: noqa: S608 # names of tables and of attached databases are our own

from collections.abc import Iterable, Iterator
from typing import Any

import apsw

from hardsave.errors import Corrupt
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.stores import packs
from hardsave.stores.sqlite.read.object_index import USER_SHIFT, bounds, not_indexed, prefix
from hardsave.stores.sqlite.salvage.rebuild import HIGHEST_PACK, Rebuild
from hardsave.tuples import NamedTuple


class Owned(NamedTuple):
    """A hash, and whose it is: users share nothing."""

    user: int
    address: Hash


class ObjectCheck:
    """The objects of a new file."""

    def __init__(self, salvage: Rebuild) -> None:
        self._salvage = salvage
        self._connection = salvage.connection

    def check(self, others: Iterable[str] = ()) -> tuple[int, set[Owned]]:
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
        lost: set[Owned] = set()  # their addresses are damaged: there is nothing to look for
        for user, *roots in self._connection.execute(sql):
            for root in [root for root in roots if root is not None]:
                (wanted if isinstance(root, bytes) else lost).add(Owned(user, root))
        gone = set(self._unknown(wanted))
        for name in others:
            gone = self._found_elsewhere(name, gone)
        return dropped, lost | (self._closure(gone) if gone else gone)

    def _found_elsewhere(self, name: str, gone: set[Owned]) -> set[Owned]:
        """Add what a source has of the objects that are gone; what is gone then."""
        for user in {each.user for each in gone}:
            wanted = {each.address for each in gone if each.user == user}
            while wanted and (found := self._look_for(name, user, wanted)):
                pack = 1 + (self._one(HIGHEST_PACK, bounds(user)) or bounds(user)[0])
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
        """Objects of a source that match their hashes, from the packs that can be read."""
        found: dict[Hash, bytes] = {}
        for low, high in self._salvage.pack_spans(name, user, 0):
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
            for address in not_indexed(self._connection, user, addresses):
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

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        return self._connection.execute(sql, values).get


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
        return ()  # its bytes are what was stored: the reader of the object says what is wrong
