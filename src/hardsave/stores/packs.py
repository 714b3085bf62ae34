"""Objects stored together: the unit of storage.

- directory: 20 × n bytes of hashes, then 4 × n bytes of lengths (little-endian)
- body: the objects one after the other, as they are or as one zstd frame. A body as long as
  its objects together is not compressed. One that begins with a byte 2 is encrypted: no version
  does that so far, and none takes such a pack for damaged

A store that is told not to compress makes all packs plain; what is there already is read as it is.
Small packs are not compressed: they are merged soon, and then they are. Packs that are put
together for good are made dense: the addresses in the directory are known to the frame as
what came before it, so those that objects refer to take no space a second time. And objects of
one kind lie side by side: texts take less space without addresses in between.
"""

import io
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

from hardsave.errors import Corrupt, Misuse
from hardsave.objects.hashing import HASH_BYTES, Hash
from hardsave.tuples import NamedTuple

TARGET_BYTES = 256 * 1024  # a bulk save is cut into packs of about this size
COMPRESSED_FROM = 2560  # a turn of a conversation is mostly less, and is read faster so
_DENSE = b"\1"  # begins a dense body; no zstd frame begins so
_SEALED = b"\2"  # begins an encrypted one, reserved: algorithm, length of the key's id, and that id
_ENTRY = HASH_BYTES + 4


def always() -> bool:
    """Whether to compress, where nothing else is said."""
    return True


class Pack(NamedTuple):
    size: int
    directory: bytes
    body: bytes


def pack(
    objects: Iterable[tuple[Hash, bytes]],
    target: int | None = TARGET_BYTES,
    *,
    compress: Callable[[], bool] = always,
) -> Iterator[Pack]:
    """Packs of the given objects, in order; a single one if there is no `target` size. Whether to
    `compress` is asked when one is long enough for that."""
    batch: list[tuple[Hash, bytes]] = []
    size = 0
    for item in objects:
        batch.append(item)
        size += len(item[1])
        if target is not None and size >= target:
            yield _packed(batch, compress)
            batch, size = [], 0
    if batch:
        yield _packed(batch, compress)


def pack_densely(objects: Iterable[tuple[Hash, bytes]]) -> Pack:
    """A single pack that takes long to make, and little space: its objects by kind, and those of
    one kind in order."""
    batch = sorted(objects, key=lambda item: item[1][:1])
    plain = _put_in_order(batch)
    if plain.size < COMPRESSED_FROM:
        return plain
    from hardsave.stores.compression import compress_densely

    frame = compress_densely(plain.body, _addresses(plain.directory))
    return plain._replace(body=_DENSE + frame) if len(frame) + 1 < plain.size else plain


def is_compressed(made: Pack) -> bool:
    return len(made.body) != made.size


def is_dense(made: Pack) -> bool:
    return is_compressed(made) and made.body.startswith(_DENSE)


def _packed(batch: list[tuple[Hash, bytes]], compresses: Callable[[], bool]) -> Pack:
    size = sum([len(data) for _, data in batch])
    if size >= COMPRESSED_FROM and compresses():
        from hardsave.stores.compression import compress  # small packs go without

        frame = compress([data for _, data in batch])
        if len(frame) < size:
            return Pack(size, _directory(batch), frame)
    return _put_in_order(batch)


def _put_in_order(batch: list[tuple[Hash, bytes]]) -> Pack:
    body = b"".join([data for _, data in batch])
    return Pack(len(body), _directory(batch), body)


def _directory(batch: list[tuple[Hash, bytes]]) -> bytes:
    addresses = b"".join([address for address, _ in batch])
    return addresses + struct.pack(f"<{len(batch)}I", *[len(data) for _, data in batch])


def unpack(directory: bytes, body: bytes, size: int) -> dict[Hash, bytes]:
    """The objects of a pack. Their hashes are for the reader to check."""
    data = body if len(body) == size else _decompressed(directory, body, size)
    sizes = lengths(directory)
    if sum(sizes) != len(data):
        raise Corrupt("a pack's directory does not match its body; run verify")
    return dict(zip(hashes(directory), _pieces(data, sizes), strict=True))


def _decompressed(directory: bytes, body: bytes, size: int) -> bytes:
    from hardsave.stores.compression import decompress

    if body.startswith(_SEALED):
        raise Misuse(_sealed(body))
    if body.startswith(_DENSE):
        return decompress(body[len(_DENSE) :], size, _addresses(directory))
    return decompress(body, size)


def _sealed(body: bytes) -> str:
    algorithm, length = (*body[1:3], 0, 0)[:2]
    key = body[3 : 3 + length].hex()
    return (
        f"a pack is encrypted with key {key!r} by algorithm {algorithm}, which this Hardsave does "
        "not know; upgrade Hardsave to read it"
    )


def _addresses(directory: bytes) -> bytes:
    if len(directory) < _ENTRY:
        raise Corrupt("a pack's directory is cut short; run verify")
    return directory[: count(directory) * HASH_BYTES]


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
