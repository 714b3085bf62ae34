"""What a command knows of the timelines of its store: where the newest stand, and their names.

A store may have ten thousand. What was done last is on those that were updated last, so that most
commands read no more than these; the rest are read for what may be on any of them.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import hardsave
from hardsave.cli.current_timeline import TimelineState
from hardsave.errors import NotFound
from hardsave.timeline import short_names
from hardsave.timeline.short_names import Titled
from hardsave.timeline.step_summary import SAFETY
from hardsave.vault.checkpoint import record_of
from hardsave.vault.vault import timeline_records

if TYPE_CHECKING:
    from hardsave.objects.records import TimelineRecord

NEWEST = 500  # timelines that a command chooses from: an older one is meant only if it is named
_PAGE = 1_000
_FEW = 10  # checkpoints: mostly an operation saves one
_RECENT = 50  # operations, among which the last of a directory is looked for
_MOVING = ("rewind", "restore", "undo", "redo")


class KnownTimelines:
    """Of one vault, which is opened when it is first asked; `where` tells which directory files are
    of."""

    def __init__(
        self, vault: Callable[[], hardsave.Vault], where: "Callable[[hardsave.Files], str]"
    ) -> None:
        self._vault = vault
        self._where = where

    def forget_states(self) -> None:
        """Before the vault is closed. Names stay: messages are printed after it."""
        for cached in ("every", "saved", "_moved", "_newest_page", "_sessions"):
            self.__dict__.pop(cached, None)

    def forget_names(self) -> None:
        """A timeline was made meanwhile."""
        for cached in ("_records", "short_names"):
            self.__dict__.pop(cached, None)

    @property
    def is_complete(self) -> bool:
        """Whether the newest are all that there are."""
        return self._newest_page.next is None

    @cached_property
    def saved(self) -> list[TimelineState]:
        """The newest that something was saved on, the last updated first."""
        return [each for each in self.newest(NEWEST) if each.newest]

    @cached_property
    def every(self) -> list[TimelineState]:
        """Those that stand anywhere, the last updated first; a fork may have saved nothing yet."""
        return self.standing(self._sessions)

    def newest(self, limit: int) -> list[TimelineState]:
        """So many of them."""
        if limit > NEWEST and not self.is_complete:
            return self.every[:limit]
        return self.standing(self._newest_page)[:limit]

    def state_of(self, name: str) -> TimelineState | None:
        """Where one timeline stands, whenever it was updated."""
        known = (each for each in self.newest(NEWEST) if each.name == name)
        return next(known, None) or next((each for each in self.every if each.name == name), None)

    def workspace_of(self, name: str, otherwise: str | None = None) -> str | None:
        """The directory that the newest checkpoint of a timeline has files of; `otherwise` if
        nothing was saved on it."""
        found = self.state_of(name)
        return otherwise if found is None or not found.newest else found.workspace

    def standing(
        self, found: "Iterable[hardsave.Session[hardsave.Checkpoint]]"
    ) -> list[TimelineState]:
        return [
            self._state(each, each.head)
            for each in found
            if each.head is not None and not each.is_deleted
        ]

    def _state(
        self, one: "hardsave.Session[hardsave.Checkpoint]", head: hardsave.Checkpoint
    ) -> TimelineState:
        files = None if one.newest is None else one.newest.files
        return TimelineState(
            one.timeline,
            head.status,
            newest=0 if one.newest is None else record_of(one.newest).number,
            workspace=None if files is None else self._where(files),
            head=head.id,
            head_number=record_of(head).number,
            title=self._title(one.timeline, one.title, is_deleted=one.is_deleted),
            seq=0 if one.newest is None else one.newest.seq,
            created_at=one.created_at,
            updated_at=one.updated_at,
            worked_at=self._worked_at(one),
            moved=self._moved.get(one.timeline, 0),
        )

    def _worked_at(self, one: "hardsave.Session[hardsave.Checkpoint]") -> datetime:
        """When something was last saved on a timeline, other than for an operation."""
        if one.newest is None or not _is_safety(one.newest):
            return one.updated_at
        after: str | None = None
        while True:
            page = self._vault().timeline(one.timeline).checkpoints(limit=_FEW, after=after)
            for each in page:
                if not _is_safety(each):
                    return each.created_at
            if page.next is None:
                return one.created_at
            after = page.next

    @cached_property
    def _moved(self) -> dict[str, int]:
        """By timeline, the number of the last operation that took it somewhere."""
        found: dict[str, int] = {}
        for each in self._vault().operations(limit=_RECENT):
            if each.timeline is not None and each.kind in _MOVING:
                found.setdefault(each.timeline, each.number)
        return found

    @cached_property
    def _newest_page(self) -> "hardsave.Page[hardsave.Session[hardsave.Checkpoint]]":
        """The timelines that were updated last, deleted ones too."""
        return self._vault().sessions(limit=NEWEST, deleted=True)

    @cached_property
    def _sessions(self) -> "list[hardsave.Session[hardsave.Checkpoint]]":
        """All timelines, deleted ones too, the last updated first."""
        page = self._newest_page
        found = list(page)
        while page.next is not None:
            page = self._vault().sessions(limit=_PAGE, deleted=True, after=page.next)
            found += page
        return found

    def _title(self, name: str, title: str, *, is_deleted: bool) -> str:
        """What was kept; of a session that an earlier version saved, what its hooks have written
        into its first checkpoint."""
        if title or len(name) <= short_names.LONGEST or is_deleted:
            return title
        with suppress(NotFound):
            first = self._vault().timeline(name).get(":1")
            if first.summary is None:
                from hardsave.timeline import story  # most summaries were kept

                return story.read(first.description, first.metadata).prompt
        return ""

    @property
    def heads(self) -> dict[str, list[str]]:
        """The names of the timelines that stand at a checkpoint, by its id."""
        found: dict[str, list[str]] = {}
        for each in self.newest(NEWEST):
            found.setdefault(each.head, []).append(each.name)
        return found

    @cached_property
    def short_names(self) -> dict[str, str]:
        """By their names, those of all timelines."""
        made = sorted(self._records, key=lambda each: (each.created_at, each.name))
        return short_names.short_names(
            Titled(each.name, self._title(each.name, each.title, is_deleted=each.is_deleted))
            for each in made
        )

    @cached_property
    def _records(self) -> "list[TimelineRecord]":
        return list(timeline_records(self._vault()))

    @property
    def names_that_count(self) -> dict[str, str]:
        """The short names of the timelines that a command can be about."""
        is_deleted = {each.name for each in self._records if each.is_deleted}
        return {name: short for name, short in self.short_names.items() if name not in is_deleted}


def _is_safety(one: hardsave.Checkpoint) -> bool:
    return one.summary is not None and one.summary.phase == SAFETY
