"""Finds a new ignore rule that leaves out more files than it leaves in, to report it.

A rule that is written between two captures leaves files out that the one before had, and nothing
else shows it: they are ignored. Found by comparing with the last scan, so a first capture reports
nothing.
"""

import os
from collections.abc import Iterator, Mapping

from hardsave.defaults import IGNORE_FILES
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured, joined, last_name, lies_in, parent
from hardsave.workspace.filesystem.bounded_read import read_beneath
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.ignore import rules as ignore
from hardsave.workspace.scan.cache import Cache
from hardsave.workspace.scan.result import FoundDirectory, Scan

WHOLE = b"."
"""The path of a loss among what is not captured: that of the workspace itself."""

_MAX_IGNORE_FILE = 1 << 16  # of a longer one, the line is not looked for


class _Ignored(NamedTuple):
    """A path that is ignored now, and was captured before."""

    path: bytes
    is_dir: bool


def loss(scan: Scan) -> NotCaptured | None:
    """The report, if rules leave out more of what the last scan had than they leave in."""
    ignored = [each for found in scan.found for each in _newly_ignored(found)]
    if not ignored:
        return None
    counts = _files(scan.cache)
    had = sum(counts.values())
    lost = {each: _lost(each, counts) for each in ignored}
    gone = sum(lost.values())
    if 2 * gone <= had:
        return None
    rule = _rule(scan.root, max(ignored, key=lambda each: lost[each]))
    return NotCaptured(
        WHOLE, f"{rule} leaves out {gone:,} of {had:,} files that the last checkpoint had"
    )


def _newly_ignored(found: FoundDirectory) -> Iterator[_Ignored]:
    known = found.known
    if known is None or found.ignored is known.ignored or not found.ignored:
        return
    ignored = set(found.ignored).difference(known.ignored)
    yield from (_Ignored(joined(found.path, name), False) for name in ignored & {*known.files})
    yield from (_Ignored(joined(found.path, name), True) for name in ignored & {*known.directories})


def _files(cache: Cache) -> Mapping[bytes, int]:
    """How many files each directory had."""
    return {path: len(cache.stats(path).files) for path in cache.paths()}


def _lost(each: _Ignored, counts: Mapping[bytes, int]) -> int:
    if not each.is_dir:
        return 1
    return sum(count for path, count in counts.items() if lies_in(path, each.path))


# Which rule it is


def _rule(root: bytes, each: _Ignored) -> str:
    """The line that decides about a path: the last that matches, of the nearest ignore file."""
    with RootDirectory(root) as root_dir:
        over: bytes | None = parent(each.path)
        while over is not None:
            for name in reversed(IGNORE_FILES):
                where = joined(over, name)
                content, problem = read_beneath(root_dir.fd, where, limit=_MAX_IGNORE_FILE)
                if problem:
                    return "a new rule"
                if found := _line((content or b"").split(b"\n"), each, over):
                    number, line = found
                    shown = line.decode("utf-8", "replace").strip()
                    return f"a new rule in {os.fsdecode(where)}:{number} ({shown!r})"
            over = parent(over) if over else None
    return "a new rule from outside of the workspace"


def _line(lines: list[bytes], each: _Ignored, over: bytes) -> tuple[int, bytes] | None:
    """The number and text of the line that matches a path; the file lies in `over`."""
    names = each.path[len(over) + 1 if over else 0 :].split(b"/")
    for number, line in reversed([*enumerate(lines, 1)]):
        rules = ignore.root_rules(exclude_files=(), patterns=(line.removeprefix(b"\xef\xbb\xbf"),))
        for name in names[:-1]:
            rules = rules.enter(name, ())
        if rules.match(last_name(each.path), each.is_dir):
            return number, line
    return None
