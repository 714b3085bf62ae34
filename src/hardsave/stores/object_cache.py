"""Objects read lately, within a bound of bytes.

An object is named by its content, so a cached one stays right even when the place that it was read
from is changed or removed. A store keeps what it has read beside what was asked for: a pack that is
read for one object brings the others in it along, and they are mostly wanted next. A vault keeps
what it has checked against its hash: bytes in memory need no second proof.
"""

import threading
from collections.abc import Collection, Mapping

from hardsave.objects.hashing import Hash

CACHE_BYTES = 32 * 1024 * 1024

_most = CACHE_BYTES


def keep_at_most(limit: int) -> None:
    """Let every cache that this process makes from now on keep so many bytes. One that has the
    stores and users of many callers open cannot keep as much for each as a program keeps for its
    own."""
    global _most  # noqa: PLW0603 # of the process, as what it is about
    _most = limit


class ObjectCache:
    """Objects by user and hash, in two generations of half the bound each.

    Once the younger is full it becomes the older one, and what was in that and has not been
    asked for since is dropped. That comes close to "least recently used", and a hit costs
    nothing but a look into a dict.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._half = (_most if limit is None else limit) // 2
        self._lock = threading.RLock()  # a signal handler may read, too
        self._young: dict[int, dict[Hash, bytes]] = {}
        self._old: dict[int, dict[Hash, bytes]] = {}
        self._bytes = 0  # of the younger

    def get(self, user: int, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        """Those of `hashes` that are kept."""
        young = self._young.get(user, {})
        try:
            return dict(zip(hashes, map(young.__getitem__, hashes), strict=True))  # mostly all
        except KeyError:
            found = {address: young[address] for address in hashes if address in young}
        if len(found) < len(hashes) and (old := self._old.get(user)):
            again = {h: old[h] for h in hashes if h in old and h not in found}
            if again:
                self.put(user, again)
                found |= again
        return found

    def put(self, user: int, objects: Mapping[Hash, bytes]) -> None:
        size = sum(map(len, objects.values()))
        with self._lock:
            self._young.setdefault(user, {}).update(objects)
            self._bytes += size
            if self._bytes > self._half:
                self._old, self._young, self._bytes = self._young, {}, 0

    def drop(self, user: int) -> None:
        """Keep nothing of a user: some of it is stored no longer."""
        with self._lock:
            self._old.pop(user, None)
            self._bytes -= sum(map(len, self._young.pop(user, {}).values()))
