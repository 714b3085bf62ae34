"""OpenAI's chat completions on the wire, with the reasoning content that DeepSeek adds. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hardsave.runtime.scripted.script import Call, Reply, call_id, pieces_of

PATH = "/v1/chat/completions"


def turn(body: Mapping[str, Any]) -> int:
    """How many answers a request holds."""
    return sum(message.get("role") == "assistant" for message in body.get("messages", ()))


def whole(reply: Reply, body: Mapping[str, Any], at: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_call(call, at, place) for place, call in enumerate(reply.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
    return {
        **_head(body, at, "chat.completion"),
        "choices": [choice],
        "usage": _usage(reply, body),
    }


def streamed(reply: Reply, body: Mapping[str, Any], at: int) -> Iterator[bytes]:
    """The same as server-sent events, piece by piece."""
    head = _head(body, at, "chat.completion.chunk")
    for delta in _deltas(reply, at):
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {"index": 0, "delta": {}, "finish_reason": _reason(reply)}
    yield _event({**head, "choices": [last]})
    yield _event({**head, "choices": [], "usage": _usage(reply, body)})
    yield b"data: [DONE]\n\n"


def _deltas(reply: Reply, at: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces_of(reply.reasoning):
        yield {"reasoning_content": piece}
    for piece in pieces_of(reply.text):
        yield {"content": piece}
    for place, call in enumerate(reply.calls):
        whole_call = _call(call, at, place)
        arguments = whole_call["function"]["arguments"]
        begun = {**whole_call, "index": place}
        begun["function"] = {"name": call.tool, "arguments": ""}
        yield {"tool_calls": [begun]}
        middle = len(arguments) // 2  # arguments come in pieces too
        for part in (arguments[:middle], arguments[middle:]):
            yield {"tool_calls": [{"index": place, "function": {"arguments": part}}]}


def _call(call: Call, at: int, place: int) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": json.dumps(dict(call.args))}
    return {"id": call_id(call, at, place), "type": "function", "function": function}


def _head(body: Mapping[str, Any], at: int, kind: str) -> dict[str, Any]:
    model = body.get("model", "scripted")
    return {"id": f"chatcmpl-{at}", "object": kind, "created": 0, "model": model}


def _reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, int]:
    asked, said = len(json.dumps(body)) // 4, len(reply.text + reply.reasoning) // 4 + 1
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _event(data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"
