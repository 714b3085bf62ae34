"""A tree of checkpoints as lines and branches, newest first. Pure: ids in, text out.

Every branch has a column for as long as it lasts. A checkpoint has one parent, so columns only
ever come together, never part:

    ○      a branch
    │ ○    another one
    ├─╯    they have the same parent
    ○
"""

from collections.abc import Sequence

from hardsave.tuples import NamedTuple


class Node(NamedTuple):
    """A checkpoint and what it was saved on top of."""

    id: str
    parent: str | None
    mark: str


class Row(NamedTuple):
    """What stands left of one checkpoint: lines that join branches, then its own line."""

    joins: tuple[str, ...]
    line: str
    below: str  # the same columns, for what is said about it on further lines


class Glyphs(NamedTuple):
    """What branches are drawn with."""

    bar: str = "│"
    tee: str = "├"
    corner: str = "╯"
    both: str = "┴"
    cross: str = "┼"
    dash: str = "─"


ASCII = Glyphs("|", "|", "'", "'", "|", "-")


def draw(nodes: Sequence[Node], glyphs: Glyphs = Glyphs()) -> list[Row]:  # noqa: B008 # immutable
    """One row for each node; children come before their parents."""
    place = {node.id: at for at, node in enumerate(nodes)}
    lanes: list[str | None] = []  # the id that each column leads to
    rows = []
    for at, node in enumerate(nodes):
        waiting = [column for column, id in enumerate(lanes) if id == node.id]
        joins = (_join(lanes, waiting, glyphs),) if len(waiting) > 1 else ()
        for column in waiting[1:]:
            lanes[column] = None
        column = waiting[0] if waiting else _free(lanes)
        parent = node.parent if place.get(node.parent or "", -1) > at else None
        lanes[column] = node.id
        line = _bars(lanes, glyphs, {column: node.mark})
        lanes[column] = parent
        rows.append(Row(joins, line, _bars(lanes, glyphs, {})))
        while lanes and lanes[-1] is None:
            lanes.pop()
    return _padded(rows)


def _free(lanes: list[str | None]) -> int:
    """A column for a branch that begins."""
    if None in lanes:
        return lanes.index(None)
    lanes.append(None)
    return len(lanes) - 1


def _bars(lanes: Sequence[str | None], glyphs: Glyphs, marks: dict[int, str]) -> str:
    cells = [
        marks.get(column, " " if id is None else glyphs.bar) for column, id in enumerate(lanes)
    ]
    return " ".join(cells)


def _join(lanes: Sequence[str | None], waiting: Sequence[int], glyphs: Glyphs) -> str:
    """The columns that wait for the same node come together in the first of them."""
    first, last = waiting[0], waiting[-1]
    line = ""
    for column, id in enumerate(lanes):
        inside = first < column <= last
        line += (glyphs.dash if inside else " ") if column else ""
        if column == first:
            line += glyphs.tee
        elif column == last:
            line += glyphs.corner
        elif column in waiting:
            line += glyphs.both
        elif inside:
            line += glyphs.dash if id is None else glyphs.cross
        else:
            line += " " if id is None else glyphs.bar
    return line


def _padded(rows: Sequence[Row]) -> list[Row]:
    """Texts to the right of the graph begin in one column, where it is narrow enough."""
    width = min(max((len(row.line) for row in rows), default=0), 16)
    return [Row(row.joins, row.line.ljust(width), row.below.ljust(width)) for row in rows]
