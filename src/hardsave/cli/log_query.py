"""What a log shows, and in which order: newest first, children before parents."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from hardsave import Checkpoint, Timeline
from hardsave.cli.current_timeline import TimelineState
from hardsave.timeline.story import Prompt, Row, Step, Story
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import record_of

if TYPE_CHECKING:
    from hardsave.cli.moments import Moments
    from hardsave.cli.session import Session

LIMIT = 30
_PAGE = 60  # checkpoints that are read at once, to begin with
_MOST_COUNTED = 300  # of which older versions have kept no summary: each takes a millisecond
_FARTHEST = 500  # checkpoints that are read on for the prompt of a step


class Wanted(NamedTuple):
    """Which checkpoints of a timeline; None does not filter."""

    limit: int
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_filtered(self) -> bool:
        return any(value is not None for value in self[1:])


def gather(lines: Iterable[Timeline], wanted: Wanted) -> tuple[list[Checkpoint], bool]:
    """The newest checkpoints of some timelines that are wanted, and whether there are more."""
    pages = [line.checkpoints(**wanted._asdict()) for line in lines]
    found = sorted((one for page in pages for one in page), key=lambda one: -record_of(one).number)
    has_more = len(found) > wanted.limit or any(page.next is not None for page in pages)
    return found[: wanted.limit], has_more


# By prompts and steps

Shape = Literal["folded", "prompts", "steps"]
Entry = Prompt | Step


class Asked(NamedTuple):
    """What a log is asked for."""

    lines: Sequence[TimelineState]
    shape: Shape | None
    wanted: Wanted
    is_limited: bool  # by the user; else a prompt is shown with all its steps
    with_origin: bool = False  # also what these timelines were forked from


class Told(NamedTuple):
    """What a log tells: prompts with their steps, or steps alone."""

    entries: list[Entry]
    shape: Shape
    moments: "Moments"
    has_more: bool
    is_filtered: bool = False  # what is left out may be of any age

    @property
    def rows(self) -> list[Row]:
        """All checkpoints of these, newest first."""
        found = {row.id: row for entry in self.entries for row in rows_of(entry)}
        return sorted(found.values(), key=lambda row: -row.number)

    @property
    def steps(self) -> list[Step]:
        return [step for entry in self.entries for step in steps_of(entry)]

    @property
    def has_left(self) -> bool:
        return any(step.is_left for step in self.steps)

    def ended(self) -> set[str]:
        """Timelines that stand at their newest checkpoint and are not the one that saved last: that
        they do need not be shown."""
        left = {step.newest.timeline for step in self.steps if step.is_left}
        return {*self.moments.heads} - left - {self.moments.current}


def told(session: "Session", asked: Asked) -> Told:
    """The newest prompts and steps of some timelines, as many as are wanted."""
    moments = session.moments_of(asked.lines, with_origin=asked.with_origin)
    if asked.wanted.is_filtered:
        names = [each.name for each in asked.lines]
        found, has_more = gather(map(session.vault.timeline, names), asked.wanted)
        moments.add(found)
        moments.count({row.id for row in moments.rows})
        shape = asked.shape or "steps"
        return Told(_entries(moments.story(), shape), shape, moments, has_more, is_filtered=True)
    return _with_head(_newest(moments, asked), asked)


def newest_rows(session: "Session", asked: Asked) -> list[tuple[Row, Checkpoint]]:
    """The newest checkpoints, for programs."""
    moments = session.moments_of(asked.lines, with_origin=asked.with_origin)
    if asked.wanted.is_filtered:
        names = [each.name for each in asked.lines]
        moments.add(gather(map(session.vault.timeline, names), asked.wanted)[0])
    else:
        moments.read(asked.wanted.limit)
    moments.count({row.id for row in moments.rows})
    ordered = sorted(moments.rows, key=lambda row: -row.number)
    return [(row, moments.checkpoints[row.id]) for row in ordered]


def _newest(moments: "Moments", asked: Asked) -> Told:
    shape = asked.shape or "folded"
    has_more = moments.read(_PAGE)
    while has_more and len(_entries(moments.story(), shape)) <= len(_chosen(moments, asked)):
        has_more = moments.read(len(moments.rows))
    if shape != "steps":
        _read_prompts(moments, _chosen(moments, asked))
    shown = [row.id for entry in _chosen(moments, asked) for row in rows_of(entry)]
    moments.count({*shown[:_MOST_COUNTED]})
    entries, chosen = _entries(moments.story(), shape), _chosen(moments, asked)
    return Told(chosen, shape, moments, has_more or len(entries) > len(chosen))


def _entries(story: Story, shape: Shape) -> list[Entry]:
    """Prompts, and steps that follow none, each in its place."""
    if shape == "steps":
        return [*story.steps]
    found: list[tuple[int, Entry]] = []
    for prompt in story.prompts:
        if prompt.text:
            found.append((prompt.number, prompt))
        elif shape == "folded":
            found += [(step.newest.number, step) for step in prompt.steps]
    return [entry for _, entry in sorted(found, key=lambda each: -each[0])]


def _chosen(moments: "Moments", asked: Asked) -> list[Entry]:
    """As many as were asked for; else as many as fill a screen, the last one whole."""
    shape = asked.shape or "folded"
    entries = _entries(moments.story(), shape)
    if asked.is_limited or shape != "folded":
        return entries[: asked.wanted.limit]
    chosen: list[Entry] = []
    lines = 0
    for entry in entries:
        if lines >= asked.wanted.limit:
            break
        chosen.append(entry)
        lines += len(steps_of(entry)) + isinstance(entry, Prompt)
    return chosen


def _read_prompts(moments: "Moments", chosen: Iterable[Entry]) -> None:
    """Read on where the prompt of a step is older than what was read."""
    for name in {step.newest.timeline for step in chosen if isinstance(step, Step)}:
        if moments.has_prompts(name):
            moments.read_prompt(name, _FARTHEST)


def _with_head(found: Told, asked: Asked) -> Told:
    """The same with the head of the timeline that saved last, which may be older than all of these
    after a rewind: a log shows where it is."""
    moments = found.moments
    head = moments.heads[moments.current].id if asked.lines else ""
    if not head or found.shape == "prompts" or any(row.id == head for row in found.rows):
        return found
    moments.add_missing(head)
    moments.count({head})
    steps = (step for step in moments.story().steps if step.newest.id == head)
    return found._replace(entries=[*found.entries, *steps])


def rows_of(entry: Entry) -> Iterator[Row]:
    if isinstance(entry, Prompt) and entry.before is not None:
        yield entry.before
    for step in steps_of(entry):
        yield from step.rows


def steps_of(entry: Entry) -> Sequence[Step]:
    return entry.steps if isinstance(entry, Prompt) else (entry,)
