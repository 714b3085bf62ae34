"""Where to cut an archive, so that files which stay the same are stored once. Pure but for reading.

A tar archive is cut where a file begins and where it ends, and within a long file at equal
distances from its beginning. The pieces, put together, are the archive to the byte, so a wrong
guess costs room and nothing else.
"""

import tarfile
from collections.abc import Iterator
from typing import IO

PIECE_BYTES = 1 << 20


def pieces(archive: IO[bytes], size: int) -> Iterator[bytes]:
    """The pieces of an archive of `size` bytes, which can be read anywhere, in order."""
    at = 0
    for until in _cuts(archive, size):
        while at < until:
            archive.seek(at)
            piece = archive.read(min(until - at, PIECE_BYTES))
            if not piece:
                raise EOFError(f"the archive ended at byte {at} of {size}")
            at += len(piece)
            yield piece


def _cuts(archive: IO[bytes], size: int) -> list[int]:
    """Where the files of an archive begin and end; none in what is no tar archive."""
    cuts = {size}
    archive.seek(0)
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                cuts |= {member.offset_data, member.offset_data + member.size}
    except (tarfile.TarError, EOFError, ValueError):
        return [size]
    return sorted(cut for cut in cuts if 0 < cut <= size)
