"""A JSON text whose value changes: what stays the same keeps its bytes. Pure: from text to text.

Settings belong to their user. Adding a line to them must not reformat the rest: a list on one line
stays on one line, numbers stay as they were written, and so do the ends of lines.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hardsave.tuples import NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_read = json.JSONDecoder().raw_decode


class _Member(NamedTuple):
    """What stands in an object or an array, and where."""

    key: str | None
    start: int  # of its key, if it has one
    at: int  # where its value begins
    end: int
    value: Any


class _Edit(NamedTuple):
    """What stands there from then on, instead of what stood there."""

    start: int
    end: int
    text: str


def edited(text: str, value: Any) -> str:
    """A text with another value; one that says nothing stands for an empty object. Members that
    are new come behind all others."""
    if not text.strip():
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n" if value else text
    at = _after_space(text, 0)
    before, end = _read(text, at)
    edits = sorted(_edits(text, _Member(None, at, at, end, before), value))
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edits(text: str, old: _Member, new: Any) -> Iterator[_Edit]:
    if _is_same(old.value, new):
        return
    pairs = _pairs(text, old, new)
    if not any(value is not _GONE for _, value in pairs):
        yield _Edit(old.at, old.end, _written(text, old.at, new))
        return
    added = _added(old.value, new)
    is_kept = False  # whether any stays that stands before
    for number, (member, value) in enumerate(pairs):
        if value is not _GONE:
            is_kept = True
            yield from _edits(text, member, value)
        elif is_kept:
            yield _Edit(pairs[number - 1][0].end, member.end, "")
        else:
            yield _Edit(member.start, pairs[number + 1][0].start, "")
    if added:
        first, last = pairs[0][0], pairs[-1][0]
        yield _Edit(last.end, last.end, _appended(text, old.at, first.start, added))


_GONE = object()


def _pairs(text: str, old: _Member, new: Any) -> list[tuple[_Member, Any]]:
    """Each member with the value that it is to have; nothing if the two are not of one kind."""
    if isinstance(old.value, dict) and isinstance(new, dict):
        return [(each, new.get(each.key, _GONE)) for each in _members(text, old.at)]
    if isinstance(old.value, list) and isinstance(new, list):
        return list(zip(_members(text, old.at), _matched(old.value, new), strict=True))
    return []


def _matched(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """What becomes of each item of a list: those that both end with are told from the end, unless
    some are new: these come last."""
    kept = min(len(old), len(new))
    if len(new) >= len(old):
        return list(new[:kept])
    ends = 0
    while ends < kept and _is_same(old[-1 - ends], new[-1 - ends]):
        ends += 1
    return [*new[: kept - ends], *[_GONE] * (len(old) - kept), *new[kept - ends :]]


def _added(old: Any, new: Any) -> list[tuple[str | None, Any]]:
    if isinstance(old, Mapping):
        return [(key, value) for key, value in new.items() if key not in old]
    return [(None, value) for value in new[len(old) :]]


def _members(text: str, at: int) -> Iterator[_Member]:
    """Those of the object or the array that begins there."""
    is_object = text[at] == "{"
    at = _after_space(text, at + 1)
    while text[at] not in "}]":
        start, key = at, None
        if is_object:
            key, at = _read(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        value, end = _read(text, at)
        yield _Member(key, start, at, end, value)
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _appended(text: str, opening: int, first: int, added: Sequence[tuple[str | None, Any]]) -> str:
    """Members that are to stand behind others, set as these are."""
    between = text[opening + 1 : first]
    lead = between if "\n" in between else " "
    names = ["" if key is None else f"{json.dumps(key, ensure_ascii=False)}: " for key, _ in added]
    values = [_written(text, first, value, is_set="\n" in between) for _, value in added]
    return "".join(f",{lead}{name}{value}" for name, value in zip(names, values, strict=True))


def _written(text: str, at: int, value: Any, *, is_set: bool | None = None) -> str:
    """A value that begins there: in lines of its own if what is around it is, too."""
    if not ("\n" in text if is_set is None else is_set):
        return json.dumps(value, ensure_ascii=False)
    found = _INDENT.search(text)
    lines = json.dumps(value, indent=found[1] if found else "  ", ensure_ascii=False)
    line = text.rfind("\n", 0, at) + 1
    margin = text[line : _after_space(text, line)] if line <= at else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    return lines.replace("\n", newline + margin)


def _is_same(old: Any, new: Any) -> bool:
    """To JSON: True is no 1."""
    return json.dumps(old) == json.dumps(new)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it may be empty
    return found.end()
