"""What no checkpoint leads to goes: found by reading, removed by one script.

The script removes nothing if the log has gone on since: a new checkpoint may lead to what was found
to be of no use. Then what it leads to is looked at, too, and the rest is tried again; each round is
shorter, as only what is new is read.
"""

from collections.abc import Callable, Collection

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash, digest
from hardsave.progress import check_deadline
from hardsave.stores.redis import objects
from hardsave.stores.redis.replica import Replica
from hardsave.stores.redis.server import Server
from hardsave.tuples import NamedTuple

Refs = Callable[[bytes], Collection[Hash]]

_AT_ONCE = 500  # objects that are read at once
_SWEPT_AT_ONCE = 5_000  # hashes in one call: others wait for it
_ROUNDS = 200  # until a user who writes without a pause is left for another time


class Swept(NamedTuple):
    """What went. `is_left`: some may be left, because of a pin or of others who write."""

    objects: int = 0
    object_bytes: int = 0
    stored_bytes: int = 0
    is_left: bool = False


class Collector:
    """Collects for one user."""

    def __init__(self, server: Server, keys: tuple[str, ...], replica: Replica, refs: Refs) -> None:
        self._server = server
        self._keys = keys
        self._replica = replica
        self._refs = refs
        self._reached: set[Hash] = set()

    def run(self) -> Swept:
        done = Swept()
        left = set(self._server.ask("HKEYS", self._keys[2])) if self._may_sweep() else None
        if left is None:
            return Swept(is_left=True)
        for _ in range(_ROUNDS):
            check_deadline()
            at = self._mark()
            left -= self._reached
            done, is_pinned = self._sweep(at, left, done)
            if not left or is_pinned:
                return done._replace(is_left=bool(left))
        return done._replace(is_left=True)

    def _may_sweep(self) -> bool:
        answer: bytes = self._server.script("sweep", self._keys, b"")[0]
        return answer != b"pinned"

    def _mark(self) -> bytes:
        """Reach what the checkpoints of now lead to; up to where the log was read for it."""
        with self._replica.reading() as tenant:
            at = self._replica.at
            roots = {root for record in tenant.checkpoints.values() for root in record.roots}
        frontier = roots - self._reached
        while frontier:
            self._reached |= frontier
            frontier = self._behind(list(frontier)) - self._reached
        return at

    def _behind(self, hashes: list[Hash]) -> set[Hash]:
        found: set[Hash] = set()
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            there = objects.read(self._server, self._keys[2], some)
            for address in some:
                found.update(self._refs(_sound(address, there.get(address))))
        return found

    def _sweep(self, at: bytes, left: set[Hash], done: Swept) -> tuple[Swept, bool]:
        """Remove what is left, as far as the log stands still. Whether a pin came."""
        while left:
            some = sorted(left)[:_SWEPT_AT_ONCE]
            answer, *counts = self._server.script("sweep", self._keys, at, *some)
            if answer != b"swept":
                return done, answer == b"pinned"
            left.difference_update(some)
            sums = (one + more for one, more in zip(done, counts, strict=False))
            done = Swept(*sums)
        return done, False


def _sound(address: Hash, data: bytes | None) -> bytes:
    if data is None or digest(data) != address:
        raise Corrupt(f"object {address.hex()} is missing or damaged; run verify before gc")
    return data
