"""Bytes as zstd frames, and back. Loaded by the first who has enough of them to be worth it."""

import sys
import threading

from hardsave.errors import Corrupt

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 1
_LONG_BYTES = 512
_MUCH_BYTES = 64 * 1024  # in which a block more or less is nothing
_DENSE_LEVEL = 9  # finds nearly all addresses that came before; 5 a fifth less, 1 hardly any
_contexts = threading.local()


def compress(objects: list[bytes]) -> bytes:
    """One frame, in which the long objects at the front have blocks of their own.

    They are mostly texts, and what follows is mostly hashes: one table of symbols for both
    would suit neither, which shows where there is only a message or two. Where there is more
    than that, it is done in one call: it takes less, and threads that read files meanwhile are
    interrupted once.
    """
    long = 0
    if sum(map(len, objects)) < _MUCH_BYTES:
        long = next((at for at, data in enumerate(objects) if len(data) < _LONG_BYTES), 0)
    # Not left in reach while it is in use: after a Ctrl-C it would hold half a frame.
    context = _contexts.__dict__.pop("compressor", None) or zstd.ZstdCompressor(level=_LEVEL)
    front = b""
    if long:
        front = context.compress(b"".join(objects[:long]), zstd.ZstdCompressor.FLUSH_BLOCK)
    rest: bytes = context.compress(b"".join(objects[long:]), zstd.ZstdCompressor.FLUSH_FRAME)
    _contexts.compressor = context
    return front + rest


def compress_densely(data: bytes, before: bytes) -> bytes:
    """One frame that takes long to make, and may refer to what came `before`."""
    prefix = zstd.ZstdDict(before, is_raw=True).as_prefix
    return zstd.compress(data, level=_DENSE_LEVEL, zstd_dict=prefix)


def decompress(body: bytes, size: int, before: bytes | None = None) -> bytes:
    """At most `size` bytes, even if the frame claims more. It may refer to what came `before`."""
    if size < 0:
        raise Corrupt("a pack says that it is shorter than nothing; run verify")
    try:
        prefix = None if before is None else zstd.ZstdDict(before, is_raw=True).as_prefix
        frame = zstd.ZstdDecompressor(prefix)
        data: bytes = frame.decompress(body, max_length=size + 1)
    except zstd.ZstdError as error:
        raise Corrupt(f"a pack cannot be decompressed ({error}); run verify") from error
    if len(data) != size or not frame.eof:
        raise Corrupt("a pack is not as long as it says; run verify")
    return data
