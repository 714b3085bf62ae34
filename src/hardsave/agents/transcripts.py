"""An agent's transcript as a file that grows: how far it had come, and what is new since.

A transcript is JSON lines, written by the agent while we read. Only whole lines count, and a mark
names a beginning of the file by its length and its hash: where the same beginning is found later,
that is the same moment. All of it is hashed again each time, because a file that has grown
may have been written anew: by the quickest hash that there is.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from blake3 import blake3

from hardsave.defaults import MAX_VALUE_BYTES
from hardsave.tuples import NamedTuple
from hardsave.wording import size

if TYPE_CHECKING:
    from hashlib import _Hash

PIECE_BYTES = 4 << 20
_CHUNK = 1 << 20


class Mark(NamedTuple):
    """A beginning of a transcript that ends with a whole line."""

    offset: int
    digest: str
    hash_name: str = "blake3"  # or "sha256", as earlier versions have it

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Mark | None":
        """As it stands in a state, which may come from a stranger; None if there is none."""
        offset = told.get("offset")
        for name in ("blake3", "sha256"):
            if isinstance(offset, int) and isinstance(told.get(name), str):
                return cls(offset, told[name], name)
        return None

    def told(self) -> dict[str, Any]:
        """For a state."""
        return {"offset": self.offset, self.hash_name: self.digest}


EMPTY = Mark(0, blake3().hexdigest())


class Reading(NamedTuple):
    """What was read of a transcript."""

    mark: Mark
    lines: list[bytes]
    """The lines after what was known, or all of them; each without its newline."""
    goes_on: bool
    """Whether the file begins with what was known."""


def read(path: Path, known: Mark = EMPTY) -> Reading:
    """The whole lines of a transcript after the part that is known; no file is an empty one."""
    *others, last = pieces(path, known)
    lines = [line for piece in (*others, last) for line in piece.lines]
    return last._replace(lines=lines)


def pieces(path: Path, known: Mark = EMPTY) -> Iterator[Reading]:
    """The same, so much at a time that it can be held: at least one, each with the mark that it
    leads to. A line that is longer than that comes whole."""
    try:
        file = _opened(path)
    except FileNotFoundError:
        yield Reading(EMPTY, [], goes_on=known.offset == 0)
        return
    with file:
        digest = _same_beginning(file, known)
        goes_on, offset = digest is not None, known.offset if digest is not None else 0
        digest = digest or blake3()
        file.seek(offset)
        for whole in _whole_lines(file):
            digest.update(whole)
            offset += len(whole)
            yield Reading(Mark(offset, digest.hexdigest()), to_lines(whole), goes_on)


def _same_beginning(file: BinaryIO, known: Mark) -> "blake3 | None":
    """The hash of a file's beginning, if that is what was known."""
    ours, left = blake3(), known.offset
    theirs = ours if known.hash_name == "blake3" else _earlier_hash()
    while left and (chunk := file.read(min(left, _CHUNK))):
        ours.update(chunk)
        if theirs is not ours:
            theirs.update(chunk)
        left -= len(chunk)
    return ours if left == 0 and theirs.hexdigest() == known.digest else None


def _earlier_hash() -> "_Hash":
    from hashlib import sha256  # which loads OpenSSL, and is met once in a conversation

    return sha256()


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file, as it is at its end: the last line may be half written. Nothing is one
    piece, too. A line without an end is not held: it may be all of a large file."""
    begin = file.tell()  # of the first line that was not yielded
    is_any = False
    while chunk := file.read(PIECE_BYTES):
        seen = file.tell() - begin
        end = chunk.rfind(b"\n") + 1
        if end:
            if seen > len(chunk):  # a long line, from its beginning
                file.seek(begin)
                chunk = file.read(seen - len(chunk) + end)
                end = len(chunk)
            yield chunk[:end]
            begin, is_any = begin + end, True
            file.seek(begin)
        elif seen > MAX_VALUE_BYTES:
            raise ValueError(f"a line is longer than {size(MAX_VALUE_BYTES)}: no state can hold it")
    if not is_any:
        yield b""


def tail(path: Path, start: int, limit: int) -> list[bytes]:
    """The last whole lines of a transcript from a place on, within so many bytes."""
    try:
        file = _opened(path)
    except FileNotFoundError:
        return []
    with file:
        end = file.seek(0, os.SEEK_END)
        at = file.seek(max(start, end - limit))
        data = file.read(limit)
    if at > start:  # it may begin in the midst of a line
        data = data[data.find(b"\n") + 1 :]
    return to_lines(data)


def beginning_lines(path: Path, limit: int) -> list[bytes]:
    """The first whole lines of a transcript within so many bytes."""
    with _opened(path) as file:
        return to_lines(file.read(limit))


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
    digest = blake3() if mark.hash_name == "blake3" else _earlier_hash()
    digest.update(data)
    return len(data) == mark.offset and digest.hexdigest() == mark.digest


def to_lines(data: bytes) -> list[bytes]:
    """Without their newlines. Bytes, not texts: searches look for what was said, not for this."""
    return data.split(b"\n")[:-1]


def to_bytes(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
