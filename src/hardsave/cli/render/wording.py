"""Counts, sizes, and texts of any origin made safe for a terminal. Pure."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardsave.vault.files import GitState

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_BIDI = {*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C, 0x200E, 0x200F))}


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 file`, `1,204 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """`512 bytes`, `1.4 MiB`."""
    value, unit = float(number), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{number:,} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def shown(text: str) -> str:
    """A text of any origin, such as an agent or a file name, safe to print on one line.

    Escape sequences would drive the terminal, bidirectional marks would reorder what people read,
    and half a surrogate cannot be printed at all: each is written out instead.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if _is_harmless(character) else _spelt(character) for character in text
    )


def passage(text: str) -> str:
    """The same for a text of several lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(shown(part) for part in line.split("\t")) for line in lines)


def line(text: str, limit: int | None = None) -> str:
    """The same on one line, cut where it is longer than `limit`."""
    flat = shown(" ".join(text[: 4 * limit if limit else None].split()))
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def _is_harmless(character: str) -> bool:
    category = unicodedata.category(character)
    return category not in ("Cc", "Cs", "Zl", "Zp") and character not in _BIDI


def _spelt(character: str) -> str:
    number = ord(character)
    if character in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[character]
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a file name that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def without_folders(paths: Iterable[str]) -> list[str]:
    """Paths in order, but for those that others of them lie in: a new folder is its files."""
    ordered = sorted(paths, key=lambda path: path.split("/"))
    following = pairwise([*ordered, ""])
    return [path for path, after in following if not after.startswith(path + "/")]


def changed_by(told: object) -> str:
    """`Bash: 3 paths; Edit or Bash: 1 path`, of what the daemon writes into metadata; empty if it
    is anything else."""
    found = []
    for each in told if isinstance(told, Sequence) else ():
        if not isinstance(each, Mapping) or not isinstance(each.get("count"), int):
            return ""
        calls = each.get("calls", ())
        tools = dict.fromkeys(str(call["tool"]) for call in calls if isinstance(call, Mapping))
        found.append(f"{' or '.join(tools)}: {count(each['count'], 'path')}")
    return "; ".join(found)


def git(found: "GitState") -> str:
    """`main at 1a2b3c4d5e6f, rebase in progress`."""
    progress = f", {found.in_progress} in progress" if found.in_progress else ""
    return f"{shown(found.branch or 'detached')} at {(found.commit or 'no commit')[:12]}{progress}"


def branch(found: "GitState") -> str:
    """`feature`, or the commit that is checked out without a branch."""
    return shown(found.branch) if found.branch else (found.commit or "no commit")[:12]
