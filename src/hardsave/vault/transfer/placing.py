"""Where a timeline from elsewhere goes: onto one that is here, or under a name of its own.

Decided from plain data; nothing here reads or writes.

    nothing of that name here           it is created
    one that it continues, or that      what is new is added to it; its head moves on only to
    continues it                        a checkpoint that was not here, and only forwards
    one with another history            it goes under the next free name: NAME-2, NAME-3 …
"""

from collections.abc import Callable
from typing import Literal

from hardsave.defaults import MAX_NAME
from hardsave.objects.records import Id, TimelineRecord
from hardsave.tuples import NamedTuple

Relation = Literal["behind", "ahead", "apart"]
"""Where the head that is here lies, seen from the one that arrives; equal ones are "ahead"."""


class Arriving(NamedTuple):
    """A timeline of a file, and what of it is not here yet."""

    line: TimelineRecord  # its head is one that can be shown here
    newest: int  # the highest number of what is new, tombstones included; 0: nothing is
    has_new_checkpoints: bool
    is_known: bool  # some of it is here, on any timeline
    is_head_new: bool
    fork_point: Id | None  # the parent of the first of its checkpoints that is new


class Here(NamedTuple):
    """A timeline that is here, seen from one that arrives."""

    line: TimelineRecord
    is_free: bool  # no number of what is new is taken by something else
    relation: Relation


def fits(here: Here) -> bool:
    """Whether what arrives is more of the same history."""
    return here.is_free and here.relation != "apart"


def extended(arriving: Arriving, here: Here) -> TimelineRecord:
    """A timeline that is here, with what arrives added. No number is given out twice."""
    moves_on = here.relation == "behind" and arriving.is_head_new
    return here.line._replace(
        head=arriving.line.head if moves_on else here.line.head,
        last_seq=max(here.line.last_seq, arriving.line.last_seq),
        is_deleted=here.line.is_deleted and not arriving.has_new_checkpoints,
        title=here.line.title or arriving.line.title,
    )


def created(arriving: Arriving, name: str) -> TimelineRecord:
    """A new timeline: as it was, or a fork of what is here already."""
    line = arriving.line._replace(name=name)
    if not arriving.is_known:
        return line
    return line._replace(last_seq=arriving.newest, origin=arriving.fork_point or line.origin)


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """NAME-2, or the next after it that is free."""
    number = 2
    while True:
        suffix = f"-{number}"
        candidate = name[: MAX_NAME - len(suffix)].rstrip() + suffix
        if not is_taken(candidate):
            return candidate
        number += 1
