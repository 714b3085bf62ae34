"""Directories of this machine that callers name."""

import os


def real(path: str) -> str | None:
    """Where a path leads, through `..` and links; None for one that depends on the directory of the
    server, or that no file can have."""
    try:
        return os.path.realpath(path) if os.path.isabs(path) else None
    except (OSError, ValueError):
        return None
