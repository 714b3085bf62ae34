"""Errors of the system that say nothing about the file at hand.

This process or this machine has run out of something: to leave the file out, and all others after
it, would make an empty snapshot of a workspace that is whole. Or a disk fails: no call was wrong.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.errors import Unavailable

_EXHAUSTED = {
    errno.EMFILE: "close some of this process, or raise its limit (ulimit -n)",
    errno.ENFILE: "close some on this machine, or raise fs.file-max",
    errno.ENOMEM: "free some memory",
}

_FAILING = {errno.EIO, errno.ENOTCONN, errno.ENXIO, errno.ESTALE, errno.ETIMEDOUT}


def refuse_if_exhausted(error: OSError) -> None:
    """Raise `Unavailable` if an error is of this kind."""
    if error.errno in _EXHAUSTED:
        raise Unavailable(
            f"the files cannot be read now: {os.strerror(error.errno)}; "
            f"{_EXHAUSTED[error.errno]}, then repeat"
        ) from error


def refuse_if_disk_fails(root: bytes, error: OSError) -> None:
    """Raise `Unavailable` if the disk that a workspace lies on fails, or cannot be reached."""
    if error.errno in _FAILING:
        raise _unusable(root, error) from error


@contextmanager
def unavailable_if_disk_fails(root: bytes) -> Iterator[None]:
    """`Unavailable` instead of any error of the system that comes out of a block."""
    try:
        yield
    except OSError as error:
        refuse_if_exhausted(error)
        raise _unusable(root, error) from error


def _unusable(root: bytes, error: OSError) -> Unavailable:
    return Unavailable(
        f"the files of {os.fsdecode(root)!r} cannot be used now: {error}; "
        "see to their disk, then repeat"
    )
