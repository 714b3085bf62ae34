"""Tool calls without an answer, in messages of Anthropic's and of OpenAI's form. Pure.

No model accepts a call without its result right after it. In Anthropic's form results are blocks
of the user's next message, in OpenAI's they are messages of the role `tool`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hardsave.errors import Misuse

Message = dict[str, Any]

LOST = "The result of this call was lost: whether it had its effects is not known."


def unanswered(messages: Sequence[Message]) -> list[str]:
    """The ids of calls without a result, in order."""
    _check(messages)
    return [id for at in range(len(messages)) for id in _open_at(messages, at)]


def answered(messages: Sequence[Message]) -> list[Message]:
    """The same messages with a result for every call; sound ones come back equal."""
    _check(messages)
    out: list[Message] = []
    missing: list[Mapping[str, Any]] = []  # results that the user's next message has to hold
    for at, message in enumerate(messages):
        if missing and message.get("role") == "user":
            message = {**message, "content": [*missing, *_blocks(message)]}
        else:
            out += _said_by_user(missing)
        missing = []
        out.append(message)
        ids = _open_at(messages, at)
        if message.get("tool_calls"):
            out += [{"role": "tool", "tool_call_id": id, "content": LOST} for id in ids]
        else:
            missing = [_result(id) for id in ids]
    return [*out, *_said_by_user(missing)]


def _check(messages: Sequence[Any]) -> None:
    """`Misuse` if there is something that cannot be a message."""
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise Misuse(f"message {at} is {type(message).__name__}, not a dict")
        if not isinstance(message.get("content"), str | list | tuple | None):
            raise Misuse(f"the content of message {at} is neither a text nor a list of blocks")
        calls = message.get("tool_calls") or ()
        used = [block for block in _blocks(dict(message)) if block.get("type") == "tool_use"]
        if not isinstance(calls, list | tuple) or not all(map(_is_call, (*calls, *used))):
            raise Misuse(f"message {at} has a tool call without an id")


def _is_call(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("id"), str)


def _said_by_user(blocks: list[Mapping[str, Any]]) -> list[Message]:
    return [{"role": "user", "content": blocks}] if blocks else []


def _result(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": LOST, "is_error": True}


def _open_at(messages: Sequence[Message], at: int) -> list[str]:
    """The calls of one message that nothing answers before the model speaks again."""
    results: set[str] = set()
    for following in messages[at + 1 :]:
        if following.get("role") == "assistant":
            break
        results.update(_results(following))
    return [id for id in _calls(messages[at]) if id not in results]


def _calls(message: Message) -> list[str]:
    if message.get("role") != "assistant":
        return []
    used = [block["id"] for block in _blocks(message) if block.get("type") == "tool_use"]
    return [*(call["id"] for call in message.get("tool_calls") or ()), *used]


def _results(message: Message) -> list[str]:
    if message.get("role") == "tool":
        return [str(message.get("tool_call_id"))]
    found = [block for block in _blocks(message) if block.get("type") == "tool_result"]
    return [str(block.get("tool_use_id")) for block in found]


def _blocks(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content or () if isinstance(block, Mapping)]
