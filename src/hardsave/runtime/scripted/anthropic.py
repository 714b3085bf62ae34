"""Anthropic's messages on the wire. Pure."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from hardsave.runtime.scripted.script import Reply, call_id, pieces_of

PATH = "/v1/messages"


def turn(body: Mapping[str, Any]) -> int:
    """How many answers a request holds."""
    return sum(message.get("role") == "assistant" for message in body.get("messages", ()))


def whole(reply: Reply, body: Mapping[str, Any], at: int) -> dict[str, Any]:
    return {
        **_head(body, at),
        "content": _blocks(reply, at),
        "stop_reason": _reason(reply),
        "usage": _usage(reply, body),
    }


def streamed(reply: Reply, body: Mapping[str, Any], at: int) -> Iterator[bytes]:
    """The same as server-sent events, piece by piece."""
    usage = _usage(reply, body)
    begun = {**_head(body, at), "content": [], "stop_reason": None}
    begun["usage"] = {**usage, "output_tokens": 1}
    yield _event({"type": "message_start", "message": begun})
    for index, block in enumerate(_blocks(reply, at)):
        empty, deltas = _taken_apart(block)
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    end = {"stop_reason": _reason(reply), "stop_sequence": None}
    counted = {"output_tokens": usage["output_tokens"]}
    yield _event({"type": "message_delta", "delta": end, "usage": counted})
    yield _event({"type": "message_stop"})


def _blocks(reply: Reply, at: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        signature = sha256(reply.reasoning.encode()).hexdigest()  # must come back as it is
        blocks.append(
            {"type": "thinking", "thinking": reply.reasoning, "signature": signature},
        )
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for place, call in enumerate(reply.calls):
        id, given = call_id(call, at, place), dict(call.args)
        blocks.append({"type": "tool_use", "id": id, "name": call.tool, "input": given})
    return blocks


def _taken_apart(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and the pieces that follow."""
    kind = block["type"]
    if kind == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(block["text"])]
        return {"type": "text", "text": ""}, deltas
    if kind == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces_of(block["thinking"])
        ]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    given = json.dumps(block["input"])
    middle = len(given) // 2
    parts = (given[:middle], given[middle:])
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return {**block, "input": {}}, deltas


def _head(body: Mapping[str, Any], at: int) -> dict[str, Any]:
    """An answer to other words is another answer, even at the same turn: an agent that goes back
    and asks otherwise takes one id for one answer. The same words get the same once more."""
    asked = json.dumps(body.get("messages"), sort_keys=True)
    return {
        "id": f"msg_{at}_{sha256(asked.encode()).hexdigest()[:16]}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "stop_sequence": None,
    }


def _reason(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, int]:
    said = len(reply.text + reply.reasoning) // 4 + 1
    return {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": said}


def _event(data: Mapping[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
