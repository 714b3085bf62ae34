"""Histories that no model accepts, made into ones that they do. Pure, on plain data.

The process that wrote a history may have been stopped in the middle. A model refuses it unless
every tool call is answered, in the request right after it, exactly once, and nothing else is.
Messages are those of Pydantic AI as JSON: `kind` and `parts`, each with its `part_kind`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from hardsave.errors import Misuse

Message = dict[str, Any]
Part = Mapping[str, Any]

LOST = "The result of this call was lost: whether it had its effects is not known."


def repaired(
    messages: Sequence[Any],
    *,
    keep_last: bool = False,
    answers: Mapping[str, str] | None = None,
) -> list[Message]:
    """The same history with every call answered.

    A result that is somewhere else is moved to where it belongs; results of no call, and second
    ones, are left out; a call with no result is answered from `answers` by its id, or told that
    its result was lost. With `keep_last` the calls of a response at the very end stay open: they
    can still be made, and each has an id of its own then. A sound history comes back equal.
    """
    checked = [check_message(message, at) for at, message in enumerate(messages)]
    lines = _joined(checked)
    spare = _spare(lines)
    out: list[Message] = []
    for at, message in enumerate(lines):
        if message["kind"] == "response":
            follows = lines[at + 1] if at + 1 < len(lines) else None
            if follows is None and keep_last:
                out.append(_told_apart(message))
                break
            out.append(message)
            if follows is None or follows["kind"] == "response":
                out += _request(message, (), spare, answers or {})
        elif at and lines[at - 1]["kind"] == "response":
            out += _request(lines[at - 1], (message,), spare, answers or {})
        else:
            out += _without_results(message)
    return out


def open_calls(messages: Sequence[Message]) -> list[Part]:
    """The calls that a history ends with and that nothing answers."""
    if not messages or messages[-1]["kind"] != "response":
        return []
    return _calls(messages[-1])


def check_message(message: Any, at: int) -> Message:
    """A message, if it has the form of one; `Misuse` with its place if it has not."""
    if not isinstance(message, Mapping) or message.get("kind") not in ("request", "response"):
        raise Misuse(f"messages[{at}] is no message: it needs a kind, 'request' or 'response'")
    parts = message.get("parts")
    if not isinstance(parts, Sequence) or not all(isinstance(part, Mapping) for part in parts):
        raise Misuse(f"messages[{at}].parts is not a list of parts")
    for number, part in enumerate(parts):
        if part.get("part_kind") == "tool-call" and not isinstance(part.get("tool_call_id"), str):
            raise Misuse(f"messages[{at}].parts[{number}] is a tool call without an id")
    return dict(message)


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Requests that follow each other are one: results may be spread over them."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1]["kind"] == message["kind"] == "request":
            out[-1] = {**out[-1], **message, "parts": [*out[-1]["parts"], *message["parts"]]}
        else:
            out.append(message)
    return out


def _calls(response: Message) -> list[Part]:
    return [part for part in response["parts"] if part.get("part_kind") == "tool-call"]


def _told_apart(response: Message) -> Message:
    """A response whose calls have ids of their own: a careless model may give one twice, and then
    Pydantic AI makes none of them."""
    ids = [str(call["tool_call_id"]) for call in _calls(response)]
    if len(ids) == len({*ids}):
        return response
    taken, parts = {*ids}, []
    seen: set[str] = set()
    for part in response["parts"]:
        id = part.get("tool_call_id")
        if part.get("part_kind") == "tool-call" and id in seen:
            number = next(n for n in count(2) if f"{id}#{n}" not in taken)
            part = {**part, "tool_call_id": f"{id}#{number}"}
            taken.add(part["tool_call_id"])
        seen.add(str(id))
        parts.append(part)
    return {**response, "parts": parts}


def _is_result(part: Part) -> bool:
    """A retry prompt with a tool's name is the answer to a call, too."""
    kind = part.get("part_kind")
    return kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name") is not None)


class _Spare:
    """Results that do not stand right after their call, in order."""

    def __init__(self) -> None:
        self._by_id: dict[Any, list[Part]] = {}

    def add(self, part: Part) -> None:
        self._by_id.setdefault(part.get("tool_call_id"), []).append(part)

    def take(self, id: str) -> Part | None:
        found = self._by_id.get(id)
        return found.pop(0) if found else None


def _spare(lines: Sequence[Message]) -> _Spare:
    """Late results. What stands before its call cannot be its result."""
    spare = _Spare()
    seen: Counter[str] = Counter()
    for at, message in enumerate(lines):
        if message["kind"] == "response":
            seen.update(str(call["tool_call_id"]) for call in _calls(message))
            continue
        before = lines[at - 1] if at else None
        expected = Counter(
            call["tool_call_id"]
            for call in (_calls(before) if before and before["kind"] == "response" else ())
        )
        for part in filter(_is_result, message["parts"]):
            id = part.get("tool_call_id")
            if not isinstance(id, str):
                continue  # calls have texts: it is a result of none
            if expected[id] > 0:
                expected[id] -= 1
                seen[id] -= 1
            elif seen[id] > 0:
                seen[id] -= 1
                spare.add(part)
    return spare


def _request(
    response: Message, given: Sequence[Message], spare: _Spare, answers: Mapping[str, str]
) -> list[Message]:
    """The request that answers a response: what is there of it, and what is missing."""
    parts = given[0]["parts"] if given else []
    results = [part for part in parts if _is_result(part)]
    answered: list[Part] = []
    missing: list[Part] = []
    for call in _calls(response):
        id = call["tool_call_id"]
        own = next((part for part in results if part.get("tool_call_id") == id), None)
        if own is not None:
            results = [part for part in results if part is not own]
            answered.append(own)
        else:
            missing.append(spare.take(id) or _made_up(call, response, answers.get(id, LOST)))
    kept = [part for part in parts if not _is_result(part) or _among(part, answered)]
    if not kept and not missing:
        return []
    place = 1 + max((at for at, part in enumerate(kept) if _is_result(part)), default=-1)
    parts = [*kept[:place], *missing, *kept[place:]]
    return [{**given[0], "parts": parts} if given else {"kind": "request", "parts": parts}]


def _among(part: Part, parts: Sequence[Part]) -> bool:
    return any(part is each for each in parts)


def _made_up(call: Part, response: Message, text: str) -> Part:
    made = {
        "part_kind": "tool-return",
        "tool_name": call.get("tool_name"),
        "tool_call_id": call["tool_call_id"],
        "content": text,
        "outcome": "interrupted",
        "metadata": {"hardsave": "repaired"},
    }
    moment = response.get("timestamp")  # the same history is repaired in the same way
    return made if moment is None else {**made, "timestamp": moment}


def _without_results(message: Message) -> list[Message]:
    """A request that no response comes before: nothing in it can be a result."""
    parts = [part for part in message["parts"] if not _is_result(part)]
    if parts == list(message["parts"]):
        return [message]
    return [{**message, "parts": parts}] if parts else []
