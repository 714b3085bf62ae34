"""A tree of checkpoints as lines and branches, newest first. Pure: ids in, text out.

Every branch has a column for as long as it lasts. A checkpoint has one parent, so columns only
ever come together, never part:

    ○      a branch
    │ ○    another one
    ├─╯    they have the same parent
    ○

A parent that comes after all that is shown keeps its column to the end: what else began there
would look like it.
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


BAR, TEE, CORNER, BOTH, CROSS, DASH = "│├╯┴┼─"


def draw(nodes: Sequence[Node], *, apart: bool = True) -> list[Row]:
    """One row for each node; children come before their parents. What begins right below where
    something else has ended is kept `apart` from it by a line."""
    place = {node.id: at for at, node in enumerate(nodes)}
    lanes: list[str | None] = []  # the id that each column leads to
    rows = []
    ended: int | None = None  # the column of the row above, if nothing is below that
    for at, node in enumerate(nodes):
        waiting = [column for column, id in enumerate(lanes) if id == node.id]
        joins = (_join(lanes, waiting),) if len(waiting) > 1 else ()
        for column in waiting[1:]:
            lanes[column] = None
        column = waiting[0] if waiting else _free(lanes)
        if apart and column == ended and not waiting:
            joins = (_bars(lanes, {}).rstrip(),)
        is_below = place.get(node.parent or "", len(nodes)) > at
        lanes[column] = node.id
        line = _bars(lanes, {column: node.mark})
        lanes[column] = node.parent if is_below else None
        ended = column if lanes[column] is None else None
        rows.append(Row(joins, line, _bars(lanes, {})))
        while lanes and lanes[-1] is None:
            lanes.pop()
    return _padded(rows)


def _free(lanes: list[str | None]) -> int:
    """A column for a branch that begins."""
    if None in lanes:
        return lanes.index(None)
    lanes.append(None)
    return len(lanes) - 1


def _bars(lanes: Sequence[str | None], marks: dict[int, str]) -> str:
    cells = [marks.get(column, " " if id is None else BAR) for column, id in enumerate(lanes)]
    return " ".join(cells)


def _join(lanes: Sequence[str | None], waiting: Sequence[int]) -> str:
    """The columns that wait for the same node come together in the first of them."""
    first, last = waiting[0], waiting[-1]
    line = ""
    for column, id in enumerate(lanes):
        inside = first < column <= last
        line += (DASH if inside else " ") if column else ""
        if column == first:
            line += TEE
        elif column == last:
            line += CORNER
        elif column in waiting:
            line += BOTH
        elif inside:
            line += DASH if id is None else CROSS
        else:
            line += " " if id is None else BAR
    return line


def _padded(rows: Sequence[Row]) -> list[Row]:
    """Texts to the right of the graph begin in one column, where it is narrow enough."""
    width = min(max((len(row.line) for row in rows), default=0), 16)
    return [Row(row.joins, row.line.ljust(width), row.below.ljust(width)) for row in rows]
