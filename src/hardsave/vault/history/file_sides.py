"""What lies at a path, in a checkpoint or on the disk, for a comparison of the two."""

import os
from collections.abc import Callable
from pathlib import Path

from hardsave.defaults import MAX_DIFF_BYTES
from hardsave.vault.files import Files, Held, compared, held
from hardsave.workspace.entries import kept_mode
from hardsave.workspace.filesystem import bounded_read

Side = Callable[[str], Held | None]
"""What lies at a path, in a checkpoint or on the disk."""


def checkpoint_side(then: Files | None) -> Side:
    return lambda path: held(then, path)


def disk_side(root: Path) -> Side:
    """Nothing is saved for this. It reads any path below the root: which ones a caller may see is
    for the caller of this to decide."""
    return lambda path: _on_disk(root, path)


def patch(path: str, old: Side, new: Side) -> str:
    """How a file differs between the two, as lines."""
    return compared(path, old(path), new(path))


def _on_disk(root: Path, path: str) -> Held | None:
    """A file may be replaced while it is read: no link is followed, nothing is awaited."""
    directory = bounded_read.open_directory(root)
    try:
        found = bounded_read.read_beneath(directory, os.fsencode(path), limit=MAX_DIFF_BYTES)
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
