"""Lists of what was done in a directory, read from rows alone: timelines by their last update, and
checkpoints of all timelines together."""

import os
from datetime import UTC, datetime
from typing import Generic, TypeVar

from hardsave.page import Page, cursor_of
from hardsave.record import Record
from hardsave.stores.base import TimelineQuery, TimelineRow
from hardsave.timeline import names
from hardsave.timeline.refs import to_text
from hardsave.vault.arguments import check_limit, cursor, encoded, not_a_cursor, place
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context

C = TypeVar("C", covariant=True)

Directory = str | os.PathLike[str]


class Session(Record, Generic[C]):
    """A timeline as a list shows it."""

    timeline: str
    """Its name."""
    title: str
    """Its first prompt; empty without one."""
    created_at: datetime
    updated_at: datetime
    """When its newest checkpoint was saved, or it was made."""
    newest: C | None
    """The newest checkpoint on it; None if there is none."""
    head: C | None
    """Where it stands: the newest, or one that it was rewound to or forked from."""
    origin: str | None
    """The id of the checkpoint that it was forked from."""
    is_deleted: bool


def sessions(
    context: Context, workspace: Directory | None, limit: int, after: str | None, *, deleted: bool
) -> Page[Session[Checkpoint]]:
    check_limit(limit)
    listing = f"sessions {context.user!r}"
    query = TimelineQuery(
        limit=limit + 1,  # one more, to know whether another page follows
        after=_place(after, listing),
        deleted=deleted,
    )
    rows: list[TimelineRow] = []
    if workspace is None:
        rows = context.store.recent_timelines(context.user, query)
    elif (found := context.places.find(_real(workspace))) is not None:
        rows = context.store.recent_timelines(context.user, query._replace(workspace=found.id))
    shown = rows[:limit]
    more = len(rows) > limit
    last = f"{shown[-1].updated_at}:{shown[-1].line.name}" if more else ""
    return Page(
        [_session(context, row) for row in shown], cursor_of(listing, last) if more else None
    )


def moments(
    context: Context, workspace: Directory, limit: int, after: str | None
) -> Page[Checkpoint]:
    check_limit(limit)
    root = _real(workspace)
    listing = f"moments {context.user!r} {root!r}"
    before, found = cursor(after, listing), context.places.find(root)
    if found is None:
        return Page([], None)
    rows = context.store.captured(context.user, found.id, before, limit + 1, hidden=False)
    following = cursor_of(listing, rows[limit - 1].number) if len(rows) > limit else None
    return Page([context.checkpoint(row) for row in rows[:limit]], following)


def _session(context: Context, row: TimelineRow) -> Session[Checkpoint]:
    line = row.line
    return Session(
        timeline=line.name,
        title=line.title,
        created_at=_moment(line.created_at),
        updated_at=_moment(row.updated_at),
        newest=None if row.newest is None else context.checkpoint(row.newest),
        head=None if row.head is None else context.checkpoint(row.head),
        origin=None if line.origin is None else to_text(line.origin),
        is_deleted=line.is_deleted,
    )


def _real(workspace: Directory) -> bytes:
    """As the rows of workspaces have it. It need not be there any more."""
    return os.path.realpath(encoded(workspace, "the workspace"))


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000_000, UTC)


def _place(after: str | None, listing: str) -> tuple[int, str] | None:
    found = place(after, listing)
    if found is None:
        return None
    at, colon, name = found.partition(":")
    if not (colon and len(at) <= 18 and names.is_number(at.removeprefix("-"))):
        raise not_a_cursor(after)
    return int(at), name
