"""A transcript as the state of a checkpoint: what is new of it is added to what the head has.

Hooks save it so, and so does the process beside an agent that has no hooks: a rewind need not know
who it was.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import hardsave
from hardsave.agents.spec import Agent
from hardsave.agents.transcripts import EMPTY, Mark, Reading, pieces
from hardsave.tuples import NamedTuple
from hardsave.vault.parts import Parts


class Unreadable(Exception):
    """A transcript that is there, and none for us; or that cannot be a path at all."""


class Source(NamedTuple):
    """Whose transcript, where it is, and when it is read, as seen from the calls."""

    agent: Agent
    session: str
    path: str
    moment: Mapping[str, Any]


def told(source: Source, known: Mark | None) -> Parts:
    """A conversation as it is by now; all of it if the head has another's. It may be a very long
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
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unreadable(str(error)) from error


def known(head: hardsave.Checkpoint | None, session: str) -> Mark | None:
    """How much of a session's transcript the head has; None if its state is something else."""
    if head is None or not isinstance(head.state, Mapping):
        return None
    found = head.state.get("transcript")
    if not isinstance(found, Mapping) or found.get("session") != session:
        return None
    return Mark.of(found)
