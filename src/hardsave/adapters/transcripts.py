"""An agent's transcript as a file that grows: how far it had come, and what is new since.

A transcript is JSON lines, written by somebody else while we read. Only whole lines count, and
a mark names a beginning of the file by its length and its hash: whoever finds the same beginning
later has found the same moment.
"""

import errno
import os
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

_CHUNK = 1 << 20


class Mark(NamedTuple):
    """A beginning of a transcript that ends with a whole line."""

    offset: int
    sha256: str


EMPTY = Mark(0, sha256(b"").hexdigest())


class Reading(NamedTuple):
    """What was read of a transcript."""

    mark: Mark
    lines: list[bytes]
    """The lines after what was known, or all of them; each without its newline."""
    goes_on: bool
    """Whether the file begins with what was known."""


def read(path: Path, known: Mark = EMPTY) -> Reading:
    """The whole lines of a transcript after the part that is known; no file is an empty one."""
    try:
        file = _opened(path)
    except FileNotFoundError:
        return Reading(EMPTY, [], goes_on=known == EMPTY)
    with file:
        digest, left = sha256(), known.offset
        while left and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
        goes_on = left == 0 and digest.hexdigest() == known.sha256
        if not goes_on:
            digest = sha256()
            file.seek(0)
        new = file.read()
    whole = new[: new.rfind(b"\n") + 1]  # the last line may be half written
    digest.update(whole)
    offset = (known.offset if goes_on else 0) + len(whole)
    return Reading(Mark(offset, digest.hexdigest()), to_lines(whole), goes_on)


def beginning(path: Path, mark: Mark) -> bytes | None:
    """The part of a transcript that a mark names; None if it begins otherwise by now."""
    with _opened(path) as file:
        data = file.read(mark.offset)
    return data if is_at(data, mark) else None


def _opened(path: Path) -> BinaryIO:
    """A file, and nothing that would have to be waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file", str(path))
    return os.fdopen(descriptor, "rb")


def is_at(data: bytes, mark: Mark) -> bool:
    return len(data) == mark.offset and sha256(data).hexdigest() == mark.sha256


def to_lines(data: bytes) -> list[bytes]:
    """Without their newlines. Bytes, not texts: searches look for what was said, not for this."""
    return data.split(b"\n")[:-1]


def to_bytes(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
