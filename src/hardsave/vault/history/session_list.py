"""Lists of what was done in a directory, read from rows alone: timelines by their last update, and
checkpoints of all timelines together."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from hardsave.errors import Misuse, NotFound
from hardsave.page import Page, cursor_of
from hardsave.progress import check_deadline
from hardsave.record import Record
from hardsave.stores.base import Query, TimelineQuery, TimelineRow
from hardsave.timeline import names
from hardsave.timeline.refs import to_text
from hardsave.timeline.step_summary import StepSummary
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import check_asked, check_limit, cursor, encoded, not_a_cursor, place
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context


class Told(Protocol):
    """What a session needs of its checkpoints; awaited ones have it, too."""

    @property
    def status(self) -> str: ...
    @property
    def summary(self) -> StepSummary | None: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


C = TypeVar("C", bound=Told, covariant=True)

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
    checkpoints: int = 0
    """How many were saved on it, deleted ones aside."""

    @property
    def status(self) -> str | None:
        """Of its newest checkpoint."""
        return None if self.newest is None else self.newest.status

    @property
    def messages(self) -> int | None:
        """How many its head has; None if that is not known."""
        summary = None if self.head is None else self.head.summary
        return None if summary is None else summary.messages

    @property
    def cost(self) -> float | None:
        """What its program says that it has cost so far: the number under `cost` in the metadata of
        the newest checkpoint; None if there is none."""
        found = None if self.newest is None else self.newest.metadata.get("cost")
        if isinstance(found, bool) or not isinstance(found, int | float):
            return None
        return float(found)


class Narrowed(NamedTuple):
    """Which sessions are listed."""

    text: str = ""
    prefix: str = ""
    status: str | None = None
    deleted: bool = False


def sessions(
    context: Context,
    workspace: Directory | None,
    limit: int,
    after: str | None,
    narrowed: Narrowed,
) -> Page[Session[Checkpoint]]:
    check_deadline()
    check_limit(limit)
    text, prefix, status, deleted = narrowed
    check_asked(text=text, prefix=prefix, status=status)
    if None in (text, prefix):
        raise Misuse("text and prefix are texts, not None; leave them out to list all")
    listing = _listing(context.user)
    query = TimelineQuery(
        limit=limit + 1,  # one more, to know whether another page follows
        after=_place(after, listing),
        deleted=deleted,
        prefix=prefix,
        text=text,
        status=status,
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


def session(context: Context, name: str) -> Session[Checkpoint]:
    """One timeline as the list shows it, deleted or not."""
    check_deadline()
    names.check_timeline(name)
    store, user = context.store, context.user
    line = store.timeline(user, name)
    if line is None:
        raise NotFound(f"there is no timeline {name!r}; vault.timelines() lists them")
    newest = next(iter(store.checkpoints(user, Query(name, limit=1))), None)
    head = None if line.head is None else store.checkpoint(user, line.head)
    updated = max([line.created_at, *([] if newest is None else [newest.created_at])])
    row = TimelineRow(line, updated, newest, head, store.count(user, name))
    return _session(context, row)


def cursor_behind(user: str | None, one: Session[Any]) -> str:
    """The cursor of what follows on a session."""
    at = (one.updated_at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    return cursor_of(_listing(user), f"{at}:{one.timeline}")


def _listing(user: str | None) -> str:
    return f"sessions {user!r}"


def moments(
    context: Context, workspace: Directory, limit: int, after: str | None
) -> Page[Checkpoint]:
    check_deadline()
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
        checkpoints=row.saved,
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
