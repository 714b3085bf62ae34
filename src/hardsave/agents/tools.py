"""What the input of a call says about it: what the tool is to do, and at which files. Pure.

`by_keys` reads the words that most tools have in common. An agent CLI with a form of its own, as a
patch, reads that in its own folder and says the same with `edits`, `runs` or `OTHER`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from hardsave.tuples import NamedTuple

_COMMANDS = ("command", "cmd")
_FILES = ("file_path", "path", "notebook_path")
_CONTENTS = ("content", "new_string", "new_source", "edits", "old_string")
_QUESTIONS = ("pattern", "plan", "query", "questions", "skill", "subagent_type", "todos", "url")
_LONGEST_TARGET = 150  # characters
_LEAVES = re.compile(r"(?<![&>|])&(?![&>])|\b(nohup|setsid)\b")


class Kind(IntEnum):
    """How likely a call changes a file: the first of them most."""

    EDITS = 0  # the files that it names
    RUNS = 1  # a command, which may change any
    OTHER = 2  # nothing is known of it
    TOUCHES = 3  # it names files, and perhaps only reads them
    READS = 4


class Work(NamedTuple):
    """What a call is to do."""

    target: str = ""  # the command, or the file
    kind: Kind = Kind.OTHER
    paths: tuple[str, ...] = ()  # that it may change, as the input names them
    may_leave: bool = False  # whether its command looks as if it left a process running


OTHER = Work()


def runs(command: str) -> Work:
    short = " ".join(command.split())[:_LONGEST_TARGET]
    return Work(short, Kind.RUNS, may_leave=_LEAVES.search(command) is not None)


def edits(paths: Sequence[str], kind: Kind = Kind.EDITS) -> Work:
    return Work(", ".join(paths)[:_LONGEST_TARGET], kind, tuple(paths))


def by_keys(given: Any) -> Work:
    """By the names of the arguments."""
    given = arguments(given)
    for key in _COMMANDS:
        if found := words(given.get(key)):
            return runs(found)
    for key in _FILES:
        if path := words(given.get(key)):
            has_content = any(each in given for each in _CONTENTS)
            return edits([path], Kind.EDITS if has_content else Kind.TOUCHES)
    is_question = any(key in given for key in _QUESTIONS)
    return Work(kind=Kind.READS) if is_question else OTHER


def makes(given: Any, before: str | None, after: str | None) -> bool:
    """Whether an edit by these arguments makes one content of a file out of another, and nothing
    else has to have changed it; None is a file that is not there."""
    given = arguments(given)
    if isinstance(content := given.get("content"), str):
        return after == content
    edits = given.get("edits", [given])
    text = before or ""
    for each in edits if isinstance(edits, list) else ():
        old, new = (
            each.get(key) if isinstance(each, Mapping) else None
            for key in ("old_string", "new_string")
        )
        if not isinstance(old, str) or not isinstance(new, str) or old not in text:
            return False
        text = text.replace(old, new, -1 if each.get("replace_all") else 1)
    return bool(edits) and after == text


def arguments(given: Any) -> Mapping[str, Any]:
    """Those of a call, also if they were written as JSON; none if the input is anything else."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, Mapping) else {}


def words(found: Any) -> str:
    """A command may be one text, or a list of words."""
    if isinstance(found, Sequence) and not isinstance(found, str | bytes):
        return " ".join(each for each in found if isinstance(each, str))
    return found if isinstance(found, str) else ""
