"""The checkpoints of a timeline as a graph, by the page: where it forks, and which of them the head
stands on. Read from rows alone, with as many queries for a long page as for a short one."""

from typing import Generic, TypeVar

from hardsave.objects.records import ID_BYTES, CheckpointRecord, Id
from hardsave.page import Page, cursor_of
from hardsave.progress import check_deadline
from hardsave.record import Record
from hardsave.stores.base import Query
from hardsave.timeline import names
from hardsave.vault.arguments import check_limit, not_a_cursor, place
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context

C = TypeVar("C", covariant=True)

_PAGE = 1_000


class GraphNode(Record, Generic[C]):
    """A checkpoint of a timeline, and what goes on from it. Its `parent` is the edge that leads to
    it; that may be on another timeline."""

    checkpoint: C
    branches: tuple[C, ...]
    """Other checkpoints that were saved on top of it than the next of its timeline: of timelines
    that were forked here, and of this one after a rewind."""
    is_head: bool
    is_current: bool
    """Whether it is the head, or an ancestor of it."""


class _Place:
    """Where a page begins: below this number, and at this one of the head's ancestors."""

    def __init__(self, after: str | None, listing: str) -> None:
        found = place(after, listing)
        self.before: int | None = None
        self.ancestor: Id | None = None
        if found is None:
            return
        number, colon, id = found.partition(":")
        try:
            ancestor = bytes.fromhex(id)
        except ValueError:
            raise not_a_cursor(after) from None
        if not (colon and len(number) <= 18 and names.is_number(number)):
            raise not_a_cursor(after)
        self.before, self.ancestor = int(number), ancestor if len(ancestor) == ID_BYTES else None


def graph(
    context: Context, name: str, limit: int, after: str | None
) -> Page[GraphNode[Checkpoint]]:
    check_limit(limit)
    store, user = context.store, context.user
    listing = f"graph {user!r} {name!r}"
    at = _Place(after, listing)
    standing = store.timeline(user, name)
    head = None if standing is None else standing.head
    rows = store.checkpoints(user, Query(name, limit + 1, before_seq=at.before))
    shown = rows[:limit]
    if not shown:
        return Page((), None)
    lowest = shown[-1].seq
    current, left = _path(context, name, head if after is None else at.ancestor, lowest)
    branches: dict[Id | None, list[Checkpoint]] = {}
    for row in store.branches(user, name, lowest, shown[0].seq):
        if not row.is_hidden:
            branches.setdefault(row.parent, []).append(context.checkpoint(row))
    nodes = [
        GraphNode(
            checkpoint=context.checkpoint(row),
            branches=tuple(branches.get(row.id, ())),
            is_head=row.id == head,
            is_current=row.id in current,
        )
        for row in shown
    ]
    last = f"{lowest}:{'' if left is None else left.hex()}"
    return Page(nodes, cursor_of(listing, last) if len(rows) > limit else None)


def _path(context: Context, name: str, start: Id | None, lowest: int) -> tuple[set[Id], Id | None]:
    """The ancestors of a checkpoint, itself included, down to a number of a timeline; and the first
    below that, where the next page goes on."""
    found: set[Id] = set()
    while start is not None:
        check_deadline()
        page: list[CheckpointRecord] = context.store.ancestors(context.user, start, _PAGE)
        for each in page:
            if each.timeline == name and each.seq < lowest:
                return found, each.id
            found.add(each.id)
        start = page[-1].parent if page else _below_a_stone(context, start)
    return found, None


def _below_a_stone(context: Context, id: Id) -> Id | None:
    """The parent of a checkpoint that was dropped."""
    stone = context.store.tombstone(context.user, id)
    return None if stone is None else stone.parent
