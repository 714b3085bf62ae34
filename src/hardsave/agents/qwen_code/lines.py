"""Transcripts of Qwen Code as data: known lines, calls and results, and a copy that goes on.

Pure. A line is `{uuid, parentUuid, sessionId, timestamp, type, cwd, version, …}`, and what was said
is in its `message`, as `parts`. The results of one answer are written together, when the last of
its calls has ended. A line of type `system` has a subtype; those below Qwen Code 0.24 writes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hardsave.agents import json_lines
from hardsave.agents.json_lines import dumped, loaded
from hardsave.agents.spec import UNSAVED, Ending, Line, Open, Unknown

TYPES = frozenset({"assistant", "system", "tool_result", "user"})
SUBTYPES = frozenset(
    {
        None,
        "at_command",
        "attribution_snapshot",
        "background_task_completed",
        "branch_checkpoint",
        "chat_compression",
        "continue_last_turn",
        "cron",
        "custom_title",
        "file_history_snapshot",
        "goal_runtime",
        "goal_state",
        "goal_turn_end",
        "mid_turn_user_message",
        "notification",
        "omni_recall",
        "parent_session",
        "realtime_message",
        "rewind",
        "session_artifact_event",
        "session_artifact_snapshot",
        "session_model",
        "session_recording_degraded",
        "session_source",
        "session_sources_snapshot",
        "slash_command",
        "turn_result",
        "ui_telemetry",
        "user_text_elements",
    }
)
OLDEST = (0, 24)  # from here on, up to the next first number, sessions are written as known
_SAID_MEANWHILE = "mid_turn_user_message"
_SHARED = ("cwd", "version")


directory = json_lines.directory
moment = json_lines.moment
moved = json_lines.moved  # each line says where it was said; Qwen Code finds it by its folder


def parsed(text: str, session: str) -> Line:
    line = json_lines.parsed(text, TYPES)
    kind = line["type"]
    subtype = line.get("subtype")
    if not isinstance(subtype, str | None) or subtype not in SUBTYPES:
        raise Unknown(f"lines of type {kind!r} and subtype {subtype!r} are not known")
    if line.get("sessionId") != session:
        raise Unknown(f"a line is of another session, {line.get('sessionId')!r}")
    json_lines.check_version(line.get("version"), OLDEST, "Qwen Code")
    return line


def calls(line: Line) -> Iterator[str]:
    if is_from_model(line):
        yield from (str(call.get("id")) for call in _parts(line, "functionCall"))


def results(line: Line) -> Iterator[str]:
    if line["type"] == "tool_result":
        yield from (str(result.get("id")) for result in _parts(line, "functionResponse"))


def ended_call(line: Line) -> str | None:
    """Each result has a line of its own, in the order of the calls."""
    return next(results(line), None)


def ends_calls(line: Line) -> bool:
    """A prompt: a call that was left open before it Qwen Code answers itself when it asks the
    model. And a summary of all that was said before."""
    is_prompt = line["type"] == "user" and line.get("subtype") != _SAID_MEANWHILE
    return is_prompt or line.get("subtype") == "chat_compression"


def is_from_model(line: Line) -> bool:
    return bool(line["type"] == "assistant")


def is_to_model(line: Line) -> bool:
    return line["type"] in ("tool_result", "user")


def is_talk(line: Line) -> bool:
    return is_from_model(line) or is_to_model(line)


def attached(heard: Line, later: Iterable[Line]) -> int:
    """What its user has said while the tools were at work is sent with their results."""
    count = 0
    for at, line in enumerate(later, 1):
        if line.get("subtype") == _SAID_MEANWHILE:
            count = at
        elif is_talk(line):
            break
    return count


def inherited(later: Sequence[str], session: str, moment: str) -> int:
    """None: a session that was forked begins with a copy of the other, which is written at once."""
    return 0


def continued_from(known: Sequence[Line], later: Sequence[str]) -> int:
    """All: when its user takes Qwen Code itself back, it writes a line that says to where."""
    return len(known)


def abandoned(known: Sequence[Line], waiting: Sequence[Open]) -> Iterator[str]:
    """None: a prompt ends all that were open before it."""
    return iter(())


def copied(text: str, session: str, new: str) -> str:
    return dumped({**parsed(text, session), "sessionId": new})


def closing(lines: Sequence[str], waiting: Sequence[Open], ending: Ending) -> list[str]:
    """Results as Qwen Code would have written them, and the title that its list shows. Each line
    names the one before it: Qwen Code goes back from the last."""
    last = loaded(lines[-1])
    told = [_result(call) for call in waiting]
    title = {"customTitle": f"{ending.title} ({ending.origin})", "titleSource": "manual"}
    told.append({"type": "system", "subtype": "custom_title", "systemPayload": title})
    written, before = [], last.get("uuid")
    for each in told:
        id = ending.make_id()
        head = {"uuid": id, "parentUuid": before, "sessionId": ending.session}
        shared = {key: last[key] for key in _SHARED if key in last}
        written.append(dumped({**head, "timestamp": ending.moment, **shared, **each}))
        before = id
    return written


def _result(call: Open) -> dict[str, Any]:
    names = {each.get("id"): each.get("name") for each in _parts(call.line, "functionCall")}
    response = {"id": call.id, "name": names.get(call.id), "response": {"error": UNSAVED}}
    return {
        "type": "tool_result",
        "message": {"role": "user", "parts": [{"functionResponse": response}]},
        "toolCallResult": {"callId": call.id, "status": "error", "resultDisplay": UNSAVED},
    }


def messages(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    return [found for line in lines if (found := _message(loaded(line))) is not None]


def _message(line: Mapping[str, Any]) -> dict[str, Any] | None:
    role = {"user": "user", "assistant": "assistant", "tool_result": "tool"}.get(
        str(line.get("type"))
    )
    blocks = [block for part in _all_parts(line) for block in _block(part)]
    return None if role is None or not blocks else {"role": role, "content": blocks}


def _block(part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if isinstance(call := part.get("functionCall"), Mapping):
        told = {"id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
        yield {"type": "tool_use", **told}
    elif isinstance(result := part.get("functionResponse"), Mapping):
        content = _output(result.get("response"))
        yield {"type": "tool_result", "tool_use_id": result.get("id"), "content": content}
    elif isinstance(text := part.get("text"), str) and not part.get("thought"):
        yield {"type": "text", "text": text}


def _output(response: Any) -> str:
    """What a tool has said, or why it could not."""
    told = response if isinstance(response, Mapping) else {}
    found = told.get("output", told.get("error", response))
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _parts(line: Line, kind: str) -> Iterator[Mapping[str, Any]]:
    for part in _all_parts(line):
        if isinstance(found := part.get(kind), Mapping):
            yield found


def _all_parts(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = line.get("message")
    parts = message.get("parts") if isinstance(message, Mapping) else None
    return [each for each in parts if isinstance(each, Mapping)] if isinstance(parts, list) else []
