"""Which timeline and which directory a command is about, by default. Pure: decided over plain data.

    --timeline T, or HARDSAVE_TIMELINE       that one
    called by an agent whose session saves   that of its session, until that has ended
    here
    else                                     the one that was last saved on in this workspace, or
                                             moved by a rewind, an undo or a redo
    undo, redo                               the one of the last that was done, or taken back
    another was at work at the same time     a command that only reads is about that one;
    and both are unfinished                  any other is refused with a list: `Misuse`
    none                                     `main`

A session that saved its last before the newest one began was left, perhaps by a crash that let it
say nothing: it is not meant. What was saved only because an operation was about to write is no work
of a session, so it makes no two of them work at the same time. A store may hold timelines that
never saved files: where none has files of this workspace, these are the ones to choose from.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

MAIN = "main"
SHOWN = 4  # names in a message; 'hardsave timelines' has them all

# A status is any text. These say that the agent is done; with any other it may go on.
FINISHED = frozenset(
    {
        "aborted",
        "cancelled",
        "canceled",
        "complete",
        "completed",
        "done",
        "ended",
        "failed",
        "finished",
        "saved",
        "stopped",
        "succeeded",
        "success",
    }
)


class TimelineState(NamedTuple):
    """What the choice between timelines needs to know of one."""

    name: str
    status: str  # of its head
    newest: int  # the number of the commit of its newest checkpoint
    workspace: str | None = None  # that its newest checkpoint has files of
    head: str = ""  # its id
    head_number: int = 0  # of the commit of that
    title: str = ""
    seq: int = 0  # of its newest checkpoint
    created_at: datetime = datetime.fromtimestamp(0, UTC)
    updated_at: datetime = datetime.fromtimestamp(0, UTC)
    worked_at: datetime = datetime.fromtimestamp(0, UTC)  # the same, without safety checkpoints
    moved: int = 0  # the number of the last operation that took it somewhere

    @property
    def touched(self) -> int:
        """The number of the last commit that was about it."""
        return max(self.newest, self.moved)

    @property
    def is_unfinished(self) -> bool:
        return self.status.casefold() not in FINISHED


def timeline(
    given: str | None,
    states: Iterable[TimelineState],
    workspace: Path,
    *,
    callers: Collection[str] = (),
    reads_only: bool = False,
) -> str:
    """The name of the timeline that a command is about. One that `reads_only` can harm none.
    `callers` are those of the sessions of agents that have called it."""
    if given:
        return given
    here = of_directory(states, workspace)
    if called := [each for each in here if each.name in callers and each.is_unfinished]:
        return max(called, key=lambda each: each.touched).name
    if not reads_only and len(unfinished(here, workspace)) > 1:
        raise Misuse(f"{listed(unfinished(here, workspace))}; say which with --timeline")
    return max(here, key=lambda each: each.touched).name if here else MAIN


def unfinished(states: Iterable[TimelineState], workspace: Path) -> list[str]:
    """The names of those that may be meant, the last that saved first."""
    here = of_directory(states, workspace)
    ordered = sorted(here, key=lambda each: (each.worked_at, each.newest), reverse=True)
    return [
        each.name
        for each in ordered
        if each.is_unfinished and each.worked_at >= ordered[0].created_at
    ]


class Done(Protocol):
    """An operation, as far as a choice needs it."""

    @property
    def kind(self) -> str: ...
    @property
    def timeline(self) -> str | None: ...
    @property
    def is_undone(self) -> bool: ...


D = TypeVar("D", bound=Done)


def to_undo(newest_first: Iterable[D]) -> D | None:
    """The operation that an undo takes back: the last that stands."""
    return next((each for each in newest_first if each.kind != "undo" and not each.is_undone), None)


def to_redo(newest_first: Iterable[D]) -> D | None:
    """The undo that a redo takes back: the last that stands, unless an operation came after it."""
    settled: dict[str | None, int] = {}  # by timeline: so many undos were taken back by redos
    for each in newest_first:
        if each.kind == "redo":
            settled[each.timeline] = settled.get(each.timeline, 0) + 1
        elif each.kind != "undo":
            return None
        elif not settled.get(each.timeline):
            return each
        else:
            settled[each.timeline] -= 1
    return None


def listed(names: Sequence[str]) -> str:
    """Some of them, for a message."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    shown = ", ".join(map(repr, names[:SHOWN]))
    return f"{len(names)} timelines are unfinished here: {shown}{more}"


def of_directory(states: Iterable[TimelineState], workspace: Path) -> list[TimelineState]:
    """The timelines that a directory's story is made of."""
    known = list(states)
    here = [each for each in known if each.workspace == str(workspace)]
    return here or [each for each in known if each.workspace is None]


def workspace(directory: Path, root: Path, known: Iterable[str]) -> Path:
    """The nearest directory upwards that has been saved; else the project's root."""
    saved = {*known}
    for folder in (directory, *directory.parents):
        if str(folder) in saved:
            return folder
        if folder == root:
            break
    return root


def free_name(base: str, taken: Iterable[str]) -> str:
    """`main-2`, or the next number that is free."""
    names = {*taken}
    number = 2
    while f"{base}-{number}" in names:
        number += 1
    return f"{base}-{number}"
