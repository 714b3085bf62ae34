"""What an error means to a shell: an exit code, and a message in the words of the command line."""

import re
from collections.abc import Iterator
from enum import IntEnum

from hardsave.errors import (
    Conflict,
    Corrupt,
    HardsaveError,
    Misuse,
    NotFound,
    Unavailable,
)


class Exit(IntEnum):
    """How a command ends."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    DAMAGED = 5
    UNAVAILABLE = 6
    INTERRUPTED = 130  # as shells have it: 128 and the number of SIGINT


_EXITS: tuple[tuple[type[HardsaveError], Exit], ...] = (
    (NotFound, Exit.NOT_FOUND),
    (Conflict, Exit.CONFLICT),
    (Corrupt, Exit.DAMAGED),
    (Unavailable, Exit.UNAVAILABLE),
    (Misuse, Exit.USAGE),
)

_LONG = 120  # characters of a message that is not put in lines
_LISTED = 3  # things that stand in lines of their own
_WIDTH = 74
_ITEM = re.compile(r"\S+( \(.*\))?( and [\d,]+ more)?")


def exit_for(error: BaseException) -> Exit:
    """The one place that knows which error ends how."""
    for kind, code in _EXITS:
        if isinstance(error, kind):
            return code
    return Exit.FAILED


def in_lines(message: str) -> str:
    """A message for people. A long one that lists things in lines: a few to a line, and each hint
    on one of its own."""
    parts = message.split("; ")
    if len(message) <= _LONG or not any(map(_listed, parts)):
        return message
    return "\n".join(line for part in parts for line in _lines(part))


def _listed(part: str) -> list[str]:
    """What it lists, if that is more than a few words can say: names, each perhaps with a remark;
    not the parts of a sentence."""
    items = part.partition(": ")[2].split(", ")
    is_list = len(items) >= _LISTED and all(map(_ITEM.fullmatch, items))
    return items if is_list else []


def _lines(part: str) -> Iterator[str]:
    items = _listed(part)
    if not items:
        yield part
        return
    yield f"{part.partition(': ')[0]}:"
    line = ""
    for item in items:
        if line and len(line) + len(item) > _WIDTH:
            yield f"  {line},"
            line = ""
        line = f"{line}, {item}" if line else item
    yield f"  {line}"


def as_data(exit: Exit, message: str) -> dict[str, object]:
    """An error as the one JSON document that a command answers with."""
    return {"error": {"kind": exit.name.lower(), "exit": int(exit), "message": message}}
