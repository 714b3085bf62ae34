"""Changed files as people count them: paths with a sign, lines added and removed."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hardsave.timeline.diff import FileDiff, without_folders
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:  # they take longer to import than all that is drawn
    from hardsave.vault.files import Files, Held
    from hardsave.vault.history.file_sides import Side

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_NEWLINE = "\\ "


class FileStat(NamedTuple):
    """How much of one file has changed."""

    sign: str  # `+`, `~` or `-`
    path: str
    added: int = 0  # lines
    removed: int = 0
    note: str = ""  # instead of lines, where there are none to count

    @property
    def lines(self) -> int:
        return self.added + self.removed


def signed(found: FileDiff) -> list[tuple[str, str]]:
    """`+`, `~` or `-` and the path, by path; folders only if nothing in them says so."""
    some = {"+": found.added, "~": found.changed, "-": found.removed}
    pairs = [(sign, path) for sign in some for path in without_folders(some[sign])]
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


def within(found: FileDiff, paths: Sequence[str]) -> FileDiff:
    """What lies at one of these paths, or below it."""

    def chosen(some: Sequence[str]) -> tuple[str, ...]:
        return tuple(each for each in some if any(is_within(each, path) for path in paths))

    return FileDiff(chosen(found.added), chosen(found.removed), chosen(found.changed))


def is_within(path: str, folder: str) -> bool:
    return folder == "." or path == folder or path.startswith(folder + "/")


def turned(found: FileDiff) -> FileDiff:
    """The way back."""
    return FileDiff(found.removed, found.added, found.changed)


def file_stat(sign: str, path: str, old: "Side", new: "Side") -> FileStat:
    """What became of one file, in numbers."""
    from hardsave.vault import files

    before, after = old(path), new(path)
    lines = stat(files.compared(path, before, after))
    if any(lines.values()):
        return FileStat(sign, path, lines["+"], lines["-"])
    return FileStat(sign, path, note=_note(before, after))


def _note(old: "Held | None", new: "Held | None") -> str:
    """What to say of a file that has no changed lines."""
    contents = [each.content for each in (old, new) if each is not None]
    if said := next((each for each in contents if isinstance(each, str)), None):
        return said
    if any(b"\0" in each for each in contents if isinstance(each, bytes)):
        return f"Bin {_size(old):,} → {_size(new):,} bytes"
    kinds = [each.kind for each in (old, new) if each is not None]
    if "directory" in kinds and len(kinds) == 1:
        return "an empty directory"
    return "mode or kind" if len(kinds) == 2 else "empty"


def _size(side: "Held | None") -> int:
    return 0 if side is None else len(side.content)


def patch_back_to(then: "Files | None", root: Path, path: str) -> str:
    """What a file on disk would lose and gain, if a checkpoint's came in its place."""
    from hardsave.vault.history import file_sides

    return file_sides.patch(path, file_sides.disk_side(root), file_sides.checkpoint_side(then))
