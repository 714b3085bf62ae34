"""Changed files as people count them: paths with a sign, lines added and removed. Pure."""

import re
from collections.abc import Iterator, Sequence

from hardsave.cli import words
from hardsave.timeline.diff import FileDiff

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_NEWLINE = "\\ "


def signed(found: FileDiff) -> list[tuple[str, str]]:
    """`+`, `~` or `-` and the path, by path; folders only if nothing in them says so."""
    some = {"+": found.added, "~": found.changed, "-": found.removed}
    pairs = [(sign, path) for sign in some for path in words.without_folders(some[sign])]
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
