"""A second witness of how far the store had come.

One flipped bit in a WAL makes SQLite drop every commit from there on, and call the rest
intact. So after each commit its number is also written to a small file beside the store,
not synced (the store itself is). A store that ends before its mark has lost something.

    4 bytes   "HSMK"
    1 byte    version, 1
    1 byte    1 if the last commit was made with durability "process"
    8 bytes   number of the last commit, big-endian
    8 bytes   which boot of the machine it was written in
    8 bytes   BLAKE3 of all that, cut
"""

import os
import struct

from blake3 import blake3

from hardsave.stores.host.boot import UNKNOWN_BOOT, boot_id
from hardsave.tuples import NamedTuple

_LAYOUT = struct.Struct(">4sBBQ8s")
_CHECK_BYTES = 8


class MarkRecord(NamedTuple):
    number: int
    relaxed: bool
    boot: bytes


class CommitMark:
    """The mark at `path`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: int | None = None  # first: so it is closed when a later line fails
        self._boot = boot_id()
        self._hasher = blake3()

    def read(self) -> MarkRecord | None:
        """What the mark says; None if there is none, or it is itself damaged."""
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        body, check = data[: _LAYOUT.size], data[_LAYOUT.size :]
        if blake3(body).digest(_CHECK_BYTES) != check:
            return None
        magic, version, relaxed, number, boot = _LAYOUT.unpack(body)
        if magic != b"HSMK" or version != 1:
            return None
        return MarkRecord(number, bool(relaxed), boot)

    def write(self, number: int, *, relaxed: bool) -> None:
        body = _LAYOUT.pack(b"HSMK", 1, relaxed, number, self._boot)
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        hasher = self._hasher  # a new one takes as long as all the rest
        hasher.reset()
        hasher.update(body)
        os.pwrite(self._file, body + hasher.digest(_CHECK_BYTES), 0)

    def is_from_this_boot(self, record: MarkRecord) -> bool:
        return record.boot == self._boot

    def may_be_old(self, record: MarkRecord) -> bool:
        """Whether the machine may have gone down since: a mark is not synced."""
        return record.boot != self._boot or self._boot == UNKNOWN_BOOT

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        file, self._file = self._file, None  # first: Ctrl-C must not leave it to be closed twice
        if file is not None:
            os.close(file)
