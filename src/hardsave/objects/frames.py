"""An export's file, as bytes: a header, then frames, each bounded, compressed and chained.

    header   magic, version, counts, and the hash of these
    frame    section, length, stored length, link, body
    …        the last frame is the trailer

A frame's link is the hash of the link before it, its own header and its body; the first
follows the header's hash. So nothing can be changed, left out, added or swapped without the
next link noticing, and the trailer's link covers the whole file.

The bodies of one section, put together, are its records, each behind its length. Nothing
here knows what a record means, opens a file, or takes memory on the word of a length.
"""

import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum

from hardsave.errors import Corrupt, Misuse
from hardsave.objects import wire
from hardsave.objects.hashing import HASH_BYTES, Hash, digest
from hardsave.tuples import NamedTuple

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x89HSX\r\n\x1a\n"  # like PNG's: what mangles text shows at once
VERSION = 2
_OLDEST = 1  # without summaries and titles
FRAME_BYTES = 1 << 20  # a frame holds so much, and only the last of a section less
_LEVEL = 3
_WINDOW_LOG = 20  # a frame that asks for more memory than FRAME_BYTES is refused
_HEADER = struct.Struct("<8sHHIQQQ")
_FRAME = struct.Struct("<BII")
_TOTALS = struct.Struct("<QQ")
HEADER_BYTES = _HEADER.size + HASH_BYTES
_HEAD_BYTES = _FRAME.size + HASH_BYTES


class Section(IntEnum):
    """What the records of a frame are. Sections come in this order, each once or not at all."""

    OBJECTS = 1
    TIMELINES = 2
    HISTORY = 3
    TRAILER = 4


class Counts(NamedTuple):
    """What the header announces."""

    timelines: int
    checkpoints: int
    tombstones: int


class Totals(NamedTuple):
    """What the trailer says about the objects."""

    objects: int
    object_bytes: int


class FrameWriter:
    """Cuts records into frames. The same records make the same bytes."""

    def __init__(self, write: Callable[[bytes], None], counts: Counts) -> None:
        self._write = write
        self._pending = bytearray()
        self._section = Section.OBJECTS
        self._objects = self._object_bytes = 0
        header = _HEADER.pack(MAGIC, VERSION, 0, 0, *counts)
        self._link = digest(header)
        write(header + self._link)

    def add(self, section: Section, record: bytes) -> None:
        """Add a record; sections come in their order."""
        if section != self._section:
            self._flush()
            self._section = section
        if section is Section.OBJECTS:
            self._objects += 1
            self._object_bytes += len(record)
        self._pending += wire.varint(len(record))
        self._pending += record
        if len(self._pending) >= FRAME_BYTES:
            self._cut()

    def finish(self) -> Totals:
        """Write what is left, and the trailer."""
        self._flush()
        totals = Totals(self._objects, self._object_bytes)
        self._frame(Section.TRAILER, _TOTALS.pack(*totals))
        return totals

    def _cut(self) -> None:
        whole = len(self._pending) // FRAME_BYTES * FRAME_BYTES
        for at in range(0, whole, FRAME_BYTES):
            self._frame(self._section, bytes(self._pending[at : at + FRAME_BYTES]))
        del self._pending[:whole]

    def _flush(self) -> None:
        self._cut()
        if self._pending:
            self._frame(self._section, bytes(self._pending))
            self._pending.clear()

    def _frame(self, section: Section, data: bytes) -> None:
        packed = zstd.compress(data, _LEVEL)
        body = packed if len(packed) < len(data) else data
        head = _FRAME.pack(section, len(data), len(body))
        self._link = digest(self._link + head + body)
        self._write(head + self._link + body)


class FrameReader:
    """Checks frames and gives out records. `read(size, offset)` may give less than asked for."""

    def __init__(self, read: Callable[[int, int], bytes], name: str) -> None:
        self._read = read
        self._name = name
        self._at = HEADER_BYTES
        header = read(HEADER_BYTES, 0)
        if header[: len(MAGIC)] != MAGIC:
            raise Misuse(f"{name} is no export of Hardsave; name a file that export_file made")
        if len(header) < HEADER_BYTES or digest(header[: _HEADER.size]) != header[_HEADER.size :]:
            raise self.damaged("its header does not match its checksum")
        _, version, flags, zero, *counts = _HEADER.unpack_from(header)
        if not _OLDEST <= version <= VERSION or flags or zero:
            raise Misuse(
                f"{name} was written by a newer Hardsave (format {version}, this one knows "
                f"{VERSION}); upgrade Hardsave to import it"
            )
        self.counts = Counts(*counts)
        self.link: Hash = header[_HEADER.size :]
        self.totals = Totals(0, 0)

    def damaged(self, what: str) -> Corrupt:
        return Corrupt(f"{self._name} is damaged: {what}; export it again")

    def records(self, longest: Mapping[Section, int]) -> Iterator[tuple[Section, bytes]]:
        """All records, none longer than its section allows. Ends only after a sound trailer."""
        pending = bytearray()
        last = Section.OBJECTS
        for section, data in self._frames():
            if section != last and pending:
                raise self.damaged("a record is cut short")
            if section is Section.TRAILER:
                self._end(data)
                return
            last = section
            pending += data
            at = 0
            while (found := self._record(pending, at, longest[section])) is not None:
                at, record = found
                yield section, record
            del pending[:at]
        raise self.damaged("it ends without its trailer")

    def _record(self, pending: bytearray, at: int, longest: int) -> tuple[int, bytes] | None:
        """(where it ends, a record); None if not all of it is there yet."""
        size = shift = 0
        for place in range(at, min(at + 5, len(pending))):
            byte = pending[place]
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            if len(pending) - at >= 5:
                raise self.damaged("the length of a record is malformed")
            return None
        if not 0 < size <= longest or (byte == 0 and shift > 7):
            raise self.damaged(f"a record of {size} bytes is longer than it may be, or empty")
        start = place + 1
        if len(pending) < start + size:
            return None
        with memoryview(pending) as view:
            return start + size, bytes(view[start : start + size])

    def _frames(self) -> Iterator[tuple[Section, bytes]]:
        last = Section.OBJECTS
        while head := self._read(_HEAD_BYTES, self._at):
            section, data = self._frame(head)
            if section < last:
                raise self.damaged("its sections are out of order")
            last = section
            yield section, data

    def _frame(self, head: bytes) -> tuple[Section, bytes]:
        if len(head) < _HEAD_BYTES:
            raise self.damaged("it is cut short")
        number, size, stored = _FRAME.unpack_from(head)
        if number not in iter(Section) or not 0 < stored <= size <= FRAME_BYTES:
            raise self.damaged("a frame's header is malformed")
        body = self._read(stored, self._at + _HEAD_BYTES)
        link = digest(self.link + head[: _FRAME.size] + body)
        if len(body) < stored or link != head[_FRAME.size :]:
            raise self.damaged("a frame does not match its checksum")
        self.link = link
        self._at += _HEAD_BYTES + stored
        return Section(number), body if stored == size else self._unpacked(body, size)

    def _unpacked(self, body: bytes, size: int) -> bytes:
        """At most `size` bytes, also if the frame claims more."""
        options = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}
        try:
            unpacker = zstd.ZstdDecompressor(options=options)
            data: bytes = unpacker.decompress(body, max_length=size + 1)
        except zstd.ZstdError as error:
            raise self.damaged(f"a frame cannot be decompressed ({error})") from error
        if len(data) != size or not unpacker.eof or unpacker.unused_data:
            raise self.damaged("a frame is not as long as it says")
        return data

    def _end(self, data: bytes) -> None:
        if len(data) != _TOTALS.size:
            raise self.damaged("its trailer is malformed")
        if self._read(1, self._at):
            raise self.damaged("bytes follow its trailer")
        self.totals = Totals(*_TOTALS.unpack(data))
