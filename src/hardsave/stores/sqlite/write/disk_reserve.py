"""Disk space that is reserved while there is some, to remove objects with when there is none.

To remove objects, SQLite first writes which pages become free. On a disk that other programs have
filled it could not even do that, and a store could only grow. So a file of a few megabytes lies
beside every store that is worth it; a collection removes it if it needs the space, and a later
commit makes it anew.
"""

import contextlib
import os

from hardsave.defaults import SPARE_BYTES
from hardsave.stores.local.database import free_bytes

SUFFIX = "-reserve"
_WORTH_IT = 4 * SPARE_BYTES  # of a store: a smaller one has little to give back
_PLENTY = 16 * SPARE_BYTES  # of the disk


def set_aside(store: str) -> None:
    """Make the file, if it is not there, is worth it, and much of the disk is free."""
    path = store + SUFFIX
    if os.path.exists(path) or os.path.getsize(store) < _WORTH_IT or free_bytes(store) < _PLENTY:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _allocate(descriptor)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def _allocate(descriptor: int) -> None:
    if hasattr(os, "posix_fallocate"):  # not on macOS
        os.posix_fallocate(descriptor, 0, SPARE_BYTES)
    else:
        os.write(descriptor, bytes(SPARE_BYTES))


def release(store: str) -> None:
    """Remove the file, if little of the disk is free."""
    with contextlib.suppress(OSError):
        if free_bytes(store) < SPARE_BYTES:
            os.unlink(store + SUFFIX)
