"""A transcript as the state of a checkpoint: what is new of it is added to what the head has.

Hooks save it so, and so does the daemon beside an agent that has no hooks: a rewind need not know
which of them it was.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import hardsave
from hardsave.agents import registry
from hardsave.agents.spec import AgentSpec
from hardsave.agents.transcripts import EMPTY, Mark, Reading, pieces
from hardsave.tuples import NamedTuple
from hardsave.vault.save.parts import Parts


class Unreadable(Exception):
    """A transcript that is there and cannot be read, or whose name cannot be a path."""


class Source(NamedTuple):
    """A transcript: the agent and its session, where it is, and which calls are under way when it
    is read."""

    agent: AgentSpec
    session: str
    path: str
    moment: Mapping[str, Any]


def parts(source: Source, known: Mark | None) -> Parts:
    """A conversation as it is by now; all of it if the head has another one. It may be a very long
    one: it is read and stored piece by piece, and makes one checkpoint all the same."""
    with reading():
        begun = pieces(Path(source.path), known or EMPTY)
        first = next(begun)
    read = [chain([first], begun)]  # once, and then anew

    def again() -> Iterator[dict[str, Any]]:
        return _parts(source, read.pop() if read else pieces(Path(source.path), known or EMPTY))

    return Parts(again, goes_on=known is not None and first.goes_on)


def _parts(source: Source, found: Iterator[Reading]) -> Iterator[dict[str, Any]]:
    with reading():
        for piece in found:
            yield {
                "transcript": {
                    "agent": source.agent.name,
                    "session": source.session,
                    "path": source.path,
                    **piece.mark.told(),
                    **source.moment,
                },
                "messages": source.agent.lines.messages(piece.lines),
                "lines": piece.lines,
            }


@contextmanager
def reading() -> Iterator[None]:
    """`Unreadable` instead of what the system says of a transcript."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unreadable(str(error)) from error


def mark_in(head: hardsave.Checkpoint | None, session: str) -> Mark | None:
    """How much of a session's transcript the head has; None if its state is something else."""
    if head is None or not isinstance(head.state, Mapping):
        return None
    found = head.state.get("transcript")
    if not isinstance(found, Mapping) or found.get("session") != session:
        return None
    return Mark.of(found)


def agent_of(state: Any) -> AgentSpec | None:
    """The agent CLI whose conversation a state is; None if it is none that is known."""
    found = state.get("transcript") if isinstance(state, Mapping) else None
    return registry.named(found.get("agent")) if isinstance(found, Mapping) else None


def records(*states: Any) -> set[str]:
    """The keys of agents' own records in these states, of which the messages tell people all."""
    return {"transcript", "lines"} if any(agent_of(state) for state in states) else set()


def has_said(messages: Iterable[Mapping[str, Any]], answer: str) -> bool:
    """Whether the model has said this, be it in several parts."""
    said: list[str] = []
    for content in (each["content"] for each in messages if each["role"] == "assistant"):
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        said += [str(part.get("text", "")) for part in parts if isinstance(part, Mapping)]
    return " ".join(answer.split()) in " ".join(" ".join(said).split())
