"""What a scripted model says, as plain data.

A script has one entry for each turn of the conversation, and the turn is read from the request:
it is how many answers the request already holds. So a client that was killed and asks again
gets the same answer, and the script needs no memory of who asked. An entry may be a list: then
the first request of that turn gets the first of it, the next one the next, and all further
ones the last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Call:
    """A tool that the model wants called. Without an id it gets one of its place."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class Reply:
    """An answer: what was thought, what is said, which tools are called, in that order."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class Fault:
    """An answer that is none. A `status` of 200 with any body is a model that talks garbage."""

    status: int = 500
    body: str = '{"error": {"message": "scripted", "type": "scripted_error"}}'
    retry_after: str | None = None


@dataclass(frozen=True)
class Stall:
    """A streamed answer that stops after so many pieces, with the connection open."""

    reply: Reply
    pieces: int = 1


@dataclass(frozen=True)
class Silence:
    """No answer, with the connection open."""


Step: TypeAlias = Reply | Fault | Stall | Silence
Script: TypeAlias = Sequence[Step | Sequence[Step]]

OVER = Fault(status=400, body='{"error": {"message": "the script has no such turn"}}')


def step_for(script: Script, turn: int, asked: int) -> Step:
    """What the request number `asked` (from 0) of a turn (from 0) gets."""
    if turn >= len(script):
        return OVER
    entry = script[turn]
    if isinstance(entry, Sequence):
        return entry[min(asked, len(entry) - 1)]
    return entry


def call_id(call: Call, turn: int, place: int) -> str:
    return call.id or f"call_{turn}_{place}"


def pieces_of(text: str) -> list[str]:
    """A text as a model streams it: word by word."""
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:] if text else []
