"""Files as they are now, beside a checkpoint's. Nothing is saved for this.

What lies there may become anything meanwhile: no link is followed, nothing is awaited.
"""

import os
from pathlib import Path

from hardsave.vault import files
from hardsave.vault.files import Content, Snapshot
from hardsave.workspace import reading


def since(then: Snapshot | None, root: Path, path: str) -> str:
    """How a file has changed since a checkpoint, as lines."""
    return files.compared(path, files.held(then, path), _here(root, path))


def back_to(then: Snapshot | None, root: Path, path: str) -> str:
    """What a file would lose and gain, if a checkpoint's came in its place."""
    return files.compared(path, _here(root, path), files.held(then, path))


def _here(root: Path, path: str) -> Content:
    directory = reading.open_directory(root)
    try:
        found = reading.read_beneath(directory, os.fsencode(path), limit=files.MAX_DIFF_BYTES)
    finally:
        os.close(directory)
    here = root / path
    if here.is_symlink():
        return os.fsencode(os.readlink(here)) + b"\n"
    if found.problem:
        return found.problem
    return b"" if found.data is None and here.is_dir() else found.data
