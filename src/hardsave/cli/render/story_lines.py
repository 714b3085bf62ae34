"""A log as lines: prompts with their steps beneath them, or a graph of steps."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from rich.text import Text

from hardsave import wording
from hardsave.cli.log_query import Told
from hardsave.cli.render import draw, graph, refs, rows
from hardsave.cli.render.console import UNBOUNDED
from hardsave.timeline.story import Prompt, Row, Step

Heads = Mapping[str, Sequence[str]]  # names of timelines by the id of their head
_BENEATH = "  "  # what stands before a step of a prompt
_VERY_WIDE = 140


def drawn(found: Told, heads: Heads, now: datetime, width: int) -> list[Text]:
    if not found.entries:
        return []
    if found.shape == "steps":
        return list(_graph(found, heads, now, width))
    is_folded, ended = found.shape == "folded", found.ended()
    lines: list[tuple[Text, ...]] = []
    for entry in found.entries:
        if isinstance(entry, Step):
            mark = _mark(entry, ended)
            lines.append((mark, *_cells(entry, heads, now, width)))
            continue
        lines.append(_prompt(entry, now, width, is_folded=is_folded))
        if is_folded:
            for step in entry.steps:
                mark = Text(_BENEATH).append_text(_mark(step, ended))
                lines.append((mark, *_cells(step, heads, now, width)))
    return draw.columns(lines)


def _prompt(prompt: Prompt, now: datetime, width: int, *, is_folded: bool) -> tuple[Text, ...]:
    mark = rows.prompt_mark(prompt)
    is_short = width < rows.NARROW
    count = Text("" if is_short else wording.count(len(prompt.steps), "step"), style="quiet")
    whole = None if is_short else prompt.files
    files = draw.tally(prompt.changed_before if is_folded else whole)
    return (
        Text(mark, style=rows.STYLES[mark]),
        _ref(prompt.before, {}),
        rows.age(prompt.created_at, now, width),
        files,
        *(() if is_folded else (count,)),
        rows.prompt_text(prompt),
    )


def _mark(step: Step, ended: Collection[str]) -> Text:
    mark = rows.step_mark(step, ended)
    return Text(mark, style=rows.STYLES[mark])


def _cells(step: Step, heads: Heads, now: datetime, width: int) -> tuple[Text, ...]:
    return (
        _ref(step.newest, heads),
        rows.age(step.newest.created_at, now, width),
        rows.step_files(step),
        rows.step_text(step).append_text(_paths(step, width)),
    )


def _paths(step: Step, width: int) -> Text:
    """The files that have changed, where a terminal has room for them; not those of which the call
    itself tells."""
    if not _VERY_WIDE <= width < UNBOUNDED:
        return Text()
    named = [wording.shown(path) for path in step.paths if path not in step.text]
    more = ", …" if sum((step.files or {}).values()) > len(step.paths) else ""
    return Text(f"  {', '.join(named)}{more}" if named else "", style="quiet")


def _ref(row: Row | None, heads: Heads) -> Text:
    """A checkpoint as it is typed, and the other timelines that stand there."""
    if row is None:
        return Text()
    text = draw.ref(row)
    for name in heads.get(row.id, ()):
        if name != row.timeline:
            text.append(f" ← {wording.shown(refs.timeline(name))}", style="head")
    return text


# The graph


def _graph(found: Told, heads: Heads, now: datetime, width: int) -> Iterator[Text]:
    steps = [entry for entry in found.entries if isinstance(entry, Step)]
    nodes = list(_nodes(found, steps))
    cells = draw.columns([_cells(step, heads, now, width) for step in steps])
    for row, text in zip(graph.draw(nodes, apart=not found.is_filtered), cells, strict=True):
        for join in row.joins:
            yield Text(join, style="quiet")
        graphic = Text(f"{row.line}  ", style="quiet")
        for mark in (rows.HEAD, rows.BY_HAND):
            graphic.highlight_regex(mark, rows.STYLES[mark])
        yield draw.line(graphic, text, cut=True)


def _nodes(found: Told, steps: Sequence[Step]) -> Iterator[graph.Node]:
    """Each on top of the step that has its parent; where some are left out, only if that is shown.
    A checkpoint that was made at a prompt is no step: the one before it counts."""
    parents = {row.id: row.parent for row in found.moments.rows}
    every = {row.id: step.newest.id for step in found.moments.story().steps for row in step.rows}
    shown, ended = {step.newest.id for step in steps}, found.ended()
    for step in steps:
        parent = step.rows[0].parent
        while parent in parents and parent not in every:
            parent = parents[parent]
        below = every.get(parent or "", parent)
        node = below if below in shown or not found.is_filtered else None
        yield graph.Node(step.newest.id, node, rows.step_mark(step, ended))
