"""Transcripts of Codex as data: known lines, calls and results, and a copy that goes on.

Pure. Codex calls them rollouts. A line is `{timestamp, ordinal, type, payload}`; the first one
says whose session it is and which version wrote it. What the model is asked with are the payloads
of `response_item`; all others are carried over as they are. With most models a script calls the
tools, and the conversation has one call, the script: hooks are told the ids of those inside it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hardsave.agents import json_lines
from hardsave.agents.json_lines import dumped, inside, loaded
from hardsave.agents.spec import UNSAVED, Ending, Line, Open, Unknown
from hardsave.objects import depth

TYPES = frozenset(
    {
        "compacted",
        "dynamic_tools_updated",
        "event_msg",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "realtime_item",
        "response_item",
        "retained_context",
        "security_risk_score",
        "session_meta",
        "token_usage_record",
        "turn_context",
        "world_state",
    }
)
# A call, and what its result is called
CALLS = {
    "custom_tool_call": "custom_tool_call_output",
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "tool_search_call": "tool_search_output",
}
RESULTS = frozenset(CALLS.values())
SAID = frozenset({*CALLS, "image_generation_call", "reasoning", "web_search_call"})
HEARD = frozenset(
    {
        *RESULTS,
        "additional_tools",
        "agent_message",
        "compaction",
        "compaction_trigger",
        "configuration_update",
        "context_compaction",
    }
)
OLDEST = (0, 160)  # from here on, up to the next first number, sessions are written as known
TYPED = ("codex-tui", "codex_cli_rs", "codex_exec")  # what begins a session by a command
_PAST = frozenset({"task_complete", "task_started", "turn_aborted"})
_LEFT, _ENDED = b"Process running with session ID", b'"item_completed"'
_ROOTS = ("runtime_workspace_roots", "workspace_roots", "writable_roots")
_BASES = frozenset({"forked_from_id", "history_base"})
_HEARD = frozenset({"HookPrompt", "UserMessage"})
# What has ended there is no tool that works here
_NO_CALLS = _HEARD | {
    "AgentMessage",
    "ContextCompaction",
    "ImageGeneration",
    "Plan",
    "Reasoning",
    "WebSearch",
}


moment = json_lines.moment


def parsed(text: str, session: str) -> Line:
    line = json_lines.parsed(text, TYPES)
    kind = line["type"]
    payload, ordinal = line.get("payload"), line.get("ordinal")
    if not isinstance(payload, dict) or not isinstance(ordinal, int):
        raise Unknown(f"a line of type {kind!r} has no payload, or no ordinal")
    if kind == "session_meta":
        _check_session(payload, session)
    elif kind == "response_item" and _item(line) not in SAID | HEARD | {"message"}:
        raise Unknown(f"items of type {_item(line)!r} are not known")
    return line


def _check_session(payload: Mapping[str, Any], session: str) -> None:
    json_lines.check_version(payload.get("cli_version"), OLDEST, "Codex")
    if payload.get("history_mode") != "paginated":
        raise Unknown(f"a history that is {payload.get('history_mode')!r} is not known")
    own = session.partition("_")[0]  # it may go on in a second file, which has an id of its own
    if payload.get("id") != own or payload.get("session_id") != own:
        raise Unknown(f"it is of another session, {payload.get('id')!r}")


def directory(line: Line) -> str | None:
    """An editor's session is of no directory: its server may stand anywhere."""
    if line["type"] != "session_meta":
        return None
    found, origin = line["payload"].get("cwd"), line["payload"].get("originator")
    return found if isinstance(found, str) and origin in TYPED else ""


def calls(line: Line) -> Iterator[str]:
    if _item(line) in CALLS:
        yield str(line["payload"].get("call_id"))


def results(line: Line) -> Iterator[str]:
    if _item(line) in RESULTS:
        yield str(line["payload"].get("call_id"))


def ended_call(line: Line) -> str | None:
    item = _completed(line)
    if item is None or str(item.get("type")) in _NO_CALLS:
        return None
    return str(item.get("id"))


def ends_calls(line: Line) -> bool:
    """A turn that has ended, or begun: Codex itself tells the model that a call was aborted."""
    is_event = line["type"] == "event_msg"
    return str(line["payload"].get("type")) in _PAST if is_event else line["type"] == "compacted"


def is_from_model(line: Line) -> bool:
    item = _completed(line)
    if item is not None:
        return str(item.get("type")) not in _HEARD
    kind = _item(line)
    return kind in SAID or (kind == "message" and line["payload"].get("role") == "assistant")


def is_to_model(line: Line) -> bool:
    kind = _item(line)
    return kind in HEARD or (kind == "message" and line["payload"].get("role") != "assistant")


def is_talk(line: Line) -> bool:
    """Also in what this one goes on from, to which its first line leads: another session, or the
    same before it was taken back; and a summary of what was said."""
    is_summary = line["type"] == "compacted"
    return is_summary or _message(line) is not None or not _BASES.isdisjoint(line["payload"])


def attached(heard: Line, later: Iterable[Line]) -> int:
    """That a subagent has ended. What its user has said meanwhile calls a hook by itself."""
    count = 0
    for at, line in enumerate(later, 1):
        if _item(line) == "message" and _is_of(line["payload"], "multi_agent."):
            count = at
        elif is_from_model(line) or is_to_model(line) or ends_calls(line):
            break
    return count


def inherited(later: Sequence[str], session: str, moment: str) -> int:
    """None: a session that was forked leads to the other one by reference."""
    return 0


def continued_from(known: Sequence[Line], later: Sequence[str]) -> int:
    """All: when Codex is taken back, it goes on in another file."""
    return len(known)


def abandoned(known: Sequence[Line], waiting: Sequence[Open]) -> Iterator[str]:
    """None: what an ended turn has left open is past, however the turn ended."""
    return iter(())


def copied(text: str, session: str, new: str) -> str:
    """Only the first line says whose session it is: with the old id there, it would be that one."""
    line = parsed(text, session)
    if line["type"] != "session_meta":
        return text
    return dumped({**line, "payload": {**line["payload"], "id": new, "session_id": new}})


def moved(text: str, old: str, new: str) -> str:
    """The first line and those about a turn say where it works. Codex asks its user which of two
    directories to take if they differ."""
    line = depth.loads(text)
    payload = line["payload"]
    if line["type"] not in ("session_meta", "turn_context"):
        return text
    roots = {key: payload[key] for key in _ROOTS if isinstance(payload.get(key), list)}
    moved = {key: [inside(each, old, new) for each in found] for key, found in roots.items()}
    place = {"cwd": inside(payload["cwd"], old, new)} if "cwd" in payload else {}
    return dumped({**line, "payload": {**payload, **moved, **place}})


def closing(lines: Sequence[str], waiting: Sequence[Open], ending: Ending) -> list[str]:
    """Results as Codex would have written them. It names a session by its first prompt."""
    first, *others = map(json.loads, lines)
    start = _start(first["payload"])
    is_first = [line["type"] == "session_meta" for line in (first, *others)]
    if is_first != [True, *[False] * len(others)]:
        raise Unknown("a session is not told of in its first line, or again in another")
    if [line["ordinal"] for line in (first, *others)] != list(range(start, start + len(lines))):
        raise Unknown("its lines are not numbered one by one")
    end = start + len(lines)
    return [_result(call, end + at, ending) for at, call in enumerate(waiting)]


def _start(payload: Mapping[str, Any]) -> int:
    """The number of the first line: those before are in what the session goes on from."""
    base = payload.get("history_base")
    told = base.get("end_ordinal_exclusive") if isinstance(base, Mapping) else None
    found = payload.get("forked_from_ordinal_exclusive", 0) if told is None else told
    if not isinstance(found, int):
        raise Unknown("it goes on from somewhere that is not told as known")
    return found


def _result(call: Open, ordinal: int, ending: Ending) -> str:
    asked = call.line["payload"]
    if asked["type"] == "tool_search_call":
        raise Unknown("a search for tools has no result, and there is no way to say so")
    kept = "internal_chat_message_metadata_passthrough"
    payload = {
        "type": CALLS[asked["type"]],
        "call_id": call.id,
        "output": UNSAVED,
        **({kept: asked[kept]} if kept in asked else {}),
    }
    head = {"timestamp": ending.moment, "ordinal": ordinal, "type": "response_item"}
    return dumped({**head, "payload": payload})


def base(first: str) -> str | None:
    """The session that this one goes on from, by its first line; None if it has begun by itself."""
    payload = loaded(first).get("payload")
    found = payload.get("history_base") if isinstance(payload, dict) else None
    return str(found.get("thread_id")) if isinstance(found, dict) else None


def messages(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    return [found for line in lines if (found := _told(line)) is not None]


def _told(text: bytes) -> dict[str, Any] | None:
    line = loaded(text)
    return _message(line) if isinstance(line.get("payload"), dict) else None


def _message(line: Line) -> dict[str, Any] | None:
    """What a user, the model or a tool said; not what Codex itself adds."""
    kind, payload = _item(line), line["payload"]
    if kind in CALLS:
        given = payload.get("input", payload.get("arguments", payload.get("action", "")))
        call = {"type": "tool_use", "id": payload.get("call_id"), "input": given}
        return {"role": "assistant", "content": [{**call, "name": payload.get("name", kind)}]}
    if kind in RESULTS:
        result = {"type": "tool_result", "tool_use_id": payload.get("call_id")}
        content = payload.get("output", payload.get("tools", ""))
        return {"role": "tool", "content": [{**result, "content": content}]}
    role = payload.get("role")
    if kind == "message" and (role == "assistant" or (role == "user" and _is_of(payload, "user."))):
        return {"role": role, "content": payload.get("content", "")}
    return None


def left_running(line: bytes) -> Iterator[tuple[str, bool]]:
    """A command that takes long has a result before it has ended; an event tells the end."""
    if _LEFT not in line and _ENDED not in line:
        return
    told = loaded(line)
    if not isinstance(told.get("payload"), dict):
        return
    if _item(told) in RESULTS and _LEFT.decode() in str(told["payload"].get("output")):
        yield from ((call, True) for call in results(told))
    elif (ended := ended_call(told)) is not None:
        yield ended, False


def _is_of(payload: Mapping[str, Any], kind: str) -> bool:
    """Whether a message, or a part of it, comes from there: `user.` is what was typed."""
    about = payload.get("internal_chat_message_metadata_passthrough")
    kinds = about.get("content_item_kinds") if isinstance(about, Mapping) else None
    return isinstance(kinds, list) and any(str(each).startswith(kind) for each in kinds)


def _item(line: Line) -> str | None:
    """What kind of item of the conversation a line is; None if it is none."""
    return str(line["payload"].get("type")) if line.get("type") == "response_item" else None


def _completed(line: Line) -> Mapping[str, Any] | None:
    payload = line["payload"]
    if line.get("type") != "event_msg" or payload.get("type") != "item_completed":
        return None
    item = payload.get("item")
    return item if isinstance(item, Mapping) else None
