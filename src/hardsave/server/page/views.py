"""What the pages show, as data for their templates. Pure."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from hardsave import Job, JobHealth
from hardsave.server.projects import Project
from hardsave.tuples import NamedTuple
from hardsave.values import messages, text
from hardsave.values.messages import Message
from hardsave.vault.jobs.state import JobState

STATES: tuple[JobState, ...] = (
    "waiting",
    "active",
    "queued",
    "failed",
    "succeeded",
    "rolled_back",
    "forgotten",
)
MESSAGES = 20  # of a job that are shown at once

DONE = {
    "resumed": "Resumed. A worker takes the job up where it was.",
    "approved": "Approved. The job goes on when a worker takes it up.",
    "denied": "Denied. The agent is told, and goes on without the call.",
    "deleted": "Deleted. 'hardsave undo' brings it back.",
    "cancelled": "Taken out of the queue. 'hardsave tasks retry' puts it back.",
}
"""What a page says after an act, by the word in its address: no text of an address is shown."""


class Tab(NamedTuple):
    """A choice of the list's filter."""

    state: JobState | None
    label: str
    jobs: int
    is_current: bool


def tabs(health: JobHealth, current: JobState | None) -> list[Tab]:
    """All, and each state that there are jobs in, or that is chosen."""
    counts = {state: getattr(health, state) for state in STATES}
    found = [
        Tab(state, label(state), number, state == current)
        for state, number in counts.items()
        if number or state == current
    ]
    return [Tab(None, "All", health.total, current is None), *found]


def label(state: str) -> str:
    return state.replace("_", " ").capitalize()


def stamp(job: Job) -> str:
    """What a person saw of a job that decides over an act. A form sends it along: if the job has
    another one by then, the act is not done."""
    seen = [job.id, job.state, str(job.attempts), job.checkpoint or "", job.question or ""]
    return hashlib.sha256("\0".join(seen).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def text_of(value: Any) -> str:
    """An output as a person reads it."""
    return text.shown(value, indent=2)


class Listed(NamedTuple):
    """A project of a list."""

    project: Project
    updated_at: datetime | None


def newest_first(
    found: Sequence[Project], updated_at: Callable[[Project], datetime | None]
) -> list[Listed]:
    """The project that the server was started in, then those that were written last."""
    listed = [Listed(each, updated_at(each)) for each in found]
    listed.sort(key=lambda each: each.project.id)
    never = datetime.fromtimestamp(0, UTC)
    listed.sort(key=lambda each: (each.project.is_here, each.updated_at or never), reverse=True)
    return listed


class Numbered(NamedTuple):
    """A message and its place in the conversation, from 1."""

    number: int
    message: Message


class Passage(NamedTuple):
    """Some messages of a conversation, oldest first, and where its neighbours end."""

    shown: tuple[Numbered, ...]
    total: int
    earlier: int | None  # the number of the last message of the passage before; None: there is none
    later: int | None


def passage(items: Sequence[Any], last: int | None) -> Passage:
    """The messages up to number `last`, or the newest. Reads no others."""
    total = len(items)
    end = total if last is None else max(0, min(last, total))
    begin = max(0, end - MESSAGES)
    found = enumerate(items[begin:end], begin + 1)
    return Passage(
        tuple(Numbered(number, messages.read(item)) for number, item in found),
        total,
        begin or None,
        min(end + MESSAGES, total) if end < total else None,
    )
