"""Unpacked packs, the most recently used ones, within a bound of bytes."""

import threading
from collections import OrderedDict
from typing import Any

from hardsave.objects.hashing import Hash

CACHE_BYTES = 32 * 1024 * 1024


class PackCache:
    """Objects by (id, size) of their pack. A merged pack keeps the id of its last part but is
    larger than it, so what a key means never changes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._packs: OrderedDict[tuple[Any, ...], dict[Hash, bytes]] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[Any, ...]) -> dict[Hash, bytes] | None:
        with self._lock:
            found = self._packs.get(key)
            if found is not None:
                self._packs.move_to_end(key)
            return found

    def put(self, key: tuple[Any, ...], objects: dict[Hash, bytes]) -> None:
        with self._lock:
            if key in self._packs:
                return
            self._packs[key] = objects
            self._bytes += key[1]
            while self._bytes > self._limit and len(self._packs) > 1:
                (_, size), _ = self._packs.popitem(last=False)
                self._bytes -= size
