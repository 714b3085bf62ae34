"""Times as file systems tell them: in steps, which a busy machine may be late to take."""

import os
import tempfile
import time


def another_moment() -> None:
    """Wait until what changes next has other stamps than whatever has changed so far."""
    with tempfile.TemporaryFile() as file:
        before = _told(file.fileno())
        while _told(file.fileno()) == before:
            time.sleep(0.001)


def _told(file: int) -> int:
    os.utime(file)
    return os.stat(file).st_mtime_ns
