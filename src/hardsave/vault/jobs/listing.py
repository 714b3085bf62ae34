"""Where a page of jobs ends, and where the next goes on.

Jobs are listed by their tasks, the newest first, and after these come the ones of which only a
timeline is left. A place is `t` and the place of a task, or `s` and the cursor of a session.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from hardsave.page import Page
from hardsave.vault.arguments import not_a_cursor, place
from hardsave.vault.history.session_list import Session, cursor_behind
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.state import JobState

_PAGE = 200

_TASK_STATES: dict[JobState, str] = {
    "queued": "pending",
    "waiting": "pending",
    "active": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "rolled_back": "rolled_back",
}


class Place:
    """A place in the listing, taken apart."""

    def __init__(self, after: str | None, listing: str) -> None:
        found = place(after, listing) or "t0"
        number = found[1:]
        self.task: int | None = None  # go on behind this one; 0 before the first
        self.session: str | None = None  # only the timelines behind this one are left
        if found[0] == "t" and number.isascii() and number.isdecimal() and len(number) <= 18:
            self.task = int(number)
        elif found[0] == "s":
            self.session = number
        else:
            raise not_a_cursor(after)


def task_state(state: JobState | None, *, may_have_died: bool) -> str | None:
    """In which state the tasks of such jobs are; None: in any. A task whose worker has died is
    shown as it will stand, and stored as it stood."""
    return None if state is None or may_have_died else _TASK_STATES.get(state)


def has_tasks(state: JobState | None) -> bool:
    return state != "forgotten"


def may_have_none(state: JobState | None) -> bool:
    """Whether such jobs may have no task any more."""
    return state in (None, "succeeded", "forgotten")


class Listed(Protocol):
    """What this needs of a vault."""

    @property
    def user(self) -> str | None: ...
    def sessions(self, *, limit: int, after: str | None) -> Page[Session[Any]]: ...


def lines_of_jobs(vault: Listed, after: str | None) -> Iterator[tuple[str, str]]:
    """Timelines whose heads were saved by jobs, the last updated first: the cursor behind each, and
    its name. Reads rows alone."""
    while True:
        page = vault.sessions(limit=_PAGE, after=after)
        for each in page:
            if states.saved(each.head) is not None:
                yield cursor_behind(vault.user, each), each.timeline
        after = page.next
        if after is None:
            return
