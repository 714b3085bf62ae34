"""Many files made to last at once.

A sync waits for the disk, and most file systems answer those who wait at the same time together:
a few threads that wait are several times faster than one, and each file is synced for itself, so
that whatever goes wrong is known of the file that it happened to.
"""

import os
from collections.abc import Sequence

_FEW = 4  # not worth a thread
_THREADS = 16


def synced(files: Sequence[int]) -> list[OSError | None]:
    """Sync open files; what went wrong with each."""
    if len(files) <= _FEW:
        return [_synced(file) for file in files]
    from concurrent.futures import ThreadPoolExecutor  # most restores are small

    with ThreadPoolExecutor(min(_THREADS, len(files)), "hardsave-sync") as pool:
        return list(pool.map(_synced, files))


def _synced(file: int) -> OSError | None:
    try:
        os.fsync(file)
    except OSError as error:
        return error
    return None
