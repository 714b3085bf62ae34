"""What a search has found: a row a hit, beneath the session that it was found in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hardsave import Checkpoint, wording
from hardsave.cli.render import draw, refs
from hardsave.values import messages
from hardsave.vault.search.search import Hit

_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
_LEAD = 24  # characters before what was found, where a snippet has to be cut
_LEAST = 20  # columns for a snippet


def drawn(
    found: Iterable[Hit[Checkpoint]], titles: Mapping[str, str], now: datetime
) -> "Iterator[Text | HitRow]":
    """By session, the one with the best hit first."""
    by_timeline: dict[str, list[Hit[Checkpoint]]] = {}
    for hit in found:
        by_timeline.setdefault(hit.timeline, []).append(hit)
    for name, hits in by_timeline.items():
        title = wording.line(titles.get(name, ""))
        called = (wording.shown(refs.timeline(name)), "name")
        yield draw.line(called, f"  {title}" if title else "", cut=True)
        rows = [_cells(hit, now) for hit in hits]
        widths = [max(len(row[at].plain) for row in rows) for at in range(3)]
        yield from (HitRow(row, widths, hit) for row, hit in zip(rows, hits, strict=True))


def _cells(hit: Hit[Checkpoint], now: datetime) -> tuple[Text, Text, Text]:
    """Which checkpoint, how old, and where in it. A file is found where it last changed, after
    the first checkpoint that changed it."""
    newest = hit.newest or hit.checkpoint
    which = draw.ref(newest)
    if newest != hit.checkpoint:
        which = draw.line(draw.ref(hit.checkpoint), (f" … :{newest.seq}", "ref"))
    return which, Text(wording.ago(newest.created_at, now), style="quiet"), _where(hit)


def _where(hit: Hit[Checkpoint]) -> Text:
    if hit.field == "file":
        sign = _SIGNS.get(hit.change or "", " ")
        return draw.line((f"{sign} ", draw.SIGNS.get(sign, "")), ("file", "quiet"))
    if hit.field != "state":
        return Text(hit.field, style="quiet")
    is_said = hit.path.partition("[")[0] in messages.KEYS
    return Text("said" if is_said else wording.line(hit.path, 24), style="quiet")


class HitRow:
    """One hit on one line: what was found is seen, however narrow the terminal is."""

    def __init__(self, cells: Sequence[Text], widths: Sequence[int], hit: Hit[Checkpoint]) -> None:
        self._cells = cells
        self._widths = widths
        self._hit = hit

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text("  ", no_wrap=True, overflow="ellipsis")
        for cell, width in zip(self._cells, self._widths, strict=True):
            text.append_text(cell).append(" " * (width - len(cell.plain) + 2))
        room = max(options.max_width - len(text.plain), _LEAST)
        yield text.append_text(snippet(self._hit.snippet, self._hit.marks, room))


def snippet(found: str, marks: Sequence[tuple[int, int]], room: int) -> Text:
    """The text around what was found, which is marked; the first of it within so many columns."""
    first = marks[0][0] if marks else 0
    lead = min(_LEAD, room // 3)
    at = first - lead if len(found) > room and first > lead else 0
    text = Text("…" if at else "")
    for begin, end in marks:
        text.append(wording.line(f"|{found[at:begin]}|")[1:-1])
        text.append(wording.line(found[begin:end]), style="found")
        at = end
    return text.append(wording.line(f"|{found[at:]}|")[1:-1])
