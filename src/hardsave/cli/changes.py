"""Changed files as people count them: paths with a sign, lines added and removed. Pure."""

from collections.abc import Sequence

from hardsave.cli import words
from hardsave.timeline.diff import FileDiff


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
    lines = [line for line in patch.splitlines() if not line.startswith(("+++", "---"))]
    return {sign: sum(1 for line in lines if line.startswith(sign)) for sign in "+-"}
