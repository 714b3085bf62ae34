"""OpenAI's responses on the wire, as Codex speaks it. Pure."""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from hardsave.runtime.scripted.script import Call, Reply, call_id, pieces_of

PATH = "/v1/responses"
_ANSWERS = frozenset({"reasoning", "function_call", "custom_tool_call"})


def turn(body: Mapping[str, Any]) -> int:
    """How many answers a request holds: runs of what a model says, with others' items between."""
    given = body.get("input", ())
    said = [_is_said(item) for item in given] if isinstance(given, list) else []
    return sum(now and not before for before, now in pairwise([False, *said]))


def whole(reply: Reply, body: Mapping[str, Any], at: int) -> dict[str, Any]:
    items = _items(reply, body, at)
    return {**_head(body, at, "completed"), "output": items, "usage": _usage(reply, body)}


def streamed(reply: Reply, body: Mapping[str, Any], at: int) -> Iterator[bytes]:
    """The same as server-sent events, piece by piece."""
    begun = {**_head(body, at, "in_progress"), "output": []}
    yield _event({"type": "response.created", "response": begun})
    for index, item in enumerate(_items(reply, body, at)):
        place = {"output_index": index, "item_id": item["id"]}
        begun = {**item, "status": "in_progress", **_EMPTY[item["type"]]}
        yield _event({"type": "response.output_item.added", "output_index": index, "item": begun})
        for delta in _deltas(item):
            yield _event({**place, **delta})
        yield _event({"type": "response.output_item.done", "output_index": index, "item": item})
    yield _event({"type": "response.completed", "response": whole(reply, body, at)})


_EMPTY: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": []},
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}


def _is_said(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    kind = item.get("type", "message")
    return kind in _ANSWERS or (kind == "message" and item.get("role") == "assistant")


def _items(reply: Reply, body: Mapping[str, Any], at: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        items.append({"type": "reasoning", "id": f"rs_{at}", "summary": summary})
    if reply.text:
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        said = {"role": "assistant", "status": "completed", "content": [text]}
        items.append({"type": "message", "id": f"msg_{at}", **said})
    freeform = {tool.get("name") for tool in _offered(body) if tool.get("type") == "custom"}
    for place, call in enumerate(reply.calls):
        items.append(_call(call, at, place, is_freeform=call.tool in freeform))
    return items


def _offered(holder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The tools of a request: its own, those of its namespaces, and those among its messages."""
    given = holder.get("input")
    items = [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []
    for tool in holder.get("tools", ()):
        yield tool
        yield from _offered(tool)
    for item in items:
        yield from _offered(item)


def _call(call: Call, at: int, place: int, *, is_freeform: bool) -> dict[str, Any]:
    """A call as its tool was offered: with arguments, or with one text, its `input`."""
    head = {"status": "completed", "call_id": call_id(call, at, place), "name": call.tool}
    if is_freeform:
        kind = {"type": "custom_tool_call", "id": f"ctc_{at}_{place}"}
        return {**kind, **head, "input": call.args["input"]}
    kind = {"type": "function_call", "id": f"fc_{at}_{place}"}
    return {**kind, **head, "arguments": json.dumps(dict(call.args))}


def _deltas(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if item["type"] == "message":
        for piece in pieces_of(item["content"][0]["text"]):
            yield {"type": "response.output_text.delta", "content_index": 0, "delta": piece}
    elif item["type"] == "reasoning":
        for piece in pieces_of(item["summary"][0]["text"]):
            kind = "response.reasoning_summary_text.delta"
            yield {"type": kind, "summary_index": 0, "delta": piece}
    else:
        is_freeform = item["type"] == "custom_tool_call"
        given = item["input" if is_freeform else "arguments"]
        kind = "custom_tool_call_input" if is_freeform else "function_call_arguments"
        middle = len(given) // 2
        for part in (given[:middle], given[middle:]):
            yield {"type": f"response.{kind}.delta", "delta": part}


def _head(body: Mapping[str, Any], at: int, status: str) -> dict[str, Any]:
    model = body.get("model", "scripted")
    about = {"object": "response", "created_at": 0, "status": status, "model": model}
    return {"id": f"resp_{at}", **about}


def _usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    asked, said = len(json.dumps(body)) // 4, len(reply.text + reply.reasoning) // 4 + 1
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + said,
    }


def _event(data: Mapping[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
