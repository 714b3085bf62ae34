"""What the transcripts of agents have in common, and what each agent's own module has to answer.

Pure. Formats are private and change with every version: `Unknown` says what is not as we know it,
and then nothing is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from hardsave.tuples import NamedTuple

Line: TypeAlias = Mapping[str, Any]  # as it was parsed

UNSAVED = (
    "No result: the session was taken back to a moment when this call was under way or its result "
    "was not written yet. Whether it has taken effect is unknown; look at the files before you "
    "repeat it."
)


class Unknown(Exception):
    """Something in a transcript is not as we know it."""


class Open(NamedTuple):
    """A call without a result: its id, and the line that it stands in."""

    id: str
    line: Line


class Ending(NamedTuple):
    """What a copy needs to know to end by itself."""

    session: str  # its own
    title: str
    moment: str  # as agents write it
    make_id: Callable[[], str]


class Lines(Protocol):
    """How one agent writes transcripts. Each agent has a module of these functions, all pure."""

    def parsed(self, text: str, session: str) -> Line:
        """A line of this session; `Unknown` if it is anything else."""

    def directory(self, line: Line) -> str | None:
        """Where its session works, if this line says so."""

    def calls(self, line: Line) -> Iterable[str]:
        """The tools that are called here, by the ids of the calls."""

    def results(self, line: Line) -> Iterable[str]:
        """The calls whose results stand here."""

    def done(self, line: Line) -> str | None:
        """The call that had just ended when this line was written, if the agent notes that."""

    def is_past(self, line: Line) -> bool:
        """Whether nothing is waited for any more that was called before this line."""

    def is_said(self, line: Line) -> bool:
        """Whether this is part of an answer of the model."""

    def is_heard(self, line: Line) -> bool:
        """Whether this is something that the model answers to."""

    def is_talk(self, line: Line) -> bool:
        """Whether a session that has this line is worth going on with."""

    def along(self, heard: Line, later: Iterable[Line]) -> int:
        """How many of the lines behind a result were given to the model together with it: what the
        tool says besides, what others' hooks have to say, what its user has said meanwhile."""

    def inherited(self, later: Sequence[str], session: str, moment: str) -> int:
        """How many lines were those of another session, which this one goes on from, when it was
        asked its first prompt at this moment: they are written down with it, not before."""

    def gone_on_from(self, known: Sequence[Line], later: Sequence[str]) -> int:
        """How many of these lines a prompt has gone on from, as later lines tell: fewer than all
        if its user had taken the agent itself back, without us."""

    def given_up(self, known: Sequence[Line], waiting: Sequence[Open]) -> Iterable[str]:
        """Which of these calls its user has left behind since, by taking the agent itself back:
        none is waited for, and nobody speaks of them any more."""

    def copied(self, text: str, session: str, new: str) -> str | None:
        """A line as it stands in a copy under another id; None if it is the original's alone."""

    def ended(self, lines: Sequence[str], waiting: Sequence[Open], ending: Ending) -> list[str]:
        """The lines that a copy ends with: the truth about calls that wait, and a name."""

    def messages(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """What was said, for people; whatever is no talk is left out."""


def has_said(messages: Iterable[Mapping[str, Any]], answer: str) -> bool:
    """Whether the model has said this, be it in several parts."""
    said: list[str] = []
    for content in (each["content"] for each in messages if each["role"] == "assistant"):
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        said += [str(part.get("text", "")) for part in parts if isinstance(part, Mapping)]
    return " ".join(answer.split()) in " ".join(" ".join(said).split())


def replaced(text: str, old: str, new: str) -> Iterator[str]:
    """Each way to replace one occurrence, from the last to the first."""
    at = text.rfind(old)
    while at >= 0:
        yield text[:at] + new + text[at + len(old) :]
        at = text.rfind(old, 0, at)
