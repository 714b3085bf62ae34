"""Transcripts of Claude Code as data: known lines, calls that wait, and a copy that goes on.

Pure. The format is private and changes with every version. Only the types below are known: most of
them were seen in transcripts, some are only documented elsewhere, and each is carried over as it
is. `Unknown` says what is not known, and then nothing is written.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

TYPES = frozenset(
    {
        "agent-name",
        "ai-title",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "assistant",
        "atis-latch",
        "attachment",
        "cost-state",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "queue-operation",
        "summary",
        "system",
        "tools-used",
        "user",
    }
)
VERSION = "2."
UNSAVED = (
    "No result: the session was taken back to a moment when this call was under way or its result "
    "was not written yet. Whether it has taken effect is unknown; look at the files before you "
    "repeat it."
)
_SHARED = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")


class Unknown(Exception):
    """Something in a transcript is not as we know it."""


class Open(NamedTuple):
    """A call without a result: its id, and the line that it stands in."""

    id: str
    line: Mapping[str, Any]


class Pairing:
    """Calls and results, line by line."""

    def __init__(self) -> None:
        self.waiting: dict[str, Open] = {}
        self.answered: set[str] = set()

    def take(self, line: Mapping[str, Any]) -> None:
        for block in _blocks(line):
            kind = block.get("type")
            if kind == "tool_use" and line["type"] == "assistant":
                self._call(str(block.get("id")), line)
            elif kind == "tool_result" and line["type"] == "user":
                self._result(str(block.get("tool_use_id")))

    def _call(self, id: str, line: Mapping[str, Any]) -> None:
        if id in self.waiting or id in self.answered:
            raise Unknown(f"the call {id!r} stands there twice")
        self.waiting[id] = Open(id, line)

    def _result(self, id: str) -> None:
        if self.waiting.pop(id, None) is None:
            raise Unknown(f"there is a result for {id!r}, which no call waits for")
        self.answered.add(id)


def parsed(text: str, session: str) -> dict[str, Any]:
    """A line of this session; `Unknown` if it is anything else."""
    try:
        line = json.loads(text)
    except ValueError as error:
        raise Unknown(f"a line is not JSON: {error}") from error
    if not isinstance(line, dict) or line.get("type") not in TYPES:
        kind = line.get("type") if isinstance(line, dict) else type(line).__name__
        raise Unknown(f"lines of type {kind!r} are not known")
    if line.get("sessionId", session) != session:
        raise Unknown(f"a line is of another session, {line['sessionId']!r}")
    if not str(line.get("version", VERSION)).startswith(VERSION):
        raise Unknown(f"version {line['version']!r} of Claude Code is not known")
    return line


def settled(
    lines: Sequence[str], later: Iterable[str], session: str, pending: str | None
) -> tuple[list[str], list[Open]]:
    """The lines up to where every call has its result, and the calls that never got one.

    After a tool has run its result is not written yet: it is among the `later` lines, behind all
    calls of the same answer. If it never came, it is left open.
    """
    pairing = Pairing()
    for text in lines:
        pairing.take(parsed(text, session))
    kept, open_before = list(lines), list(pairing.waiting.values())
    if pending is None or pending in pairing.answered:
        return kept, open_before
    for text in later:
        pairing.take(parsed(text, session))
        kept.append(text)
        if pending in pairing.answered and not pairing.waiting:
            return kept, []
    return list(lines), open_before


def copied(text: str, session: str, new: str) -> str:
    """A line with another session's id in its own field, and no other byte changed."""
    line = parsed(text, session)
    if "sessionId" not in line:
        return text
    wanted = {**line, "sessionId": new}
    for candidate in _replaced(text, f'"sessionId":"{session}"', f'"sessionId":"{new}"'):
        if json.loads(candidate) == wanted:
            return candidate
    raise Unknown("a line has its session's id where it cannot be replaced")


def _replaced(text: str, old: str, new: str) -> Iterator[str]:
    """Each way to replace one occurrence; the field that is meant stands last as a rule."""
    at = text.rfind(old)
    while at >= 0:
        yield text[:at] + new + text[at + len(old) :]
        at = text.rfind(old, 0, at)


def result(call: Open, new: str, uuid: str, moment: str) -> str:
    """The truth about a call that has no result, as Claude Code would have written one."""
    block = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": UNSAVED,
        "is_error": True,
    }
    line = {
        "parentUuid": call.line.get("uuid"),
        "isSidechain": call.line.get("isSidechain", False),
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "uuid": uuid,
        "timestamp": moment,
        "toolUseResult": f"Error: {UNSAVED}",
        "sourceToolAssistantUUID": call.line.get("uuid"),
        **{key: call.line[key] for key in _SHARED if key in call.line},
        "sessionId": new,
    }
    return _dumped(line)


def title(text: str, new: str) -> str:
    return _dumped({"type": "custom-title", "customTitle": text, "sessionId": new})


def has_talk(lines: Iterable[str]) -> bool:
    """Whether anything was said: a session without is not worth going on with."""
    return any(json.loads(line).get("type") in ("user", "assistant") for line in lines)


def _blocks(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, Mapping))


def _dumped(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))
