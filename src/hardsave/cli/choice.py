"""Which timeline, and which directory, when nobody says. Pure: decided over plain data.

    --timeline T, or HARDSAVE_TIMELINE       that one
    else                                     the one that last saved in this workspace
    two of these are unfinished              nobody can know which: `Misuse`, and a list
    none                                     `main`

A store may hold timelines that never saved files: where none has files of this workspace,
these are the ones to choose from.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hardsave.errors import Misuse

MAIN = "main"

# A status is any text. Whoever says one of these is done; all others may go on.
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


class Standing(NamedTuple):
    """Where a timeline stands, as far as the choice is concerned."""

    name: str
    status: str  # of its head
    saved: int  # the number of the commit of its newest checkpoint
    workspace: str | None = None  # that its newest checkpoint has files of

    @property
    def is_unfinished(self) -> bool:
        return self.status.casefold() not in FINISHED


def timeline(given: str | None, standing: Iterable[Standing], workspace: Path) -> str:
    """The name of the timeline that a command is about."""
    if given:
        return given
    here = _concerned(list(standing), workspace)
    unfinished = sorted(each.name for each in here if each.is_unfinished)
    if len(unfinished) > 1:
        listed = ", ".join(map(repr, unfinished))
        raise Misuse(
            f"{len(unfinished)} timelines are unfinished here: {listed}; say which with --timeline"
        )
    return max(here, key=lambda each: each.saved).name if here else MAIN


def _concerned(standing: Sequence[Standing], workspace: Path) -> list[Standing]:
    here = [each for each in standing if each.workspace == str(workspace)]
    return here or [each for each in standing if each.workspace is None]


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
    """`main-2`, or the next number that nobody has."""
    names = {*taken}
    number = 2
    while f"{base}-{number}" in names:
        number += 1
    return f"{base}-{number}"
