"""Transcripts of Claude Code as data: known lines, calls and results, and a copy that goes on.

Pure. Only the types below are known: those that were seen in transcripts, and those that Claude
Code 2.1.325 lists as its own. Most stay as they are in a copy; a few belong to the one session
alone, and Claude Code itself takes none of them along when it forks one.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hardsave.agents import json_lines
from hardsave.agents.json_lines import dumped, loaded
from hardsave.agents.spec import UNSAVED, Ending, Line, Open, Unknown

KEPT = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "assistant",
        "atis-latch",
        "attachment",
        "attribution-snapshot",
        "content-replacement",
        "cost-state",
        "custom-title",
        "data-flow-incomplete",
        "data-flow-records",
        "derived-from",
        "ended-by-model",
        "file-history-delta",
        "file-history-snapshot",
        "frame-link",
        "history-suppression",
        "isolation-latch",
        "last-prompt",
        "memory-mode",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "relocated",
        "repl-mode",
        "session-owner",
        "summary",
        "system",
        "tag",
        "tools-used",
        "user",
        "worktree-state",
    }
)
LEFT_OUT = frozenset(
    {
        "artifact-autoreact-ledger",
        "artifact-comment-monitor",
        "bridge-session",  # two sessions would answer to one remote control
        "continued-in",  # leads away, to where the original went on
        "dev-mods",
        "resume-head-vouch",  # a checksum of the file that it stands in
    }
)
VERSION = "2."
_BACKGROUND = ("backgroundTaskId", "isAsync")  # what the result of such a call tells
_LEFT = (*(f'"{key}"'.encode() for key in _BACKGROUND), b"<tool-use-id>")
_OWN_TITLE = r" \((rewound to|forked from) :\d+\)$"  # hooks need not compile it
_SHARED = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")


directory = json_lines.directory
moment = json_lines.moment
moved = json_lines.moved  # each line of the talk says where; Claude Code finds it by its folder


def parsed(text: str, session: str) -> Line:
    line = json_lines.parsed(text, KEPT | LEFT_OUT)
    if line.get("sessionId", session) != session:
        raise Unknown(f"a line is of another session, {line['sessionId']!r}")
    if not str(line.get("version", VERSION)).startswith(VERSION):
        raise Unknown(f"version {line['version']!r} of Claude Code is not known")
    return line


def calls(line: Line) -> Iterator[str]:
    if line["type"] == "assistant":
        yield from (str(block.get("id")) for block in _blocks(line, "tool_use"))


def results(line: Line) -> Iterator[str]:
    if line["type"] == "user":
        yield from (str(block.get("tool_use_id")) for block in _blocks(line, "tool_result"))


def ended_call(line: Line) -> str | None:
    """It notes each result once the hook of its call has returned, in the order of the calls."""
    return next(results(line), None)


def ends_calls(line: Line) -> bool:
    """Never: a request to the model has to answer for every call."""
    return False


def is_from_model(line: Line) -> bool:
    return bool(line["type"] == "assistant")


def is_to_model(line: Line) -> bool:
    return bool(line["type"] == "user")


def is_talk(line: Line) -> bool:
    return is_from_model(line) or is_to_model(line)


def attached(heard: Line, later: Iterable[Line]) -> int:
    """Attachments, and what a tool says besides its result: the text of a skill, the size that an
    image had. Up to the first other line that is linked to what was said."""
    kept = 0
    for at, line in enumerate(later, 1):
        is_linked = _id(line, "uuid") and not line.get("isSidechain")
        if is_linked and line["type"] != "attachment" and not _is_besides(line, heard):
            break
        kept = at if is_linked else kept
    return kept


def _is_besides(line: Line, heard: Line) -> bool:
    """Whether Claude Code says this itself, and to the same prompt: a session that goes on after it
    was killed begins with such words, too."""
    is_own = is_to_model(line) and bool(line.get("isMeta"))
    return is_own and line.get("promptId") == heard.get("promptId")


def inherited(later: Sequence[str], session: str, moment: str) -> int:
    """All before the last prompt that is not younger. That is the one in question: a prompt gets
    its time before the hook is called. In most sessions it is the first."""
    told = enumerate(map(loaded, later))
    earlier = (at for at, line in told if "" < _id(line, "timestamp") <= moment and _is_asked(line))
    return max(earlier, default=0)


def continued_from(known: Sequence[Line], later: Sequence[str]) -> int:
    """A line names the one before it. If the first that comes follows an earlier one, and a prompt
    stands between them, that prompt and all after it were given up. A prompt that follows none
    is a new beginning; after a compaction another line comes first."""
    linked = (line for line in map(loaded, later) if line.get("uuid"))
    first = next((line for line in linked if not line.get("isSidechain")), None)
    if first is None:
        return len(known)
    ids, before = [line.get("uuid") for line in known], first.get("parentUuid")
    kept = ids.index(before) + 1 if before is not None and before in ids else len(known)
    if before is None and _is_asked(first) and not first.get("isCompactSummary"):
        kept = 0
    return kept if any(map(_is_prompt, known[kept:])) else len(known)


def abandoned(known: Sequence[Line], waiting: Sequence[Open]) -> Iterator[str]:
    """Those that the last prompt stands behind in the file, and does not go back to by the lines
    that each one names before it. An agent that was killed has left them open."""
    prompts = [at for at, line in enumerate(known) if _is_prompt(line)] if waiting else []
    earlier = known[: prompts[-1] + 1] if prompts else []
    way = _way_back(earlier, _id(earlier[-1], "uuid") if earlier else "")
    left = {_id(line, "uuid") for line in earlier} - way - {""}
    return (call.id for call in waiting if _id(call.line, "uuid") in left)


def _way_back(lines: Sequence[Line], start: str) -> set[str]:
    """From a line to the first, by the ids of those that each one names before it."""
    before = {_id(line, "uuid"): _id(line, "parentUuid") for line in lines}
    way, at = set[str](), start
    while at and at not in way:
        way.add(at)
        at = before.get(at, "")
    return way


def _id(line: Line, key: str) -> str:
    found = line.get(key)
    return found if isinstance(found, str) else ""


def _is_asked(line: Line) -> bool:
    return line.get("type") == "user" and _is_prompt(line)


def _is_prompt(line: Line) -> bool:
    is_aside = line.get("isSidechain") or line.get("isMeta")
    return is_to_model(line) and not is_aside and not any(_blocks(line, "tool_result"))


def copied(text: str, session: str, new: str) -> str | None:
    """With another session's id in its own field, and no other byte changed."""
    line = parsed(text, session)
    if line["type"] in LEFT_OUT:
        return None
    if "sessionId" not in line:
        return text
    wanted = {**line, "sessionId": new}
    # The field that is meant stands last as a rule.
    for candidate in _replaced(text, f'"sessionId":"{session}"', f'"sessionId":"{new}"'):
        if json.loads(candidate) == wanted:
            return candidate
    raise Unknown("a line has its session's id where it cannot be replaced")


def _replaced(text: str, old: str, new: str) -> Iterator[str]:
    """Each way to replace one occurrence, from the last to the first."""
    at = text.rfind(old)
    while at >= 0:
        yield text[:at] + new + text[at + len(old) :]
        at = text.rfind(old, 0, at)


def closing(lines: Sequence[str], waiting: Sequence[Open], ending: Ending) -> list[str]:
    """Results as Claude Code would have written them, and the title that its picker shows."""
    parsed = [loaded(text) for text in lines]
    title = f"{_given_title(parsed) or ending.title} ({ending.origin})"
    named = {"type": "custom-title", "customTitle": title, "sessionId": ending.session}
    results = [_result(call, ending) for call in waiting]
    return [*results, *_way_on(parsed, ending), dumped(named)]


def _given_title(lines: Sequence[Line]) -> str:
    """The title that its user has given; not one of ours, which a copy of a copy has, too."""
    named = [_id(line, "customTitle") for line in lines if line.get("type") == "custom-title"]
    return next((title for title in reversed(named) if not re.search(_OWN_TITLE, title)), "")


def _way_on(lines: Sequence[Line], ending: Ending) -> Iterator[str]:
    """Where to go on, as Claude Code notes it from time to time. What it has noted last leads to
    what was given up if its user had taken it back since, and it has not noted anything yet. Once
    it has, that names no line at all: then it goes on from the last one. What it calls explicit is
    where its user went back to, and hides all that was said since: a note of ours never is."""
    noted = next((line for line in reversed(lines) if line.get("type") == "last-prompt"), None)
    prompt = next((line for line in reversed(lines) if _is_prompt(line)), None)
    if noted is None or prompt is None:
        return
    leaf, last = _id(noted, "leafUuid"), _id(prompt, "uuid")
    if leaf not in {_id(line, "uuid") for line in lines}:
        return
    if leaf not in _way_back(lines, last) and last not in _way_back(lines, leaf):
        said = {key: noted[key] for key in ("type", "lastPrompt") if key in noted}
        yield dumped({**said, "leafUuid": last, "sessionId": ending.session})


def _result(call: Open, ending: Ending) -> str:
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
        "uuid": ending.make_id(),
        "timestamp": ending.moment,
        "toolUseResult": f"Error: {UNSAVED}",
        "sourceToolAssistantUUID": call.line.get("uuid"),
        **{key: call.line[key] for key in _SHARED if key in call.line},
        "sessionId": ending.session,
    }
    return dumped(line)


def messages(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    return [found for line in lines if (found := _message(line)) is not None]


def _message(line: bytes) -> dict[str, Any] | None:
    told = loaded(line)
    if told.get("type") not in ("user", "assistant"):
        return None
    inner = told.get("message")
    if not isinstance(inner, dict) or told.get("isSidechain") or told.get("isMeta"):
        return None
    return {"role": inner.get("role", told["type"]), "content": inner.get("content", "")}


def left_running(line: bytes) -> Iterator[tuple[str, bool]]:
    """The result of a command or an agent in the background comes at once; Claude Code tells itself
    when that has ended, by the same id."""
    if not any(mark in line for mark in _LEFT):
        return
    told = loaded(line)
    result = told.get("toolUseResult")
    if isinstance(result, Mapping) and any(result.get(key) for key in _BACKGROUND):
        yield from ((str(block.get("tool_use_id")), True) for block in _blocks(told, "tool_result"))
    if told.get("type") == "queue-operation" and told.get("operation") == "enqueue":
        found = str(told.get("content")).partition("<tool-use-id>")[2].partition("</tool-use-id>")
        yield from [(found[0], False)] if found[1] else ()


def _blocks(line: Line, kind: str) -> Iterator[Mapping[str, Any]]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == kind:
            yield block
