"""How much of each file has changed, as `git diff --stat` draws it."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hardsave import wording
from hardsave.cli.render.changed_files import FileStat
from hardsave.tuples import NamedTuple

SIGNS = {"+": "added", "~": "changed", "-": "removed"}
LEAST_GRAPH = 6  # columns; where a path leaves less, the path is cut
PIPED = 80  # columns of a graph that goes to a file or a program, with paths of any length


class Columns(NamedTuple):
    """How wide each part of a row is."""

    path: int
    number: int
    graph: int


class Diffstat:
    """A row for each file and the sum, as wide as the terminal."""

    def __init__(self, stats: Sequence[FileStat]) -> None:
        self._stats = stats

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width if console.is_terminal else None
        yield from rows(self._stats, width)
        yield total(self._stats)


def rows(stats: Sequence[FileStat], width: int | None) -> Iterator[Text]:
    """`~ src/parser.py | 12 ++++++--`, each on one line. Without a width no path is cut."""
    if not stats:
        return
    widths = columns(stats, width)
    most = max(each.lines for each in stats)
    for each in stats:
        yield _row(each, widths, most)


def total(stats: Sequence[FileStat]) -> Text:
    """`3 files changed, 10 insertions(+), 2 deletions(-)`."""
    added, removed = sum(each.added for each in stats), sum(each.removed for each in stats)
    parts = [f"{wording.count(len(stats), 'file')} changed"]
    parts += [f"{wording.count(added, 'insertion')}(+)"] if added else []
    parts += [f"{wording.count(removed, 'deletion')}(-)"] if removed else []
    return Text(", ".join(parts))


def columns(stats: Sequence[FileStat], width: int | None) -> Columns:
    """A path is cut only where less than a readable graph would be left beside it."""
    path = max(cell_len(_name(each)) for each in stats)
    number = max(len(f"{each.lines:,}") for each in stats)
    longest = max(each.lines for each in stats)
    if width is None:
        return Columns(path, number, min(longest, max(PIPED - path - number - 6, LEAST_GRAPH)))
    room = max(width - len("~ ") - len(" | ") - number - len(" "), 2)
    graph = min(longest, max(room - path, room * 3 // 8, 1))
    notes = max((cell_len(each.note) - number for each in stats), default=0)
    return Columns(min(path, max(room - max(graph, min(notes, room * 5 // 8)), 1)), number, graph)


def bars(added: int, removed: int, most: int, width: int) -> tuple[int, int]:
    """How many `+` and `-` stand for so many lines, if the longest row takes the whole width. What
    has changed at all has at least one."""
    if most <= width:
        return added, removed
    both = (added > 0) + (removed > 0)
    length = max(both, _scaled(added + removed, most, width))
    plus = min(max(added > 0, round(length * added / max(added + removed, 1))), length)
    minus = length - plus
    if removed and not minus:
        plus, minus = plus - 1, 1
    return plus, minus


def _scaled(lines: int, most: int, width: int) -> int:
    return 0 if not lines else 1 + lines * (width - 1) // most


def shortened(path: str, width: int) -> str:
    """The end of a path, which tells files apart, from the beginning of a name if one fits."""
    if cell_len(path) <= width:
        return path
    tail = path
    while tail and cell_len(tail) > width - 1:
        tail = tail[1:]
    slash = tail.find("/")
    return "…" + (tail[slash:] if 0 <= slash < len(tail) // 2 else tail)


def _name(each: FileStat) -> str:
    return wording.shown(each.path)


def _row(each: FileStat, widths: Columns, most: int) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{each.sign} ", style=SIGNS[each.sign])
    name = shortened(_name(each), widths.path)
    text.append(name + " " * (widths.path - cell_len(name)) + " | ")
    if each.note:
        return text.append(each.note, style="quiet")
    text.append(f"{each.lines:>{widths.number},}")
    plus, minus = bars(each.added, each.removed, most, widths.graph)
    text.append(" " if plus or minus else "")
    return text.append("+" * plus, style="added").append("-" * minus, style="removed")
