"""Writes of a framework on top of a timeline's head, which other writers move."""

from collections.abc import Callable
from typing import TypeVar

import hardsave

T = TypeVar("T")

_ATTEMPTS = 100  # each time, another writer has moved the timeline


def on_the_head(line: hardsave.Timeline, write: Callable[[hardsave.Checkpoint | None], T]) -> T:
    """`write` on top of the head that there is; again if another writer was faster. What it refuses
    for another reason is not asked for twice."""
    for _ in range(_ATTEMPTS):
        head = line.head
        try:
            return write(head)
        except hardsave.Conflict:
            if line.head == head:
                raise
    raise hardsave.Conflict(
        f"timeline {line.name!r} is written to by too many others at once; try again"
    )
