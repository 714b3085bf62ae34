"""Reads files that may be anything: a link, a pipe, endless, gone. Never waits, follows no link.

Any program may have written what lies in a workspace, so a file is read only if it is a regular
one of a bounded size, and what is not read has a reason that people understand.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hardsave.tuples import NamedTuple
from hardsave.workspace.filesystem.exhaustion import refuse_if_exhausted

_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe must not wait for its other end
_REASONS = {
    errno.ELOOP: "it is a symbolic link, which is not followed",
    errno.EACCES: "permission denied",
}


class Reading(NamedTuple):
    """A file's content, or why it was not read. Neither: there is none, or a directory."""

    data: bytes | None = None
    problem: str = ""


def read_path(path: Path, *, limit: int) -> Reading:
    """A file of the user's own: the path may lead over links."""
    try:
        descriptor = os.open(path, _FILE)
    except OSError as error:
        return failure(error)
    return read_descriptor(descriptor, limit=limit)


def read_beneath(directory: int, path: bytes, *, limit: int) -> Reading:
    """A file below an open directory. No link is followed, wherever in the path it stands."""
    *parents, name = path.split(b"/")
    try:
        opened = open_beneath(directory, parents)
    except OSError as error:
        return failure(error)
    try:
        descriptor = os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=opened)
    except OSError as error:
        return failure(error)
    finally:
        os.close(opened)
    return read_descriptor(descriptor, limit=limit)


def open_beneath(directory: int, names: list[bytes]) -> int:
    """A directory below another, name by name. The caller closes it."""
    here = os.dup(directory)
    for name in names:
        try:
            if name in (b"", b".", b".."):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            below = open_directory(name, parent=here)
        finally:
            os.close(here)
        here = below
    return here


def open_directory(path: bytes | Path, *, parent: int | None = None) -> int:
    """Open a directory that is no link. A path of the user's own may lead over links."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, dir_fd=parent)
    except NotADirectoryError:
        # Linux says the same about a link as about a file; which of the two it is matters.
        if stat.S_ISLNK(os.stat(path, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
        raise


def read_descriptor(descriptor: int, *, limit: int) -> Reading:
    """What an open file holds. Closes it."""
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            return Reading()
        if not stat.S_ISREG(status.st_mode):
            return Reading(problem="it is not a file")
        if status.st_size > limit:
            return Reading(problem=f"it has more than {limit} bytes")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        return failure(error)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        return Reading(problem=f"it has more than {limit} bytes")
    return Reading(data)


def chunks(file: int, size: int, chunk_bytes: int) -> Iterator[bytes]:
    """The content of an open file, in chunks of `chunk_bytes`, the last one shorter.

    It may grow faster than it is read: of what comes beyond `size` there is one byte, to tell.
    """
    left = size + 1
    while left and (chunk := _chunk(file, min(chunk_bytes, left))):
        yield chunk
        left -= len(chunk)


def _chunk(file: int, size: int) -> bytes:
    """So many bytes, fewer only at the end."""
    data = os.read(file, size)
    while data and len(data) < size:
        more = os.read(file, size - len(data))
        if not more:
            break
        data += more
    return data


def failure(error: OSError) -> Reading:
    refuse_if_exhausted(error)
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Reading()
    if error.errno == errno.ENXIO:  # a socket
        return Reading(problem="it is not a file")
    return Reading(problem=_REASONS.get(error.errno or 0) or os.strerror(error.errno or 0))
