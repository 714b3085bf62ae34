"""What a process of ours that stays has inherited from whoever started it, and does not keep.

A lock is held, and a pipe has no end, as long as anybody has it open: a resident that stays with
either would hold up people who know nothing of it. Imported by hooks, so this imports nothing.
"""

import os
from contextlib import suppress


def close_all_but(kept: int) -> None:
    """All but this one, and the three streams."""
    found: list[str] = []
    for folder in ("/proc/self/fd", "/dev/fd"):  # of Linux, and of macOS
        with suppress(OSError):
            found = found or os.listdir(folder)
    for name in found:
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):  # the one that the list was read from
                os.close(int(name))
