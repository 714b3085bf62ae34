"""Changed files as people count them: paths with a sign, lines added and removed. Pure."""

import difflib

from hardsave.cli import words
from hardsave.timeline.diff import FileDiff

MAX_BYTES = 4 << 20


def signed(found: FileDiff) -> list[tuple[str, str]]:
    """`+`, `~` or `-` and the path, by path; folders only if nothing in them says so."""
    some = {"+": found.added, "~": found.changed, "-": found.removed}
    pairs = [(sign, path) for sign in some for path in words.without_folders(some[sign])]
    return sorted(pairs, key=lambda each: each[1])


def counts(found: FileDiff) -> dict[str, int]:
    """How many were added, changed, removed."""
    signs = [sign for sign, _ in signed(found)]
    return {sign: signs.count(sign) for sign in "+~-"}


def stat(patch: str) -> dict[str, int]:
    """How many lines a unified diff adds and removes."""
    lines = [line for line in patch.splitlines() if not line.startswith(("+++", "---"))]
    return {sign: sum(1 for line in lines if line.startswith(sign)) for sign in "+-"}


def patch(old: bytes, new: bytes, path: str) -> str:
    """From one content to another, as `diff -u` shows it; one sentence if it is no text."""
    if max(len(old), len(new)) > MAX_BYTES:
        return f"{path}: too long to compare by lines\n"
    if b"\0" in old + new:
        return f"{path}: not a text\n"
    before, after = _lines(old), _lines(new)
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "surrogateescape").splitlines(keepends=True)
