"""What was stored ahead of its commit, under a pin: see `discard`, which removes it again."""

from typing import Any

import apsw

from hardsave.objects.hashing import Hash
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.read.object_index import bounds
from hardsave.tuples import NamedTuple

MOST_OBJECTS = 1_000_000  # that are kept in mind for a pin


class PutAhead(NamedTuple):
    """What was put under one pin, and the newest pack and commit from before that."""

    pack: int
    number: int
    objects: set[Hash]

    @property
    def is_all(self) -> bool:
        """Whether all of it is known: a huge import is left to the next gc."""
        return len(self.objects) < MOST_OBJECTS


def begin(connection: apsw.Connection, user: int) -> PutAhead:
    """To be called before the first objects are put."""
    sql = "SELECT max(id) FROM packs WHERE id > ? AND id < ?"
    pack: Any = connection.execute(sql, bounds(user)).get if user >= 0 else None
    return PutAhead(int(pack or 0), schema.last_number(connection), set())
