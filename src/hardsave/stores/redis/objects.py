"""Objects on the server: each is a field of the user's hash, named by its own hash.

A value begins with a byte: 0, and the object follows as it is, or 1, its length (4 bytes, little-
endian), and a zstd frame.
"""

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash
from hardsave.stores.packs import COMPRESSED_FROM
from hardsave.stores.redis.server import Server

_AT_ONCE = 500  # objects in one answer
_LENGTH = struct.Struct("<I")
_PLAIN, _FRAME = b"\0", b"\1"


def packed(objects: Mapping[Hash, bytes], compress: Callable[[], bool]) -> dict[Hash, bytes]:
    """As they are stored."""
    return {address: _value(data, compress) for address, data in objects.items()}


def _value(data: bytes, compress: Callable[[], bool]) -> bytes:
    if len(data) >= COMPRESSED_FROM and compress():
        from hardsave.stores.compression import compress as frame  # most saves need none

        made = _FRAME + _LENGTH.pack(len(data)) + frame([data])
        if len(made) < len(data):
            return made
    return _PLAIN + data


def unpacked(value: bytes) -> bytes:
    if value[:1] == _PLAIN:
        return value[1:]
    if value[:1] != _FRAME or len(value) < 1 + _LENGTH.size:
        raise Corrupt("a stored object begins with neither 0 nor 1; run verify")
    from hardsave.stores.compression import decompress

    return decompress(value[1 + _LENGTH.size :], _LENGTH.unpack_from(value, 1)[0])


def read(server: Server, key: str, hashes: Collection[Hash]) -> dict[Hash, bytes]:
    """Those that are there."""
    server.check()
    found: dict[Hash, bytes] = {}
    for some in _parts(hashes):
        values = server.ask("HMGET", key, *some)
        pairs = zip(some, values, strict=True)
        found |= {address: unpacked(value) for address, value in pairs if value is not None}
    return found


def missing(server: Server, keys: Sequence[str], hashes: Collection[Hash]) -> set[Hash]:
    """Those that are not there."""
    server.check()
    found: set[Hash] = set()
    for some in _parts(hashes):
        found |= {some[at - 1] for at in server.script("missing", keys, *some)}
    return found


def scan(server: Server, key: str) -> Iterator[dict[Hash, bytes]]:
    """All of them, a part at a time; some may come twice."""
    cursor = b"0"
    while True:
        cursor, fields = server.ask("HSCAN", key, cursor, "COUNT", _AT_ONCE)
        if fields:
            yield {address: unpacked(value) for address, value in pairs_of(fields)}
        if int(cursor) == 0:
            return


def _parts(hashes: Collection[Hash]) -> Iterator[list[Hash]]:
    every = list(hashes)
    return (every[at : at + _AT_ONCE] for at in range(0, len(every), _AT_ONCE))


def pairs_of(fields: Any) -> Iterator[tuple[Any, Any]]:
    """Names and values, as the client gives them by its protocol: in turn, or as a mapping."""
    if isinstance(fields, dict):
        return iter(fields.items())
    return zip(fields[::2], fields[1::2], strict=True)
