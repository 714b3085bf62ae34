"""What a WAL holds by itself, when the file that it belongs to is gone, or has been cut.

SQLite reads a WAL only together with its main file, and deletes one that lies beside an empty
file. But a store that is young, or was written to much since it was last moved, is in its WAL
for the most part.
"""

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

import apsw

from hardsave.stores.local.database import CHECKSUM_BYTES
from hardsave.stores.sqlite.connection import PAGE_BYTES
from hardsave.tuples import NamedTuple

_HEADER = struct.Struct(">8I")  # magic, version, page size, sequence, two salts, two sums
_FRAME = struct.Struct(">6I")  # page, pages after a commit or 0, two salts, two sums
_LOCK_PAGE = 0x4000_0000 // PAGE_BYTES + 1  # never written: SQLite's locks lie there
_MAGICS = {0x377F0682: "<", 0x377F0683: ">"}  # with the byte order of the checksums


class Pages(NamedTuple):
    """Where in a WAL the last version of each page lies, and how long the file was."""

    places: dict[int, int]
    file_pages: int


def is_cut(connection: apsw.Connection, path: str) -> bool:
    """Whether a file lacks pages at its end: they read as zeros, which no checksum covers.

    What was not moved out of the WAL yet is not missing: a crash in the middle of that leaves a
    short file too. To be called under the writer's lock, and before anything is moved: a page that
    is written behind the end would make the file long again, with a hole in it.
    """
    size = -1
    while size != (size := os.path.getsize(path)):  # another process is moving them right now
        last = int(connection.pragma("page_count"))
        lacking = set(range(size // PAGE_BYTES + 1, last + 1)) - {_LOCK_PAGE}
        if not lacking or lacking <= _kept(path + "-wal"):
            return False
    return True


def use_of(wal: str) -> bytes:
    """What tells one use of a WAL from the next, which begins at its beginning."""
    try:
        with open(wal, "rb") as file:
            return file.read(_HEADER.size)
    except FileNotFoundError:
        return b""


def dropped(path: str) -> int:
    """How many commits the WAL of a file holds behind its first frame that is not as it was
    written. SQLite reads no further than that, and calls the rest intact.

    To be called under the writer's lock. What is left of an earlier use of the WAL has other salts.
    """
    try:
        with open(path + "-wal", "rb") as wal:
            end = _HEADER.size
            for *_, place in _frames(wal):
                end = place + PAGE_BYTES
            return _behind(wal, end)
    except FileNotFoundError:
        return 0


def _behind(wal: BinaryIO, end: int) -> int:
    wal.seek(_HEADER.size)
    first = wal.read(_FRAME.size)
    if len(first) < _FRAME.size:
        return 0
    wal.seek(0)
    known = _begun(wal)
    salts = _FRAME.unpack(first)[2:4] if known is None else known.salts
    count = 0
    wal.seek(end)
    while len(frame := wal.read(_FRAME.size + PAGE_BYTES)) == _FRAME.size + PAGE_BYTES:
        _, size, *found, _, _ = _FRAME.unpack_from(frame)
        count += size > 0 and tuple(found) == salts  # the last frame of a commit
    return count


def _kept(wal: str) -> set[int]:
    """The pages that lie in a WAL."""
    try:
        with open(wal, "rb") as source:
            return set(pages(source).places)
    except FileNotFoundError:
        return set()


def pages(wal: BinaryIO) -> Pages:
    """The pages of every commit up to the first frame that is not as it was written."""
    places: dict[int, int] = {}
    pending: dict[int, int] = {}
    count = 0
    for number, size, place in _frames(wal):
        pending[number] = place
        if size:  # the last frame of a commit
            places |= pending
            pending.clear()
            count = size
    return Pages({page: at for page, at in places.items() if page <= count}, count)


def _frames(wal: BinaryIO) -> Iterator[tuple[int, int, int]]:
    """(page, pages of the file after a commit or 0, where its content lies)."""
    begun = _begun(wal)
    if begun is None:
        return
    salts, order, sums = begun
    while True:
        frame = wal.read(_FRAME.size)
        place = wal.tell()
        content = wal.read(PAGE_BYTES)
        if len(content) < PAGE_BYTES:
            return
        number, size, *found, first, second = _FRAME.unpack(frame)
        sums = _summed(_summed(sums, frame[:8], order), content, order)
        if tuple(found) != salts or sums != (first, second):
            return  # of an earlier use of the file, or damaged
        yield number, size, place


class _Begun(NamedTuple):
    """What the header of a WAL says."""

    salts: tuple[int, ...]
    order: str  # of the bytes that checksums are made of
    sums: tuple[int, int]


def _begun(wal: BinaryIO) -> _Begun | None:
    """None if it is damaged."""
    header = wal.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    magic, _, page_size, _, *salts, first, second = _HEADER.unpack(header)
    order = _MAGICS.get(magic)
    if order is None or page_size != PAGE_BYTES:
        return None
    sums = _summed((0, 0), header[:24], order)
    return _Begun(tuple(salts), order, sums) if sums == (first, second) else None


def with_checksum(page: bytes) -> bytes:
    """A page as it lies in the main file. In a WAL, the frame has the checksum."""
    content = page[:-CHECKSUM_BYTES]
    return content + struct.pack("<2I", *_summed((0, 0), content, "<"))


def _summed(sums: tuple[int, int], data: bytes, order: str) -> tuple[int, int]:
    """SQLite's checksum, of a WAL and of a page, continued."""
    one, two = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for word in words:
        one = (one + word + two) & 0xFFFFFFFF
        two = (two + next(words) + one) & 0xFFFFFFFF
    return one, two
