"""What a hook is told, as plain data. Pure: nothing is believed before it is looked at."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hardsave.objects import depth
from hardsave.tuples import NamedTuple

_DESCRIPTION = 200
_LONGEST = 4096  # characters of a target: a path may be as long
_TARGETS = ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url")
_FILES = ("file_path", "path", "notebook_path")


class Event(NamedTuple):
    """One call of a hook: whose session, what happened, where."""

    name: str
    session: str
    transcript: str | None
    directory: str | None
    tools: tuple[str, ...] = ()
    tool_use_id: str | None = None
    calls: tuple[str, ...] = ()  # those that have ended together
    prompt: str = ""
    answer: str = ""
    subagent: str | None = None
    target: str = ""  # what the one tool worked at: its command, or its file
    is_file: bool = False  # whether that is a file
    tool_input: Any = None  # what the one tool was given

    @property
    def status(self) -> str:
        return "ended" if self.name == "SessionEnd" else "running"

    @property
    def pending(self) -> str | None:
        """The call whose result the transcript does not have yet."""
        return self.tool_use_id if self.name == "PostToolUse" and not self.subagent else None

    @property
    def batch(self) -> tuple[str, ...]:
        """The calls of the session that have ended together."""
        return () if self.subagent else self.calls

    @property
    def upcoming(self) -> str | None:
        """The call that is about to be carried out."""
        return self.tool_use_id if self.name == "PreToolUse" and not self.subagent else None

    @property
    def description(self) -> str:
        """What people read in a log."""
        if self.name == "UserPromptSubmit":
            return f"before: {' '.join(self.prompt.split())}"[:_DESCRIPTION]
        if self.tools:
            side = "before" if self.name == "PreToolUse" else "after"
            at = f": {self.target}" if self.target else ""
            return f"{side} {', '.join(self.tools)}{at}"[:_DESCRIPTION]
        return {"Stop": "answered", "SessionEnd": "session ended"}.get(self.name, self.name)

    @property
    def call(self) -> str:
        """The call as a list shows it: `Bash(make test)`."""
        tools = ", ".join(self.tools)
        return f"{tools}({self.target})" if self.tools and self.target else tools

    @property
    def phase(self) -> str:
        """Whether it is told of before or after that call."""
        if not self.tools:
            return ""
        return "before" if self.name == "PreToolUse" else "after"

    @property
    def own_prompt(self) -> str:
        """What the user has just said; nothing at any other moment."""
        is_one = self.name == "UserPromptSubmit" and self.subagent is None
        return self.prompt if is_one else ""

    def seen_from(self, project: Path) -> "Event":
        """The same with its file as a project calls it. Agents tell all that lies above it, too,
        and a line of a log would end before its name."""
        short = self.target.removeprefix(f"{project}/")
        return self._replace(target=short) if self.is_file and short else self

    def metadata(self, agent: str) -> dict[str, Any]:
        known = {
            "agent": agent,
            "session": self.session,
            "hook": self.name,
            "tool": ", ".join(self.tools) or None,
            "tool_use_id": self.tool_use_id,
            "subagent": self.subagent,
        }
        return {key: value for key, value in known.items() if value is not None}


def parse(data: bytes) -> Event:
    """What stands on a hook's standard input; ValueError if it is nothing that we know."""
    told = depth.loads(data)
    if not isinstance(told, dict):
        raise ValueError(f"a hook is told an object, not {type(told).__name__}")
    session, name = _words(told, "session_id"), _words(told, "hook_event_name")
    if not session or not name:
        raise ValueError("a hook is told session_id and hook_event_name")
    target, is_file = _target(told)
    return Event(
        name=name,
        session=session,
        transcript=_text(told, "transcript_path"),
        directory=_path(told, "cwd"),
        tools=tuple(_tools(told)),
        tool_use_id=_words(told, "tool_use_id"),
        calls=tuple(_of_calls(told, "tool_use_id")),
        prompt=_words(told, "prompt") or "",
        answer=_words(told, "last_assistant_message") or "",
        subagent=_words(told, "agent_id"),
        target=target,
        is_file=is_file,
        tool_input=told.get("tool_input"),
    )


def _tools(told: Mapping[str, Any]) -> Iterator[str]:
    if name := _words(told, "tool_name"):
        yield name
    yield from _of_calls(told, "tool_name")


def _of_calls(told: Mapping[str, Any], key: str) -> Iterator[str]:
    calls = told.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str):
        for call in calls:
            if isinstance(call, Mapping) and (found := _words(call, key)):
                yield found


def _target(told: Mapping[str, Any]) -> tuple[str, bool]:
    """What people know a call by, if there is one: what was run, or which file it was about; and
    whether it is a file."""
    calls = [told] if _words(told, "tool_name") else told.get("tool_calls")
    if not isinstance(calls, list) or len(calls) != 1 or not isinstance(calls[0], Mapping):
        return "", False
    given = calls[0].get("tool_input")
    if not isinstance(given, Mapping):
        return "", False
    for key in _TARGETS:
        found = given.get(key)
        if isinstance(found, list) and all(isinstance(word, str) for word in found):
            found = " ".join(found)
        if isinstance(found, str) and found.strip():
            words = " ".join(found.encode(errors="replace").decode().split())
            return words[:_LONGEST], key in _FILES
    return "", False


def _text(told: Mapping[str, Any], key: str) -> str | None:
    found = told.get(key)
    return found if isinstance(found, str) and found else None


def _path(told: Mapping[str, Any], key: str) -> str | None:
    """A text that can be a path; what cannot leads nowhere, and is as good as none."""
    found = _text(told, key)
    try:
        is_one = found is not None and b"\0" not in os.fsencode(found)
    except UnicodeEncodeError:  # half an emoji
        return None
    return found if is_one else None


def _words(told: Mapping[str, Any], key: str) -> str | None:
    """A text that can be stored: half of an emoji that was cut in two cannot."""
    found = _text(told, key)
    return None if found is None else found.encode(errors="replace").decode()


def timeline(prefix: str, session: str) -> str:
    """The name of a session's timeline, in characters that are safe everywhere."""
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in session)[:150]
    return f"{prefix}-{plain}"
