"""The moments of some timelines that can be gone back to: checkpoints as rows of a story, newest
first over all of them. A timeline is read when its newest checkpoint is the next one, and not
further than was asked for: of forty sessions a log reads two.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, islice
from typing import TYPE_CHECKING

from hardsave import Checkpoint, Timeline, Vault
from hardsave.cli.current_timeline import TimelineState
from hardsave.timeline import story, telling
from hardsave.timeline.story import Head, Row, Story
from hardsave.vault.checkpoint import record_of

if TYPE_CHECKING:
    from hardsave.cli.render.summary import Summaries

PAGE = 60  # checkpoints
_MADE = re.compile(
    r"(?P<agent>.+)-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{8}-[0-9]{6}-[0-9a-f]{6})"
)


class Moments:
    """What was read of some timelines, and the story of it. More is read when it is asked for."""

    def __init__(
        self, vault: Vault, lines: Iterable[TimelineState], *, with_origin: bool = False
    ) -> None:
        """`with_origin`: also what they were forked from."""
        self._lines = {each.name: each for each in lines}
        self._with_origin = with_origin
        self._readers: dict[str, _Reader] = {}
        self._next = [(-each.newest, each.name) for each in self._lines.values()]
        heapify(self._next)
        self._summaries: Summaries | None = None
        self._vault = vault
        self.rows: list[Row] = []
        """Those that were read, newest first."""
        self.checkpoints: dict[str, Checkpoint] = {}
        """The same by their ids."""

    def read(self, count: int) -> bool:
        """Read so many more, if there are; whether there may be still more."""
        end = len(self.rows) + count
        while self._next and len(self.rows) < end:
            name = self._next[0][1]
            reader = self._reader(name)
            one = reader.take()
            if one is not None:
                self._add(one)
            following = reader.peek()
            if following is None:
                heappop(self._next)
            else:
                heapreplace(self._next, (-record_of(following).number, name))
        return bool(self._next)

    def _reader(self, timeline: str) -> "_Reader":
        if timeline not in self._readers:
            line = self._vault.timeline(timeline)
            self._readers[timeline] = _Reader(line, self._with_origin)
        return self._readers[timeline]

    def read_all(self) -> None:
        while self.read(10 * PAGE):
            pass

    def read_prompt(self, timeline: str, most: int) -> None:
        """Read on in one timeline, up to the next prompt, but not further than so many. What others
        have saved meanwhile is left out until it is its turn."""
        reader = self._reader(timeline)
        for _ in range(most):
            one = reader.take()
            if one is None or self._add(one).told.prompt:
                break
        self._next = [each for each in self._next if each[1] != timeline]
        heapify(self._next)
        if (following := reader.peek()) is not None:
            heappush(self._next, (-record_of(following).number, timeline))

    def has_prompts(self, timeline: str) -> bool:
        """Whether an agent's conversation was saved on a timeline, as far as it is known."""
        line = self._lines.get(timeline)
        return line is not None and bool(agent_of(timeline) or line.title)

    def add(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Some that were found by other means."""
        for one in checkpoints:
            self._add(one)

    def add_missing(self, id: str) -> None:
        """One that may be older than all that were read."""
        if id not in self.checkpoints:
            self._add(self._vault.get(id))

    def _add(self, one: Checkpoint) -> Row:
        self.checkpoints[one.id] = one
        self.rows.append(found := row(one))
        return found

    @property
    def current(self) -> str:
        """The timeline that was last saved on or moved."""
        return max(self._lines.values(), key=lambda each: each.touched).name

    @property
    def heads(self) -> Mapping[str, Head]:
        return {name: Head(each.head, each.head_number) for name, each in self._lines.items()}

    def story(self, rows: Iterable[Row] | None = None) -> Story:
        """Of all that was read, or of some of it."""
        titles = {name: each.title for name, each in self._lines.items()}
        agents = {name: agent_of(name) for name in self._lines}
        return telling.tell(self.rows if rows is None else rows, self.heads, titles, agents)

    def count(self, ids: Collection[str]) -> bool:
        """Read what is new in these from states and files, where it was not kept; whether there
        were any."""
        found = [at for at, each in enumerate(self.rows) if each.id in ids and not each.is_counted]
        for at in found:
            self.rows[at] = self._counted(self.rows[at])
        return bool(found)

    def _counted(self, row: Row) -> Row:
        if self._summaries is None:
            from hardsave.cli.render.summary import Summaries  # for what older versions have saved

            self._summaries = Summaries(self._vault, self.checkpoints.values())
        found = self._summaries.of(self.checkpoints[row.id])
        return row._replace(
            said=found.last,
            messages=found.messages,
            new_messages=found.new_messages,
            files=found.files,
            paths=found.paths,
            not_captured=found.not_captured,
            lost=found.lost,
            is_counted=True,
        )


class _Reader:
    """The checkpoints of one timeline, newest first, page by page; then those that it was forked
    from, one by one."""

    def __init__(self, line: Timeline, with_origin: bool) -> None:
        self._line = line
        self._with_origin = with_origin
        self._origin: Iterator[Checkpoint] | None = None
        self._page: list[Checkpoint] = []  # oldest first
        self._after: str | None = None
        self._is_begun = False

    def peek(self) -> Checkpoint | None:
        if not self._page and (self._after is not None or not self._is_begun):
            page = self._line.checkpoints(limit=PAGE, after=self._after)
            self._page, self._after, self._is_begun = [*page][::-1], page.next, True
            if page.next is None and self._with_origin:
                self._origin = self._forked_from(self._page[0] if self._page else None)
        if not self._page and self._origin is not None:
            self._page = [*islice(self._origin, 1)]
        return self._page[-1] if self._page else None

    def _forked_from(self, oldest: Checkpoint | None) -> Iterator[Checkpoint]:
        if oldest is not None:
            return self._line.ancestors(oldest.id)
        head = self._line.head
        return iter(()) if head is None else chain([head], self._line.ancestors(head.id))

    def take(self) -> Checkpoint | None:
        return None if self.peek() is None else self._page.pop()


def row(one: Checkpoint) -> Row:
    """A checkpoint as a story needs it."""
    record, kept = record_of(one), one.summary
    row = Row(
        id=one.id,
        timeline=record.timeline,
        seq=record.seq,
        number=record.number,
        created_at=one.created_at,
        parent=one.parent,
        kind=record.kind,
        name=record.name,
        status=record.status,
        description=record.description,
        capture=record.snapshot,
        state=None if agent_of(record.timeline) else record.root,
    )
    if kept is None:
        told = story.read(record.description, one.metadata) if record.description else row.told
        return row._replace(told=told)
    return row._replace(
        told=story.told(record.description, kept, lambda: one.metadata),
        said=kept.said,
        messages=kept.messages,
        new_messages=kept.new_messages,
        files=story.counts(kept, is_first=record.parent is None),
        paths=kept.paths,
        outside=kept.outside,
        not_captured=kept.not_captured,
        lost=kept.lost,
        is_counted=True,
    )


def agent_of(timeline: str) -> str:
    """The program whose session or run a timeline is, by its name; empty if it is none."""
    found = _MADE.fullmatch(timeline)
    return "" if found is None else found["agent"]
