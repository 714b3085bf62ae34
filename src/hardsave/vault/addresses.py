"""A set of addresses of objects: a few in memory, all of them in a scratch.

An export keeps here what it has written, a purge which objects hold its text. What a checkpoint
shares with the one before it was added a while ago; what is new to it was never added. The first
is found among the recent ones, the second is told by a filter that holds some bits of each address
and is never wrong when it says no. So the scratch is hardly asked, and what it is to hold is given
to it many at a time and sorted.
"""

import struct
from collections.abc import Iterable

from hardsave.objects.hashing import Hash
from hardsave.vault.scratch import Scratch

TABLES = """
    CREATE TABLE addresses (address BLOB PRIMARY KEY) WITHOUT ROWID;
"""
RECENT = 100_000  # objects, twice
_FILTER_BITS = 1 << 26  # 8 MiB: with ten million objects it is wrong of one in twenty
_WORDS = struct.Struct("<3I")


class Filter:
    """Some bits of each address that was added."""

    def __init__(self) -> None:
        self._bits = bytearray(_FILTER_BITS // 8)

    def add(self, addresses: Iterable[Hash]) -> None:
        bits = self._bits
        for address in addresses:
            for word in _WORDS.unpack_from(address):
                at = word % _FILTER_BITS
                bits[at >> 3] |= 1 << (at & 7)

    def may_hold(self, address: Hash) -> bool:
        """False: it was never added."""
        bits = self._bits
        for word in _WORDS.unpack_from(address):
            at = word % _FILTER_BITS
            if not bits[at >> 3] & 1 << (at & 7):
                return False
        return True


class Addresses:
    """Grows with nothing but its scratch. None is added twice."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._young: set[Hash] = set()
        self._old: set[Hash] = set()
        self._stored = Filter()  # of what is in the scratch

    def __contains__(self, address: Hash) -> bool:
        if address in self._young or address in self._old:
            return True
        if not self._stored.may_hold(address):
            return False
        return self._scratch.row("SELECT 1 FROM addresses WHERE address = ?", address) is not None

    def add(self, address: Hash) -> None:
        self._young.add(address)
        if len(self._young) >= RECENT:
            self._store(self._old)
            self._old, self._young = self._young, set()

    def _store(self, addresses: set[Hash]) -> None:
        self._stored.add(addresses)
        rows = ((address,) for address in sorted(addresses))
        self._scratch.many("INSERT INTO addresses VALUES (?)", rows)
