"""What the tools of Codex are to do: a patch names its files in its text. Pure."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from hardsave.agents import tools
from hardsave.agents.tools import Work

_PATCH = "*** Begin Patch"
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
_HOLDERS = ("command", "cmd", "input")  # of the text of a patch, where there are arguments


def work(given: Any) -> Work:
    """Some models hand a patch over as it is, some as an argument, some as a command's word."""
    patched = [path for text in _texts(given) for path in _patched(text)]
    return tools.edits(patched) if patched else tools.by_keys(tools.arguments(given))


def _texts(given: Any) -> list[str]:
    named = tools.arguments(given)
    return [tools.words(named.get(key)) for key in _HOLDERS] if named else [tools.words(given)]


def makes(given: Any, path: str, before: str | None, after: str | None) -> bool:
    """Whether a patch makes one content of a file out of another, as `tools.makes` has it."""
    for text in _texts(given):
        lines = text.splitlines() if _PATCH in text else []
        for at, line in enumerate(lines):
            if line in [begin + path for begin in _PATCHED[:3]]:
                body = list(takewhile(lambda each: not each.startswith("*** "), lines[at + 1 :]))
                moves = lines[at + 1 : at + 2] and lines[at + 1].startswith(_PATCHED[3])
                return not moves and _makes(line, body, before, after)
    return False


def _makes(header: str, body: Sequence[str], before: str | None, after: str | None) -> bool:
    if header.startswith(_PATCHED[1]):
        return after == "".join(f"{line[1:]}\n" for line in body)
    if header.startswith(_PATCHED[2]):
        return after is None
    return before is not None and after == _applied(before, body)


def _applied(before: str, body: Sequence[str]) -> str | None:
    """A file with the hunks of a patch put in, each behind the one before; None if one does not
    fit."""
    lines, at = before.split("\n"), 0
    for hunk in _hunks(body):
        old = [line[1:] for line in hunk if line[:1] != "+"]
        new = [line[1:] for line in hunk if line[:1] != "-"]
        starts = range(at, len(lines) - len(old) + 1)
        found = next((start for start in starts if lines[start : start + len(old)] == old), None)
        if found is None:
            return None
        lines[found : found + len(old)] = new
        at = found + len(new)
    return "\n".join(lines)


def _hunks(body: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in body:
        if line.startswith("@@"):
            found.append([])
        else:
            found[-1].append(line)
    return [hunk for hunk in found if hunk]


def _patched(text: str) -> list[str]:
    """The files that a patch names."""
    lines = text.splitlines() if _PATCH in text else []
    return [
        line.removeprefix(begin) for line in lines for begin in _PATCHED if line.startswith(begin)
    ]
