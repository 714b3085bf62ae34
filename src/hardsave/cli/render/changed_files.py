"""Changed files as people count them: paths with a sign, lines added and removed; and files on disk
beside those of a checkpoint."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave.cli.render import wording
from hardsave.defaults import MAX_DIFF_BYTES
from hardsave.timeline.diff import FileDiff

if TYPE_CHECKING:  # they take longer to import than all that is drawn
    from hardsave.vault.files import Files, Held

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_NEWLINE = "\\ "


def signed(found: FileDiff) -> list[tuple[str, str]]:
    """`+`, `~` or `-` and the path, by path; folders only if nothing in them says so."""
    some = {"+": found.added, "~": found.changed, "-": found.removed}
    pairs = [(sign, path) for sign in some for path in wording.without_folders(some[sign])]
    return sorted(pairs, key=lambda each: each[1])


def counts(found: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How many were added, changed, removed."""
    signs = [sign for sign, _ in found]
    return {sign: signs.count(sign) for sign in "+~-"}


def stat(patch: str) -> dict[str, int]:
    """How many lines a unified diff adds and removes."""
    signs = [line[:1] for line, is_inside in by_line(patch) if is_inside]
    return {sign: signs.count(sign) for sign in "+-"}


def by_line(patch: str) -> Iterator[tuple[str, bool]]:
    """The lines of one file's diff, and whether each is one of the file: a line that begins with
    `--` and is removed looks like what stands above them, so they are counted."""
    removed = added = 0  # lines that are still to come
    for line in patch.split("\n")[:-1]:
        is_inside = removed > 0 or added > 0 or line.startswith(_NO_NEWLINE)
        yield line, is_inside
        if is_inside:
            removed, added = removed - (line[:1] in " -"), added - (line[:1] in " +")
        elif hunk := _HUNK.match(line):
            removed, added = (int(number or 1) for number in hunk.groups())


def patch_since(then: "Files | None", root: Path, path: str) -> str:
    """How a file on disk has changed since a checkpoint, as lines. Nothing is saved for this."""
    from hardsave.vault import files

    return files.compared(path, files.held(then, path), _on_disk(root, path))


def patch_back_to(then: "Files | None", root: Path, path: str) -> str:
    """What a file on disk would lose and gain, if a checkpoint's came in its place."""
    from hardsave.vault import files

    return files.compared(path, _on_disk(root, path), files.held(then, path))


def _on_disk(root: Path, path: str) -> "Held | None":
    """A file may be replaced while it is read: no link is followed, nothing is awaited."""
    from hardsave.vault.files import Held
    from hardsave.workspace.filesystem import bounded_read

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
    from hardsave.workspace.entries import kept_mode

    try:
        return kept_mode(here.lstat().st_mode)
    except OSError:  # it is just going
        return 0
