"""From what Pydantic AI works with to plain data, and back.

Its own adapter does it, by way of JSON: that is the form that it keeps readable from version to
version, and bytes, times and reasoning with its signatures come back as they were.
"""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturn,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.usage import RunUsage

from hardsave.errors import Misuse, Unstorable
from hardsave.logs import log
from hardsave.runtime.loop.repair import Message

Prompt = str | Sequence[UserContent]


def plain(messages: Sequence[ModelMessage], path: str = "messages") -> list[Message]:
    """Messages as data; `Unstorable` if a tool has put something else into them."""
    found: list[Message] = json.loads(dumped(messages, path))
    return found


def dumped(messages: Sequence[ModelMessage], path: str = "messages") -> bytes:
    """The same as a text."""
    try:
        return ModelMessagesTypeAdapter.dump_json(list(messages))
    except (TypeError, ValueError) as error:  # as pydantic reports what it cannot serialise
        lighter = [_without_odd_metadata(message) for message in messages]
        if all(ours is theirs for ours, theirs in zip(lighter, messages, strict=True)):
            raise Unstorable(path, f"cannot be kept as JSON ({error})") from error
    return dumped(lighter, path)


def _without_odd_metadata(message: ModelMessage) -> ModelMessage:
    """What a tool says to the program alone costs no save: the model never sees it."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [_without(part) if isinstance(part, ToolReturnPart) else part for part in message.parts]
    is_same = all(ours is theirs for ours, theirs in zip(parts, message.parts, strict=True))
    return message if is_same else replace(message, parts=parts)


def _without(part: ToolReturnPart) -> ToolReturnPart:
    if part.metadata is None:
        return part
    try:
        _plain_value(part.metadata, "metadata")
    except Unstorable as error:
        log(__name__).warning("the metadata of tool %s is left out: %s", part.tool_name, error)
        return replace(part, metadata=None)
    return part


def live(messages: Sequence[Message]) -> list[ModelMessage]:
    """Messages as Pydantic AI has them; `Misuse` if they are not its."""
    try:
        return ModelMessagesTypeAdapter.validate_json(json.dumps(messages))
    except (TypeError, ValueError) as error:
        raise Misuse(f"these messages are none of Pydantic AI's: {error}") from error


def sayable(response: ModelResponse) -> ModelResponse:
    """A response that can be kept and sent back: halves of a character, as models leave them that
    are streamed or stop in the middle of one, are joined, or marked where one is missing."""
    try:
        ModelMessagesTypeAdapter.dump_json([response])
    except (TypeError, ValueError):
        try:
            [mended] = live(_mended(ModelMessagesTypeAdapter.dump_python([response], mode="json")))
        except (TypeError, ValueError, Misuse):
            return response  # the save will say what is wrong
        assert isinstance(mended, ModelResponse)
        return mended
    return response


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(each) for each in value]
    if isinstance(value, dict):
        return {key: _mended(each) for key, each in value.items()}
    return value


# Prompts


def plain_prompt(prompt: Prompt) -> Any:
    [message] = plain([ModelRequest(parts=[UserPromptPart(prompt)])], "prompt")
    return message["parts"][0]["content"]


def live_prompt(stored: Any) -> Prompt:
    [message] = live([{"kind": "request", "parts": [_prompt_part(stored)]}])
    [part] = message.parts
    assert isinstance(part, UserPromptPart)
    return part.content


def _prompt_part(content: Any) -> dict[str, Any]:
    return {"part_kind": "user-prompt", "content": content}


# Results of tools


def plain_result(value: Any, path: str = "result") -> dict[str, Any]:
    """What a tool has returned, so that the model is told the same when it comes back."""
    if not isinstance(value, ToolReturn):
        return {"value": _plain_value(value, path)}
    return {
        "value": _plain_value(value.return_value, path),
        "content": None if value.content is None else plain_prompt(value.content),
        "metadata": _plain_metadata(value.metadata, f"{path}.metadata"),
        "tools": value.tools,
    }


def live_result(stored: dict[str, Any]) -> Any:
    value = _live_value(stored["value"])
    if "content" not in stored:
        return value
    content = stored["content"]
    return ToolReturn(
        value,
        content=None if content is None else live_prompt(content),
        metadata=stored.get("metadata"),
        tools=stored.get("tools"),
    )


def _plain_value(value: Any, path: str) -> Any:
    part = ToolReturnPart(tool_name="any", content=value, tool_call_id="any")
    [message] = plain([ModelRequest(parts=[part])], path)
    return message["parts"][0]["content"]


def _plain_metadata(value: Any, path: str) -> Any:
    try:
        return _plain_value(value, path)
    except Unstorable as error:
        log(__name__).warning("it is left out: %s", error)
        return None


def _live_value(stored: Any) -> Any:
    part = {"part_kind": "tool-return", "tool_name": "any", "tool_call_id": "any"}
    [message] = live([{"kind": "request", "parts": [{**part, "content": stored}]}])
    [found] = message.parts
    assert isinstance(found, ToolReturnPart)
    return found.content


# Usage


def plain_usage(usage: RunUsage) -> dict[str, Any]:
    named = {field.name: getattr(usage, field.name) for field in fields(usage)}
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in named.items()
        if value  # most are 0
    }


def live_usage(stored: dict[str, Any]) -> RunUsage:
    """Counters that this version of Pydantic AI does not know are left out."""
    known = {field.name for field in fields(RunUsage)}
    return RunUsage(**{name: value for name, value in stored.items() if name in known})
