"""Looks for texts in everything that a store has on disk, whether or not anything leads to it.

Raw bytes of every file; every zstd frame that begins anywhere in them; SQLite pages put together
where a value continues on overflow pages; and what SQLite itself reads out of every table,
decompressed where it is a frame. So pages that are free, and frames of a WAL that is overwritten
next, are looked at too. Knows nothing of Hardsave but that it uses SQLite and zstd.
"""

import contextlib
import re
import shutil
import struct
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import apsw

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x28\xb5\x2f\xfd"
# The page numbers of a file that is not large.
POINTER = re.compile(rb"(?=(\x00\x00(?!\x00\x00)[\x00-\xff]{2}))")
MARGIN = 1_000  # no secret is longer
WAL_MAGICS = (0x377F0682, 0x377F0683)


def found(folder: Path, secrets: Iterable[str]) -> set[str]:
    """Those of `secrets` that occur anywhere in the files below a folder."""
    wanted = list(secrets)
    while True:
        try:
            return _found(folder, wanted)
        except FileNotFoundError:
            continue  # a backup was just replaced by its next version: look at that one


def _found(folder: Path, secrets: Iterable[str]) -> set[str]:
    left = {secret: secret.encode() for secret in secrets}
    seen: set[str] = set()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for chunk in chunks(file):
            hits = [secret for secret, data in left.items() if data in chunk]
            seen.update(hits)
            for secret in hits:
                del left[secret]
    return seen


def chunks(file: Path) -> Iterator[bytes]:
    """Everything that can be made out of one file."""
    raw = file.read_bytes()
    yield raw
    yield from frames(raw)
    yield from over_pages(pages_of(raw))
    if raw.startswith(b"SQLite format 3\0"):
        for value in values(file):
            yield value
            yield from frames(value)


def frames(data: bytes) -> Iterator[bytes]:
    """What every zstd frame in `data` holds, as far as it can be read."""
    at = data.find(MAGIC)
    while at != -1:
        yield unpacked(data[start : start + 512] for start in range(at, len(data), 512))
        at = data.find(MAGIC, at + 1)


def unpacked(pieces: Iterable[bytes]) -> bytes:
    """A frame that is cut or runs into something else is read up to there."""
    out = bytearray()
    reader = zstd.ZstdDecompressor()
    for piece in pieces:
        try:
            out += reader.decompress(piece)
        except (zstd.ZstdError, EOFError):
            break
        if reader.eof:
            break
    return bytes(out)


def pages_of(raw: bytes) -> list[tuple[int, bytes]]:
    """(number, content) of the pages of a database, or of all frames of a WAL, old ones too."""
    if raw.startswith(b"SQLite format 3\0"):
        size = struct.unpack_from(">H", raw, 16)[0]
        size = 65536 if size == 1 else size
        return [(at // size + 1, raw[at : at + size]) for at in range(0, len(raw), size)]
    if len(raw) >= 32 and struct.unpack_from(">I", raw)[0] in WAL_MAGICS:
        size = struct.unpack_from(">I", raw, 8)[0]
        step = size + 24
        return [
            (struct.unpack_from(">I", raw, at)[0], raw[at + 24 : at + step])
            for at in range(32, len(raw) - step + 1, step)
        ]
    return []


def over_pages(pages: list[tuple[int, bytes]]) -> Iterator[bytes]:
    """What continues from one page on another: both sides of every seam, and whole frames.

    An overflow page begins with the number of the next. The first piece of a value ends with
    the number of its second, somewhere in a page: every four bytes that name a page may be it.
    """
    near = Neighbours(pages)
    for at, (_, page) in enumerate(pages):
        starts = [match.start() for match in re.finditer(re.escape(MAGIC), page)]
        for match in POINTER.finditer(page):
            end = match.start()
            for following in near(int.from_bytes(match[1]), at):
                for reserved in (0, 8):  # at the end of each page: checksums, if it has them
                    last = len(page) - reserved if end == 0 else end
                    yield page[max(last - MARGIN, 0) : last] + following[4 : 4 + MARGIN]
                    for start in starts:
                        if start < end:
                            more = rest(following, near, at, reserved)
                            yield unpacked(chain([page[start:end]], more))


class Neighbours:
    """Pages by number. A WAL has many versions of one; those nearest were written together."""

    def __init__(self, pages: list[tuple[int, bytes]]) -> None:
        self._pages = pages
        self._places: dict[int, list[int]] = {}
        for at, (number, _) in enumerate(pages):
            self._places.setdefault(number, []).append(at)

    def __call__(self, number: int, at: int) -> list[bytes]:
        places = self._places.get(number)
        if not places:
            return []
        middle = bisect_right(places, at)
        return [self._pages[place][1] for place in places[max(middle - 1, 0) : middle + 1]]


def rest(page: bytes, near: Neighbours, at: int, reserved: int) -> Iterator[bytes]:
    """The contents of a chain of overflow pages."""
    for _ in range(100):
        yield page[4 : len(page) - reserved]
        following = near(struct.unpack_from(">I", page)[0], at)
        if not following:
            return
        page = following[-1]


def values(file: Path) -> Iterator[bytes]:
    """Every value of every table, read from a copy so that the file stays as it is."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            if (part := file.with_name(file.name + suffix)).exists():
                shutil.copy(part, Path(folder, f"copy{suffix}"))
        connection = apsw.Connection(str(Path(folder, "copy")))
        with contextlib.suppress(apsw.Error):  # half a file is read as bytes alone
            tables = connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
            ).fetchall()
            for (table,) in tables:
                for row in connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 # its own
                    for value in row:
                        if isinstance(value, str | bytes):
                            yield value.encode() if isinstance(value, str) else value
        connection.close(True)
