from typing import Any

import pytest

from hardsave.values import messages
from hardsave.values.messages import Call, Message

SHAPES: dict[str, tuple[Any, Message]] = {
    "a plain text": ("hello", Message("", "hello")),
    "OpenAI": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "read", "arguments": '{"a": 1}'}}],
        },
        Message("assistant", "", (Call("read", '{"a": 1}'),)),
    ),
    "OpenAI's result": (
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        Message("tool", "", (), ("42",)),
    ),
    "Anthropic": (
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
        Message("assistant", "I look.", (Call("Bash", '{"command": "ls"}'),)),
    ),
    "Anthropic's result": (
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": [{"type": "text", "text": "a.txt"}]}],
        },
        Message("user", "", (), ("a.txt",)),
    ),
    "LangChain": ({"type": "human", "content": "hi"}, Message("user", "hi")),
    "LangChain's call": (
        {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {"x": 1}}]},
        Message("assistant", "", (Call("f", '{"x": 1}'),)),
    ),
    "Pydantic AI": (
        {
            "kind": "response",
            "parts": [
                {"part_kind": "text", "content": "well"},
                {"part_kind": "tool-call", "tool_name": "f", "args": "{}"},
            ],
        },
        Message("assistant", "well", (Call("f", "{}"),)),
    ),
    "Pydantic AI's result": (
        {"kind": "request", "parts": [{"part_kind": "tool-return", "content": "ok"}]},
        Message("user", "", (), ("ok",)),
    ),
    "Gemini": (
        {
            "role": "model",
            "parts": [{"text": "well"}, {"function_call": {"name": "f", "args": {}}}],
        },
        Message("assistant", "well", (Call("f", "{}"),)),
    ),
    "Gemini's result": (
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"a": 1}}}]},
        Message("user", "", (), ('{"a": 1}',)),
    ),
    "an event of Google ADK": (
        {
            "author": "writer",
            "content": {"parts": [{"text": "I think.", "thought": True}, {"text": "I write."}]},
            "actions": {"state_delta": {}},
        },
        Message("writer", "[thought]\nI write."),
    ),
    "a result of Google ADK": (
        {
            "author": "writer",
            "content": {
                "role": "user",
                "parts": [
                    {"function_response": {"name": "f", "response": {"result": "wrote it"}}},
                    {"inline_data": {"mime_type": "image/png", "data": "AA=="}},
                ],
            },
        },
        Message("user", "[inline_data]", (), ("wrote it",)),
    ),
    "an image": (
        {"role": "user", "content": [{"type": "image", "source": {}}]},
        Message("user", "[image]"),
    ),
    "anything else": ({"a": b"\x00"}, Message("", '{"a": {"$bytes": "AA=="}}')),
    "a number": (7, Message("", "7")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_is_read(shape: str) -> None:
    given, expected = SHAPES[shape]
    assert messages.read(given) == expected


def test_messages_are_found_under_the_names_that_agents_use() -> None:
    assert messages.of({"messages": [1]}) == ("messages", [1])
    assert messages.of({"turn": 1, "history": [2]}) == ("history", [2])
    assert messages.of({"messages": "none"}) is None
    assert messages.of([1, 2]) is None
    assert messages.of(None) is None


def test_a_line_of_a_transcript_is_its_message() -> None:
    line = {"type": "user", "uuid": "1", "message": {"role": "user", "content": "repair it"}}
    assert messages.read(line).text == "repair it"
    assert messages.first_prompt([{"type": "mode", "message": None}, line]) == "repair it"
