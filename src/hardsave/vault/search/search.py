"""Finding texts: in states, in the names, descriptions and statuses of checkpoints, and in the
paths of files that they changed.

The index is brought up to date first (see `search_walk`), but only for a quarter of a second: if it
is far behind, what was found so far is the answer, which says how far it reaches. The rest is
taken in a step at a time, by further searches, daemons, upkeep, or a caller that waits for it. What
is found is compared with the store: nothing hidden or dropped is shown.
"""

import json
import struct
from collections.abc import Iterable
from datetime import UTC, datetime
from time import thread_time
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from hardsave.errors import Misuse
from hardsave.page import Page
from hardsave.progress import Meter, Total, meter
from hardsave.record import Record
from hardsave.stores import claims
from hardsave.timeline import names
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context
from hardsave.vault.search.file_names import Change
from hardsave.vault.search.walk import catch_up, reach
from hardsave.vault.search.words import APART, expression
from hardsave.vault.workspaces import local_data

if TYPE_CHECKING:
    import apsw

C = TypeVar("C")
Field = Literal["state", "name", "description", "status", "timeline", "file"]

SEARCH_SECONDS = 0.25  # of the processor, for what is new
STEP_SECONDS = 1.0  # of the processor, that others who search wait for
SNIPPET_TOKENS = 24
SNIPPET_CHARACTERS = 300
MAX_LIMIT = 10_000
_OPEN, _CLOSE = "\x02", "\x03"

_FIND = """
    WITH found AS MATERIALIZED (
        SELECT rowid AS text, bm25(words) AS score FROM words WHERE words MATCH ?1
    )
    SELECT f.score, -p.number, p.text, p.timeline, p.field, p.path, t.name, c.id, c.root
    FROM found AS f
    JOIN places AS p ON p.text = f.text
    JOIN timelines AS t ON t.id = p.timeline
    JOIN checkpoints AS c ON c.number = p.number
    WHERE (?2 IS NULL OR t.name IN (SELECT value FROM json_each(?2)))
    AND (?3 IS NULL OR (f.score, -p.number, p.text, p.timeline, p.field, p.path)
         > (?3, ?4, ?5, ?6, ?7, ?8))
    ORDER BY 1, 2, 3, 4, 5, 6 LIMIT ?9
"""


class Hit(Record, Generic[C]):
    """A text that was found, with the first checkpoint of a timeline that has it there; of a file,
    the first that changed it."""

    checkpoint: C
    timeline: str
    field: Field
    path: str  # into the state: `messages[12].content`; of a file; empty for other fields
    snippet: str
    marks: tuple[tuple[int, int], ...]  # where what was searched for stands in the snippet
    score: float  # lower is better
    newest: C | None = None
    """Of a file, the last checkpoint of the timeline that added, changed or removed it."""
    change: Change | None = None
    """What became of the file there."""


class Hits(Page[Hit[C]]):
    """A page of what was found, and how far the search reached."""

    def __init__(
        self,
        items: Iterable[Hit[C]],
        following: str | None,
        *,
        unsearched: int = 0,
        reaches: datetime | None = None,
    ) -> None:
        super().__init__(items, following)
        self.unsearched = unsearched
        """So many of the newest checkpoints are not in the index yet; some of them may have the
        text, too. `wait=True` takes them in first."""
        self.reaches = reaches
        """When the last checkpoint was saved that was searched; None: all were."""

    @property
    def is_complete(self) -> bool:
        """Whether everything was searched that was saved before."""
        return self.reaches is None


class _Row(NamedTuple):
    score: float
    order: int
    text: int
    line: int
    field: Field
    path: str
    timeline: str
    id: bytes
    root: bytes

    @property
    def cursor(self) -> str:
        return json.dumps(self[:6])


def search(
    context: Context,
    text: str,
    timelines: str | Iterable[str] | None,
    limit: int,
    after: str | None,
    *,
    wait: bool,
) -> Hits[Checkpoint]:
    """A page of what one user's checkpoints say."""
    claims.check(context.store.claims, "search")
    wanted = expression(text)
    _check_limit(limit)
    values = (wanted, _chosen(timelines), *_position(after), limit + 1)
    local_data.drop_if_purged(context)
    if wait:
        _bring_up_to_date(context)
    return context.search_index().use(lambda index: _found(context, index, values, limit))


def advance(context: Context, seconds: float) -> bool:
    """Bring the index up to date, if a search has made one, for so many seconds of this thread's
    processor time; whether there is no more to do."""
    local_data.drop_if_purged(context)
    if not context.search_index().is_made:
        return True
    until = thread_time() + seconds
    while (left := until - thread_time()) > 0:
        if _step(context, min(left, STEP_SECONDS)):
            return True
    return False


def _bring_up_to_date(context: Context) -> None:
    """However long that takes; between two steps others can search."""
    total = Total(context.store.stats(context.user).checkpoints)
    taken_in = meter("indexing", "checkpoints", lambda: total)
    while not _step(context, STEP_SECONDS, taken_in):
        pass


def _step(context: Context, seconds: float, taken_in: Meter | None = None) -> bool:
    def take_in(index: "apsw.Connection") -> bool:
        return catch_up(context, index, seconds=seconds, is_patient=True, taken_in=taken_in)

    return context.search_index().use(take_in)


def _chosen(timelines: str | Iterable[str] | None) -> str | None:
    """Names as SQLite takes them apart; None for all there are."""
    if timelines is None:
        return None
    given: Any = timelines
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    chosen = [given] if is_one else list(given)
    return json.dumps([names.check_timeline(name) for name in chosen])


def _check_limit(limit: Any) -> None:
    if not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise Misuse(f"limit is a number from 1 to {MAX_LIMIT}, not {limit!r}")


def _found(
    context: Context, index: "apsw.Connection", values: tuple[Any, ...], limit: int
) -> Hits[Checkpoint]:
    is_current = catch_up(context, index, seconds=SEARCH_SECONDS)
    rows = _rows(index, values)
    shown = _shown(context, rows[:limit])
    if is_current and len(shown) < len(rows[:limit]):  # others were hidden or dropped this moment
        is_current = catch_up(context, index, seconds=SEARCH_SECONDS, thorough=True)
        rows = _rows(index, values)
        shown = _shown(context, rows[:limit])
    snippets = _snippets(index, values[0], {row.text for row, _ in shown})
    hits = [_hit(row, checkpoint, snippets[row.text]) for row, checkpoint in shown]
    hits = [
        _of_file(context, index, row, hit) if row.field == "file" else hit
        for (row, _), hit in zip(shown, hits, strict=True)
    ]
    following = rows[limit - 1].cursor if len(rows) > limit else None
    if is_current:
        return Hits(hits, following)
    left, upto = reach(context, index)
    reaches = datetime.fromtimestamp((upto or 0) / 1_000_000, UTC)
    return Hits(hits, following, unsearched=left, reaches=reaches)


def _rows(index: "apsw.Connection", values: tuple[Any, ...]) -> list[_Row]:
    return [_Row._make(row) for row in index.execute(_FIND, values)]


def _shown(context: Context, rows: list[_Row]) -> list[tuple[_Row, Checkpoint]]:
    """The rows whose checkpoint is there, is not hidden, and is as it was when it was indexed."""
    shown = []
    for row in rows:
        record = context.store.checkpoint(context.user, row.id)
        if record is None or record.is_hidden or record.root != row.root:
            continue
        line = context.store.timeline(context.user, row.timeline)
        if line is not None and not (row.field == "timeline" and line.is_deleted):
            shown.append((row, context.checkpoint(record)))
    return shown


def _hit(row: _Row, checkpoint: Checkpoint, marked: str) -> Hit[Checkpoint]:
    snippet, marks = _unmarked(marked)
    return Hit(checkpoint, row.timeline, row.field, row.path, snippet, marks, row.score)


def _of_file(
    context: Context, index: "apsw.Connection", row: _Row, hit: Hit[Checkpoint]
) -> Hit[Checkpoint]:
    """The same with the file's path, and what last became of it."""
    path: str = index.execute("SELECT text FROM readable WHERE id = ?", (row.text,)).get
    sql = (
        "SELECT c.id, h.change FROM changes AS h JOIN checkpoints AS c ON c.number = h.number "
        "WHERE h.text = ? AND h.timeline = ? ORDER BY h.number DESC"
    )
    for id, change in index.execute(sql, (row.text, row.line)):
        record = context.store.checkpoint(context.user, id)
        if record is not None and not record.is_hidden:
            newest = context.checkpoint(record)
            return hit.replace(path=path.replace(APART, ""), newest=newest, change=change)
    return hit.replace(path=path.replace(APART, ""))  # the others went this moment


def _snippets(index: "apsw.Connection", wanted: str, texts: set[int]) -> dict[int, str]:
    sql = "SELECT snippet(words, 0, ?, ?, '…', ?) FROM words WHERE words MATCH ? AND rowid = ?"
    return {
        text: index.execute(sql, (_OPEN, _CLOSE, SNIPPET_TOKENS, wanted, text)).get
        for text in texts
    }


def _unmarked(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The snippet as text, and where its marks were. One without spaces is cut to size."""
    marked = marked.replace(APART, "")
    before = max(marked.find(_OPEN) - SNIPPET_CHARACTERS // 3, 0)
    plain = ""
    marks: list[tuple[int, int]] = []
    for at, part in enumerate(marked[before : before + SNIPPET_CHARACTERS].split(_OPEN)):
        inside, closed, rest = part.partition(_CLOSE)
        if at or closed:
            marks.append((len(plain), len(plain) + len(inside)))
        plain += inside + rest
    return plain, tuple(marks)


def _position(after: Any) -> tuple[Any, ...]:
    """Where a page begins, from the cursor of the one before."""
    if after is None:
        return (None,) * 6
    try:
        score, order, text, line, field, path = json.loads(after)
        struct.pack("dqqq", score, order, text, line)  # numbers that SQLite can hold, or an error
        f"{field}{path}".encode()
        return float(score), order, text, line, str(field), str(path)
    except (ValueError, TypeError, OverflowError, struct.error, RecursionError) as error:
        raise Misuse(f"after is the `next` of an earlier page, not {after!r:.80}") from error
