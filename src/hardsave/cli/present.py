"""Files as they are now, beside a checkpoint's. Nothing is saved for this.

What lies there may become anything meanwhile: no link is followed, nothing is awaited.
"""

import os
from pathlib import Path

from hardsave.defaults import MAX_DIFF_BYTES
from hardsave.vault import files
from hardsave.vault.files import Files, Held
from hardsave.workspace import reading
from hardsave.workspace.entries import kept_mode


def since(then: Files | None, root: Path, path: str) -> str:
    """How a file has changed since a checkpoint, as lines."""
    return files.compared(path, files.held(then, path), _here(root, path))


def back_to(then: Files | None, root: Path, path: str) -> str:
    """What a file would lose and gain, if a checkpoint's came in its place."""
    return files.compared(path, _here(root, path), files.held(then, path))


def _here(root: Path, path: str) -> Held | None:
    directory = reading.open_directory(root)
    try:
        found = reading.read_beneath(directory, os.fsencode(path), limit=MAX_DIFF_BYTES)
    finally:
        os.close(directory)
    here = root / path
    if here.is_symlink():
        return Held(os.fsencode(os.readlink(here)), "symlink")
    if found.data is None and here.is_dir():
        return Held(b"", "directory", _mode(here))
    content = found.problem or found.data
    return None if content is None else Held(content, mode=_mode(here))


def _mode(here: Path) -> int:
    try:
        return kept_mode(here.lstat().st_mode)
    except OSError:  # it is just going
        return 0
