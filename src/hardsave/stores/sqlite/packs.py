"""Objects stored together: the unit of storage.

- directory: 20 × n bytes of hashes, then 4 × n bytes of lengths (little-endian)
- body: the objects one after the other, as they are or as one zstd frame. A body as long as
  its objects together is not compressed

Small packs are not compressed: they are merged soon, and then they are. Packs that are put
together for good are made dense: the addresses in the directory are known to the frame as
what came before it, so those that objects refer to take no room a second time.
"""

import io
import struct
import sys
import threading
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple

from hardsave.errors import Corrupt
from hardsave.objects.hashing import HASH_BYTES, Hash

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TARGET_BYTES = 256 * 1024  # a bulk save is cut into packs of about this size
COMPRESSED_FROM = 2560  # a turn of a conversation is mostly less, and is read faster so
_LEVEL = 1
_LONG_BYTES = 512
_DENSE = b"\1"  # begins a dense body; no zstd frame begins so
_DENSE_LEVEL = 9  # finds nearly all of these addresses; 5 a fifth less, 1 hardly any
_ENTRY = HASH_BYTES + 4
_contexts = threading.local()


class Pack(NamedTuple):
    size: int
    directory: bytes
    body: bytes


def pack(
    objects: Iterable[tuple[Hash, bytes]], target: int | None = TARGET_BYTES
) -> Iterator[Pack]:
    """Packs of the given objects, in order; a single one if there is no `target` size."""
    batch: list[tuple[Hash, bytes]] = []
    size = 0
    for item in objects:
        batch.append(item)
        size += len(item[1])
        if target is not None and size >= target:
            yield _packed(batch, size)
            batch, size = [], 0
    if batch:
        yield _packed(batch, size)


def pack_densely(objects: Iterable[tuple[Hash, bytes]]) -> Pack:
    """A single pack that takes long to make, and little room."""
    batch = list(objects)
    plain = _put_in_order(batch)
    if plain.size < COMPRESSED_FROM:
        return plain
    known = _addresses(plain.directory).as_prefix
    frame = zstd.compress(plain.body, level=_DENSE_LEVEL, zstd_dict=known)
    return plain._replace(body=_DENSE + frame) if len(frame) + 1 < plain.size else plain


def is_dense(made: Pack) -> bool:
    return len(made.body) != made.size and made.body.startswith(_DENSE)


def _packed(batch: list[tuple[Hash, bytes]], size: int) -> Pack:
    plain = _put_in_order(batch)
    if size < COMPRESSED_FROM:
        return plain
    frame = compress([data for _, data in batch])
    return plain._replace(body=frame) if len(frame) < size else plain


def _put_in_order(batch: list[tuple[Hash, bytes]]) -> Pack:
    addresses = b"".join([address for address, _ in batch])
    lengths = struct.pack(f"<{len(batch)}I", *[len(data) for _, data in batch])
    body = b"".join([data for _, data in batch])
    return Pack(len(body), addresses + lengths, body)


def unpack(directory: bytes, body: bytes, size: int) -> dict[Hash, bytes]:
    """The objects of a pack. Their hashes are for the reader to check."""
    if len(body) == size:
        data = body
    elif body.startswith(_DENSE):
        data = decompress(body[len(_DENSE) :], size, _addresses(directory))
    else:
        data = decompress(body, size)
    sizes = lengths(directory)
    if sum(sizes) != len(data):
        raise Corrupt("a pack's directory does not match its body; run verify")
    return dict(zip(hashes(directory), _pieces(data, sizes), strict=True))


def _addresses(directory: bytes) -> zstd.ZstdDict:
    if len(directory) < _ENTRY:
        raise Corrupt("a pack's directory is cut short; run verify")
    return zstd.ZstdDict(directory[: len(directory) // _ENTRY * HASH_BYTES], is_raw=True)


def count(directory: bytes) -> int:
    """How many objects a directory lists."""
    return len(directory) // _ENTRY


def hashes(directory: bytes) -> list[Hash]:
    """The hashes that a directory lists."""
    return list(_pieces(directory, repeat(HASH_BYTES, len(directory) // _ENTRY)))


def lengths(directory: bytes) -> tuple[int, ...]:
    """How long the objects are that a directory lists."""
    count, rest = divmod(len(directory), _ENTRY)
    if rest:
        raise Corrupt("a pack's directory is cut short; run verify")
    return struct.unpack_from(f"<{count}I", directory, count * HASH_BYTES)


def _pieces(data: bytes, lengths: Iterable[int]) -> Iterator[bytes]:
    """`data` cut into pieces, twice as fast as by slicing."""
    return map(io.BytesIO(data).read, lengths)


def holds(directory: bytes, address: Hash) -> bool:
    """Whether a pack lists `address`."""
    end = count(directory) * HASH_BYTES
    at = directory.find(address, 0, end)
    while at % HASH_BYTES and at != -1:
        at = directory.find(address, at + 1, end)
    return at != -1


def compress(objects: list[bytes]) -> bytes:
    """One frame, in which the long objects at the front have blocks of their own.

    They are mostly texts, and what follows is mostly hashes: one table of symbols for both
    would suit neither, which shows where there is only a message or two.
    """
    long = next((at for at, data in enumerate(objects) if len(data) < _LONG_BYTES), 0)
    # Not left in reach while it is in use: after a Ctrl-C it would hold half a frame.
    context = _contexts.__dict__.pop("compressor", None) or zstd.ZstdCompressor(level=_LEVEL)
    front: bytes = context.compress(b"".join(objects[:long]), zstd.ZstdCompressor.FLUSH_BLOCK)
    rest: bytes = context.compress(b"".join(objects[long:]), zstd.ZstdCompressor.FLUSH_FRAME)
    _contexts.compressor = context
    return front + rest


def decompress(body: bytes, size: int, before: zstd.ZstdDict | None = None) -> bytes:
    """At most `size` bytes, whatever the frame claims. It may refer to what came `before`."""
    if size < 0:
        raise Corrupt("a pack says that it is shorter than nothing; run verify")
    try:
        frame = zstd.ZstdDecompressor(None if before is None else before.as_prefix)
        data: bytes = frame.decompress(body, max_length=size + 1)
    except zstd.ZstdError as error:
        raise Corrupt(f"a pack cannot be decompressed ({error}); run verify") from error
    if len(data) != size or not frame.eof:
        raise Corrupt("a pack is not as long as it says; run verify")
    return data
