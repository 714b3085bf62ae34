"""Bringing the search index up to date with the store, in steps.

Checkpoints are taken in in the order of their commits (`search_intake`), a transaction for some
hundred of them, each of which leaves an index that is true up to there.

Of files, the paths are taken in that a checkpoint added, changed or removed: against the newest
one before it, on any timeline, that has files of the same directory. So a directory's names are
listed once, however many sessions work there; and all are compared again when a checkpoint came
or went that another was compared with.

Which checkpoints are hidden or gone changes by operations alone, and these are logged. If
something was logged, the checkpoints of the timelines that it names, or all, are listed once more,
and timelines on which any came or went are taken in again from their beginning.
"""

from collections.abc import Callable, Iterator
from time import thread_time
from typing import TYPE_CHECKING

from hardsave.errors import Corrupt
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id, LogRecord
from hardsave.progress import Meter
from hardsave.stores import requests
from hardsave.stores.base import Query
from hardsave.tuples import NamedTuple
from hardsave.vault import operations
from hardsave.vault.context import Context
from hardsave.vault.search.index import Outdated
from hardsave.vault.search.intake import Intake

if TYPE_CHECKING:
    import apsw

PAGE = 1_000  # checkpoints a transaction
LARGE = 20_000  # checkpoints


class Reach(NamedTuple):
    """How far an index goes."""

    left: int  # checkpoints that are not in it
    upto: int | None  # when the last was saved that is


def catch_up(
    context: Context,
    index: "apsw.Connection",
    *,
    seconds: float | None = None,
    thorough: bool = False,
    is_patient: bool = False,
    taken_in: Meter | None = None,
) -> bool:
    """Take in what was saved, hidden, shown and dropped since the last time, for so many seconds of
    this thread's processor time, or to the end; whether the end was reached. An operation that may
    be about any checkpoint is followed in a large index only by a caller that `is_patient`."""
    until = None if seconds is None else thread_time() + seconds
    saved, last, logged = index.execute("SELECT saved, last, logged FROM progress").get
    if last is not None and not _is_known(context, last, saved):
        raise Outdated("it is of another store, or of one that was put back")
    newest = context.store.log_before(context.user, None, 1)
    now = newest[0].number if newest else 0
    is_settled = True
    if thorough or now != logged:
        names = None if thorough else _touched(context, logged, now)
        is_settled = is_patient or names is not None or not _is_large(index)
        if is_settled:
            with index:
                _settle(context, index, saved, names)
                _name_forks(context, index)
                index.execute("UPDATE progress SET logged = ?", (now,))
    while records := context.store.saved(context.user, saved, PAGE):
        with index:
            count = _take_in(context, index, records, lambda: _is_past(until))
            saved, last = records[count - 1].number, records[count - 1].id
            index.execute("UPDATE progress SET saved = ?, last = ?", (saved, last))
        if taken_in is not None:
            taken_in.add(count)
        if _is_past(until):
            return is_settled and count == len(records) < PAGE
    return is_settled


def _is_large(index: "apsw.Connection") -> bool:
    """Whether listing all checkpoints takes longer than a search may."""
    sql = "SELECT 1 FROM checkpoints LIMIT 1 OFFSET ?"
    return index.execute(sql, (LARGE,)).fetchone() is not None


def _is_past(until: float | None) -> bool:
    return until is not None and thread_time() >= until


def reach(context: Context, index: "apsw.Connection") -> Reach:
    """How far an index goes that is not up to date. Counts its rows."""
    there, last = index.execute("SELECT (SELECT count(*) FROM checkpoints), last FROM progress").get
    record = None if last is None else context.store.checkpoint(context.user, last)
    left = max(context.store.stats(context.user).checkpoints - there, 0)
    return Reach(left, None if record is None else record.created_at)


def _is_known(context: Context, last: Id, number: int) -> bool:
    record = context.store.checkpoint(context.user, last)
    if record is None:
        return context.store.tombstone(context.user, last) is not None
    return record.number == number


# Operations


def _touched(context: Context, after: int, upto: int) -> set[str] | None:
    """Timelines on which operations may have hidden or shown something; None: on any."""
    entries = context.store.log(context.user, after, PAGE)
    if not entries or entries[-1].number != upto:
        return None
    names: set[str] = set()
    for entry in entries:
        if entry.kind in ("fork", requests.NOTHING, requests.KIND):
            continue  # hides nothing
        found = None if entry.timeline is None else _decoded(entry)
        if found is None:
            return None
        names |= found.timelines
    return names


def _decoded(entry: LogRecord) -> operations.Entry | None:
    try:
        return operations.decode(entry)
    except Corrupt:
        return None  # for `verify` to report


def _settle(context: Context, index: "apsw.Connection", upto: int, names: set[str] | None) -> None:
    """Take in again the timelines on which checkpoints came or went; None: whichever these are."""
    changed = _changed(context, index, upto, names)
    for table in ("tails", "places", "checkpoints") if changed else ():
        index.executemany(
            f"DELETE FROM {table} WHERE timeline = (SELECT id FROM timelines WHERE name = ?)",  # noqa: S608 # one of three names
            [(name,) for name in changed],
        )
    for name in sorted(changed):
        _take_in(context, index, _shown_on(context, name, upto))
    if changed:
        _compare_files_again(context, index, upto)
        _forget_texts(index)


def _compare_files_again(context: Context, index: "apsw.Connection", upto: int) -> None:
    index.execute("DELETE FROM places WHERE field = 'file'")
    index.execute("DELETE FROM changes")
    if not context.store.workspaces(context.user, ("", b"", b""), 1):
        return
    intake = Intake(context, index)
    for page in _listed(context, upto):
        for record in page:
            if not record.is_hidden:
                intake.take_in_files(record)
    intake.end()


def _forget_texts(index: "apsw.Connection") -> None:
    """Those that stand nowhere any more."""
    index.execute(
        "INSERT INTO words (words, rowid, text) SELECT 'delete', id, text FROM readable "
        "WHERE id NOT IN (SELECT text FROM places)"
    )
    index.execute("DELETE FROM texts WHERE id NOT IN (SELECT text FROM places)")


def _changed(
    context: Context, index: "apsw.Connection", upto: int, names: set[str] | None
) -> set[str]:
    """Timelines of which the index knows another set of checkpoints than the store shows."""
    if names is not None:
        return {name for name in names if _has_changed(context, index, upto, name)}
    changed: set[str] = set()
    after = 0
    for page in _listed(context, upto):
        known = _known(index, after, page[-1].number)
        shown = {r.number: (r.timeline, r.id, r.root) for r in page if not r.is_hidden}
        changed |= {row[0] for _, row in known.items() ^ shown.items()}
        after = page[-1].number
    return changed | {row[0] for row in _known(index, after, upto).values()}


def _has_changed(context: Context, index: "apsw.Connection", upto: int, name: str) -> bool:
    sql = (
        "SELECT number, id, root FROM checkpoints "
        "WHERE timeline = (SELECT id FROM timelines WHERE name = ?)"
    )
    shown = {(r.number, r.id, r.root) for r in _shown_on(context, name, upto)}
    return shown != set(index.execute(sql, (name,)))


def _shown_on(context: Context, name: str, upto: int) -> list[CheckpointRecord]:
    """The checkpoints of a timeline that are not hidden, in the order of their commits."""
    found: list[CheckpointRecord] = []
    query = Query(name, PAGE)
    while page := context.store.checkpoints(context.user, query):
        found += [record for record in page if record.number <= upto]
        query = query._replace(before_seq=page[-1].seq)
    return sorted(found)


def _known(index: "apsw.Connection", after: int, upto: int) -> dict[int, tuple[str, Id, Hash]]:
    rows = index.execute(
        "SELECT c.number, t.name, c.id, c.root FROM checkpoints AS c "
        "JOIN timelines AS t ON t.id = c.timeline WHERE c.number > ? AND c.number <= ?",
        (after, upto),
    )
    return {number: (name, id, root) for number, name, id, root in rows}


def _listed(context: Context, upto: int) -> Iterator[list[CheckpointRecord]]:
    after = 0
    while records := context.store.saved(context.user, after, PAGE):
        page = [record for record in records if record.number <= upto]
        if not page:
            return
        yield page
        after = page[-1].number


def _name_forks(context: Context, index: "apsw.Connection") -> None:
    """A fork on which nothing was saved yet is found by its name, at where it begins; not one that
    was taken back."""
    index.execute(
        "DELETE FROM places WHERE field = 'timeline' "
        "AND timeline NOT IN (SELECT timeline FROM checkpoints)"
    )
    gone = index.changes()
    intake = Intake(context, index)
    for line in context.history.timelines():
        if line.last_seq or line.head is None:
            continue
        record = context.store.checkpoint(context.user, line.head)
        if record is not None:
            intake.take_in_name(line.name, record.number)
    intake.end()
    if gone:
        _forget_texts(index)


# Taking in


def _take_in(
    context: Context,
    index: "apsw.Connection",
    records: list[CheckpointRecord],
    is_over: Callable[[], bool] = lambda: False,
) -> int:
    """Take checkpoints in, until the time is over; how many were looked at."""
    intake = Intake(context, index)
    count = 0
    for count, record in enumerate(records, 1):  # noqa: B007 # how far it has come
        if not record.is_hidden:
            intake.take_in(record)
            intake.take_in_files(record)
        if is_over():
            break
    intake.end()
    return count
