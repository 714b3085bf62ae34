"""Messages of any agent as people read them: who, what, and which tools were called. Pure.

States are any data. These shapes are known: OpenAI's, Anthropic's, Gemini's, LangChain's, Pydantic
AI's; anything else in a list of messages is shown as the text it is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hardsave.tuples import NamedTuple

KEYS = ("messages", "message_history", "history", "conversation")
_ROLES = {
    "human": "user",
    "request": "user",
    "ai": "assistant",
    "model": "assistant",
    "response": "assistant",
}
_TEXTS = {"text", "input_text", "output_text", "user-prompt", "system-prompt"}
_PARTS = (  # a part of Gemini's says what it is by its key
    *("thought", "text", "function_call", "function_response", "inline_data", "file_data"),
    *("executable_code", "code_execution_result"),
)


class Call(NamedTuple):
    """A tool that was called."""

    tool: str
    arguments: str


class Message(NamedTuple):
    """One message. Tool calls and results are apart from what was said."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    results: tuple[str, ...] = ()


def of(state: Any) -> tuple[str, Sequence[Any]] | None:
    """The key and the list of messages in a state, unread; None if it has none."""
    if not isinstance(state, Mapping):
        return None
    for key in KEYS:
        found = state.get(key)
        if isinstance(found, Sequence) and not isinstance(found, str | bytes):
            return key, found
    return None


def read(item: Any) -> Message:
    """A message out of what an agent keeps as one, in any of the shapes that are known."""
    if not isinstance(item, Mapping):
        return Message("", item if isinstance(item, str) else _compact(item))
    inner = item.get("message")  # a line of a transcript of Claude Code has its message there
    item = inner if isinstance(inner, Mapping) else item
    inner = item.get("content")  # an event of Google ADK has its parts there
    if isinstance(inner, Mapping) and "parts" in inner:
        item = {"role": item.get("author"), **inner}
    role = str(item.get("role") or item.get("type") or item.get("kind") or "")
    role = _ROLES.get(role, role)
    content = next((item[key] for key in ("content", "parts", "text") if item.get(key)), "")
    pieces = list(_pieces(content))
    texts = [piece for piece in pieces if isinstance(piece, str) and piece]
    calls = [piece for piece in pieces if isinstance(piece, Call)]
    results = [piece.text for piece in pieces if isinstance(piece, _Result)]
    further = item.get("tool_calls")
    if isinstance(further, Sequence):
        calls += [_call(each) for each in further if isinstance(each, Mapping)]
    if role == "tool" or "tool_call_id" in item:
        results, texts = [*results, *texts], []
    if not role and not any((texts, calls, results)):
        texts = [_compact(item)]
    return Message(role, "\n".join(texts), tuple(calls), tuple(results))


def counted(items: Iterable[Any]) -> tuple[Counter[str], Counter[str]]:
    """How many messages of whom, and how often each tool was called."""
    roles: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    for item in items:
        message = read(item)
        roles[message.role or "message"] += 1
        tools.update(call.tool for call in message.calls)
    return roles, tools


def first_prompt(items: Iterable[Any]) -> str:
    """The first that a user has said among messages; empty if there is nothing."""
    spoken = (read(item) for item in items)
    return next((each.text for each in spoken if each.role == "user" and each.text.strip()), "")


class _Result(NamedTuple):
    text: str


def _pieces(content: Any) -> Iterator[str | Call | _Result]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        yield _block(content)
    elif isinstance(content, Sequence) and not isinstance(content, bytes):
        for each in content:
            yield from _pieces(each) if isinstance(each, str) else [_block(each)]
    else:
        yield _compact(content)


def _block(block: Any) -> str | Call | _Result:
    if not isinstance(block, Mapping):
        return _compact(block)
    named = block.get("type") or block.get("part_kind")
    kind = str(named or next((key for key in _PARTS if block.get(key)), ""))
    if kind in _TEXTS:
        return _text(block.get("text", block.get("content", "")))
    if kind in ("tool_use", "tool-call"):
        return _call(block)
    if kind in ("tool_result", "tool-return", "retry-prompt"):
        return _Result(_text(block.get("content", "")))
    inner = block.get(kind)
    if kind == "function_call" and isinstance(inner, Mapping):
        return _call(inner)
    if kind == "function_response" and isinstance(inner, Mapping):
        return _Result(_answer(inner.get("response")))
    return f"[{kind}]" if kind else _compact(block)


def _call(call: Mapping[str, Any]) -> Call:
    inner = call.get("function")
    found = inner if isinstance(inner, Mapping) else call
    name = found.get("name") or found.get("tool_name") or "?"
    keys = ("arguments", "input", "args")
    given = next((found[key] for key in keys if found.get(key) is not None), "")
    return Call(str(name), given if isinstance(given, str) else _compact(given))


def _answer(response: Any) -> str:
    """What a tool returned: Google ADK puts what is no dict under `result`."""
    is_wrapped = isinstance(response, Mapping) and list(response) == ["result"]
    found = response["result"] if is_wrapped else response
    return found if isinstance(found, str) else _compact(found)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(piece for piece in _pieces(content) if isinstance(piece, str))


def _compact(value: Any) -> str:
    from hardsave.values.text import readable  # few saves need it

    return readable(value)
