"""A conversation as it is saved: plain data, and what is to be done next. Pure.

`messages` always end in a response. What the tools of that response have done stands in
`calls`, until the next response is there; a prompt that was not answered yet in `prompt`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal

from hardsave.errors import Misuse
from hardsave.runtime.loop import journal
from hardsave.runtime.loop.journal import Noted
from hardsave.runtime.loop.repair import Message, check_message, open_calls

FORMAT = 1

Status = Literal["running", "waiting", "completed", "failed"]
Next = Literal["ask", "call tools", "end", "nothing"]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """What an agent needs to go on."""

    run: str
    """The run that it is in; a prompt that is given to a finished one begins another."""
    status: Status = "running"
    prompt: Any = None
    """What was asked and not answered yet, as a text or as content for Pydantic AI."""
    begun_with: Any = None
    """What was asked, answered or not: by it a program that is started again knows its run. The
    messages may not tell: tools add prompts to them, and code that shortens them drops some."""
    messages: list[Message] = field(default_factory=list)
    calls: dict[str, Noted] = field(default_factory=dict)
    turn: int = 0
    """How many responses there were."""
    usage: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    """What the model called itself in its last response."""
    asked: str | None = None
    """The name that it was asked by, which may be another one."""
    output: Any = None
    error: str | None = None
    data: Any = None
    """The caller's own."""


def without_messages(conversation: Conversation) -> dict[str, Any]:
    """All but the messages. No value is a list, for those would grow when they are appended."""
    return {
        "format": FORMAT,
        "run": conversation.run,
        "status": conversation.status,
        "prompt": {"content": conversation.prompt},
        "begun_with": {"content": conversation.begun_with},
        "calls": journal.to_plain(conversation.calls),
        "turn": conversation.turn,
        "usage": conversation.usage,
        "model": conversation.model,
        "asked": conversation.asked,
        "output": {"content": conversation.output},
        "error": conversation.error,
        "data": {"content": conversation.data},
    }


def from_state(state: Any, timeline: str) -> Conversation:
    """What was saved; `Misuse` if it is something else, or was changed into what is none."""
    if not isinstance(state, Mapping) or not {"format", "run", "messages"} <= state.keys():
        raise Misuse(
            f"timeline {timeline!r} holds something else than a conversation of this loop; "
            "choose another timeline, or resume=False to begin on top of it"
        )
    if state["format"] != FORMAT:
        raise Misuse(
            f"timeline {timeline!r} was saved in format {state['format']!r}, and this version "
            f"knows {FORMAT}; it is left as it is. Use the version that saved it"
        )
    wrong = next(_wrong(state), None)
    if wrong is not None:
        raise Misuse(
            f"timeline {timeline!r} holds a conversation that cannot be gone on with: {wrong}; "
            "rewind it to a checkpoint before, or resume=False to begin on top of it"
        )
    return Conversation(
        run=state["run"],
        status=state["status"],
        prompt=state["prompt"]["content"],
        begun_with=state.get("begun_with", _UNKNOWN)["content"],
        messages=[check_message(each, at) for at, each in enumerate(state["messages"])],
        calls=journal.from_plain(state["calls"]),
        turn=state["turn"],
        usage=state["usage"],
        model=state["model"],
        asked=state.get("asked"),  # not known at first
        output=state["output"]["content"],
        error=state["error"],
        data=state["data"]["content"],
    )


_KINDS: Mapping[str, type | UnionType] = {
    "run": str,
    "status": str,
    "messages": list,
    "calls": Mapping,
    "turn": int,
    "usage": Mapping,
    "model": str | None,
    "error": str | None,
}
_WRAPPED = ("prompt", "begun_with", "output", "data")
_UNKNOWN: Mapping[str, Any] = {"content": None}
"""What older versions have not saved."""


def _wrong(state: Mapping[str, Any]) -> Iterator[str]:
    """What is not as it was saved."""
    for key, kind in _KINDS.items():
        if key not in state:
            yield f"{key} is missing"
        elif not isinstance(state[key], kind):
            yield f"{key} is {state[key]!r}"
    if not isinstance(state.get("asked"), str | None):
        yield f"asked is {state['asked']!r}"
    for key in _WRAPPED:
        wrapped = state.get(key, _UNKNOWN if key == "begun_with" else None)
        if not isinstance(wrapped, Mapping) or "content" not in wrapped:
            yield f"{key} has no content"


def next_of(conversation: Conversation) -> Next:
    """What is to be done next."""
    if conversation.prompt is not None:
        return "ask"
    if not conversation.messages:
        return "nothing"
    return "call tools" if open_calls(conversation.messages) else "end"


def up_to_response(messages: list[Message]) -> list[Message]:
    """Without what follows the last response: its results are in the record of its calls."""
    end = max((at for at, each in enumerate(messages) if each["kind"] == "response"), default=-1)
    return messages[: end + 1]
